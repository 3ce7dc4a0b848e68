"""Which groups have one memory together: those that the operator lists in `memory.shared`.

Private chats never share. A group that has moved to another id stays in the list under each of its
ids; one that is taken out of it has its own memory again, which was kept meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from bridge.session import chat_of_scope, chat_scope, memory_scope
from channels.base import Address
from memory.chats.reach import Move
from memory.scopes import SHARED, ChatScope

Audience = Literal["private", "group", "shared"]

_GROUP = re.compile(r"telegram:-[0-9]{1,20}|slack:[CG][A-Z0-9]{1,30}")
_PERSON = re.compile(r"telegram:[0-9]{1,20}|slack:[DUW][A-Z0-9]{1,30}")


def group_fault(name: str) -> str | None:
    """Why a name in the list is none of a group; None when it is."""
    if _GROUP.fullmatch(name):
        return None
    if _PERSON.fullmatch(name):
        return (
            f"({name}) is a person or a private chat: what was said in private is never part of a"
            " memory that groups share"
        )
    return (
        f"({name}) must be a channel and a group's id, such as telegram:-1001234 or slack:C012AB3CD"
    )


class Sharing:
    """`listed`: channels and ids, as `telegram:-1001234`; `moves`: those that are known now."""

    def __init__(
        self, listed: Sequence[str] = (), moves: Callable[[], Iterable[Move]] = lambda: ()
    ) -> None:
        pairs = (name.partition(":") for name in listed)
        self._listed = [(channel, chat) for channel, _, chat in pairs]
        self._moves = moves

    def scope(self, address: Address) -> str:
        """Whose memory a conversation there belongs to."""
        return memory_scope(address, self.together())

    def chat(self, address: Address) -> ChatScope:
        """The memory that belongs to a conversation there, and whose conversations belong to it."""
        return chat_scope(address, self.together())

    def whole(self, scope: str) -> ChatScope:
        """A scope without regard to one of its chats; a shared one names none."""
        if scope == SHARED:
            return ChatScope(SHARED, "", "", "", self.together())
        return ChatScope(scope, *chat_of_scope(scope))

    def audience(self, address: Address) -> Audience:
        """Who sees the memory there, as texts are named."""
        if address.private:
            return "private"
        return "shared" if self.scope(address) == SHARED else "group"

    def together(self) -> frozenset[tuple[str, str]]:
        """Channel and id of all that share, under each id that they have or had."""
        return frozenset(self.in_order()) if self._listed else frozenset()

    def in_order(self) -> list[tuple[str, str]]:
        """The same, in the order of the list."""
        moves = list(self._moves())
        found = [
            (channel, id_) for channel, chat in self._listed for id_ in _ids(channel, chat, moves)
        ]
        return list(dict.fromkeys(found))


def _ids(channel: str, chat: str, moves: Sequence[Move]) -> list[str]:
    here = [move for move in moves if move.channel == channel]
    now = [chat, *(move.new for move in here if move.old == chat)]
    return [*now, *(move.old for move in here if move.new in now)]
