"""Chats that have moved to another id, and chats that cannot be reached any more.

Both are few, so that they are kept in memory too: whoever asks does not wait for the database.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from memory.audit import record
from memory.chats.erasing import erase
from memory.chats.moving import carry
from memory.clock import stamp
from memory.database import Database


@dataclass(frozen=True, slots=True)
class ChatPlace:
    """A chat on its platform. An empty `chat` stands for all of the account."""

    channel: str
    account: str
    chat: str


@dataclass(frozen=True, slots=True)
class Move:
    """The chat `old` has become `new`."""

    channel: str
    account: str
    old: str
    new: str


class Chats:
    """What is known of chats beyond their conversations. `load` it before anything else."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._moved: dict[ChatPlace, str] = {}
        self._gone: set[ChatPlace] = set()

    async def load(self) -> None:
        """Read what is stored."""
        moved = await self._database.read("SELECT channel, account, old, chat FROM moved_chats")
        self._moved = {ChatPlace(*row[:3]): str(row[3]) for row in moved}
        gone = await self._database.read("SELECT channel, account, chat FROM gone_chats")
        self._gone = {ChatPlace(*row) for row in gone}

    # Moves ----------------------------------------------------------------------------------------

    @property
    def moves(self) -> list[Move]:
        """All that are known."""
        return [Move(p.channel, p.account, p.chat, new) for p, new in self._moved.items()]

    def current(self, place: ChatPlace) -> ChatPlace:
        """Where the chat is now."""
        new = self._moved.get(place)
        return place if new is None else ChatPlace(place.channel, place.account, new)

    def names(self, place: ChatPlace) -> frozenset[str]:
        """The chat's id and all that it had before."""
        former = (
            old.chat
            for old, new in self._moved.items()
            if new == place.chat and (old.channel, old.account) == (place.channel, place.account)
        )
        return frozenset((place.chat, *former))

    async def expect(self, move: Move) -> bool:
        """Remember that the chat moves; false when that is known, or leads back to itself."""
        old = ChatPlace(move.channel, move.account, move.old)
        new = self.current(ChatPlace(move.channel, move.account, move.new)).chat
        if new == move.old or self._moved.get(old) == new:
            return False
        place, now = (move.channel, move.account), stamp()

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO moved_chats VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (channel, account, old) DO UPDATE SET chat = excluded.chat",
                (*place, move.old, new, now),
            )
            connection.execute(
                "UPDATE moved_chats SET chat = ? WHERE channel = ? AND account = ? AND chat = ?",
                (new, *place, move.old),
            )
            record(connection, "galata", "chat.moved", ":".join(place), move.old, new)

        await self._database.write(op)
        for known, target in self._moved.items():
            if target == move.old and (known.channel, known.account) == place:
                self._moved[known] = new
        self._moved[old] = new
        return True

    async def carry(self, move: Move, rekey: Callable[[str], str]) -> list[str]:
        """Let all rows of the chat follow, in one transaction; repeats are harmless. `rekey` makes a
        session's new key of its old one. Returns the keys of the new chat's sessions. No run of
        either chat may be under way."""

        def op(connection: sqlite3.Connection) -> list[str]:
            carry(connection, (move.channel, move.account), move.old, move.new, rekey)
            rows = connection.execute(
                "SELECT key FROM sessions WHERE channel = ? AND account = ? AND chat = ?",
                (move.channel, move.account, move.new),
            )
            return [str(row[0]) for row in rows]

        keys = await self._database.write(op)
        self._gone.discard(ChatPlace(move.channel, move.account, move.old))
        return keys

    async def session_keys(self, place: ChatPlace) -> list[str]:
        """The keys of the chat's sessions."""
        rows = await self._database.read(
            "SELECT key FROM sessions WHERE channel = ? AND account = ? AND chat = ? ORDER BY id",
            (place.channel, place.account, place.chat),
        )
        return [str(row[0]) for row in rows]

    async def session_ids(self, place: ChatPlace) -> list[int]:
        """The chat's sessions by number."""
        rows = await self._database.read(
            "SELECT id FROM sessions WHERE channel = ? AND account = ? AND chat = ? ORDER BY id",
            (place.channel, place.account, place.chat),
        )
        return [int(row[0]) for row in rows]

    # Gone and back --------------------------------------------------------------------------------

    def is_gone(self, place: ChatPlace) -> bool:
        """Whether nothing can be delivered there until something comes from there."""
        return place in self._gone or ChatPlace(place.channel, place.account, "") in self._gone

    async def gone(self, place: ChatPlace, *, removed: bool) -> None:
        """The chat cannot be reached any more; `removed`: the platform says that the bot was removed.
        A later report changes the first one's time only from unreachable to removed."""
        values = (place.channel, place.account, place.chat, int(removed), stamp())

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO gone_chats VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (channel, account, chat) DO UPDATE"
                " SET removed = 1, at = excluded.at WHERE excluded.removed > removed",
                values,
            )

        await self._database.write(op)
        self._gone.add(place)

    async def back(self, place: ChatPlace) -> bool:
        """The chat can be reached again, and with it its account; whether it could not before."""
        if not self.is_gone(place):
            return False

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "DELETE FROM gone_chats WHERE channel = ? AND account = ? AND chat IN (?, '')",
                (place.channel, place.account, place.chat),
            )

        await self._database.write(op)
        self._gone -= {place, ChatPlace(place.channel, place.account, "")}
        return True

    async def removed_before(self, moment: datetime) -> list[ChatPlace]:
        """The chats, and whole accounts, that the bot was removed from before `moment`, with
        something stored of them: each chat by itself."""
        rows = await self._database.read(
            "SELECT DISTINCT s.channel, s.account, s.chat FROM gone_chats g JOIN sessions s"
            " ON s.channel = g.channel AND s.account = g.account AND g.chat IN (s.chat, '')"
            " WHERE g.removed = 1 AND g.at < :before"
            " UNION SELECT channel, account, chat FROM gone_chats"
            " WHERE removed = 1 AND at < :before AND chat <> ''",
            {"before": stamp(moment)},
        )
        return [ChatPlace(*row) for row in rows]

    async def erase(self, place: ChatPlace, *, alive: bool = False, by: str = "galata") -> None:
        """Remove everything that is stored of the chat, in one transaction: what it used stays as
        totals without a person, and a row in the audit table says that it was erased. `alive`: people
        are still there; `by`: who has wanted it; see `memory.chats.erasing`."""
        names = self.names(place)

        def op(connection: sqlite3.Connection) -> None:
            erase(connection, (place.channel, place.account, place.chat), names, alive=alive, by=by)

        await self._database.write(op)
        await self._database.scrub()
        if alive:
            return
        self._gone.discard(place)
