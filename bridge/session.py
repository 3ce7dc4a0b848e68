"""A conversation's identity: one pure, injective function from an address to a session key.

`channel:account:chat[:t=thread][:u=person]`. Parts are percent-encoded, so that no part can imitate a
separator and two different places never share a key.
"""

from __future__ import annotations

from typing import Literal
from urllib.parse import quote

from channels.base import Address
from memory.conversations import SessionPlace

Scope = Literal["shared", "one_per_person"]


def session_of(address: Address, person: str, scope: Scope) -> SessionPlace:
    """The session in which `person` talks at `address`. `scope` matters in groups only; threads and
    topics are sessions of their own."""
    parts = [quote(part, safe="-_") for part in (address.channel, address.account, address.chat)]
    if address.thread is not None:
        parts.append("t=" + quote(address.thread, safe="-_."))
    if scope == "one_per_person" and not address.private:
        parts.append("u=" + quote(person, safe="-_"))
    return SessionPlace(
        ":".join(parts), address.channel, address.account, address.chat, address.thread
    )


def memory_scope(address: Address) -> str:
    """Whose memory a conversation belongs to: a private chat's person, or a group as a whole."""
    kind = "person" if address.private else "group"
    parts = [quote(part, safe="-_") for part in (address.channel, address.account, address.chat)]
    return ":".join([kind, *parts])
