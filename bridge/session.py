"""A conversation's identity: one pure, injective function from an address to a session key.

`channel:account:chat[:t=thread][:u=person]`. Parts are percent-encoded, so that no part can imitate a
separator and two different places never share a key.
"""

from __future__ import annotations

from typing import Literal
from urllib.parse import quote, unquote

from channels.base import Address
from memory.conversations import SessionPlace
from memory.scopes import SHARED, ChatScope, scope_of

Scope = Literal["shared", "one_per_person"]
Groups = frozenset[tuple[str, str]]
"""Channel and id of groups."""


def session_of(address: Address, person: str, scope: Scope) -> SessionPlace:
    """The session in which `person` talks at `address`. `scope` matters in groups only; threads and
    topics are sessions of their own."""
    parts = [chat_key(address.channel, address.account, address.chat)]
    if address.thread is not None:
        parts.append("t=" + quote(address.thread, safe="-_."))
    if scope == "one_per_person" and not address.private:
        parts.append("u=" + quote(person, safe="-_"))
    return SessionPlace(
        ":".join(parts), address.channel, address.account, address.chat, address.thread
    )


def memory_scope(address: Address, together: Groups = frozenset()) -> str:
    """Whose memory a conversation belongs to: a private chat's person, a group as a whole, or the
    groups that have one `together`."""
    key = chat_key(address.channel, address.account, address.chat)
    shared = (address.channel, address.chat) in together
    return scope_of(key, private=address.private, shared=shared)


def chat_scope(address: Address, together: Groups = frozenset()) -> ChatScope:
    """The memory that belongs to a conversation, and whose conversations belong to it."""
    scope = memory_scope(address, together)
    of = together if scope == SHARED else frozenset[tuple[str, str]]()
    return ChatScope(scope, address.channel, address.account, address.chat, of)


def chat_of_scope(scope: str) -> tuple[str, str, str]:
    """Channel, account and id of the chat that a `memory_scope` belongs to (not the shared one)."""
    _, channel, account, chat = map(unquote, scope.split(":"))
    return channel, account, chat


def chat_key(channel: str, account: str, chat: str) -> str:
    """What the keys of all of a chat's sessions begin with."""
    return ":".join(quote(part, safe="-_") for part in (channel, account, chat))


def chat_of(session_key: str) -> str:
    """The `chat_key` of a session's chat."""
    return ":".join(session_key.split(":")[:3])


def rekeyed(session_key: str, new_chat: str) -> str:
    """The session's key when its chat has the `chat_key` `new_chat`."""
    return new_chat + session_key.removeprefix(chat_of(session_key))
