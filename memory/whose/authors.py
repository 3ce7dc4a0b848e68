"""Who had what written into a memory, and who may change it. By the platform's id, never by a name."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from memory.clock import stamp
from memory.database import Database
from memory.markdown.facts import FactsRefused
from memory.scopes import ChatScope
from memory.snapshots import drop_snapshots, outdate_snapshots
from memory.tombstones import hash_of

Kind = Literal["remembered", "corrected", "forgotten"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """A change that was made: `number` of the entry, or how much was forgotten; `text`: what is known
    now; `changes`: its rows, when they are written."""

    kind: Kind
    number: int
    text: str = ""
    changes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """Who changes a memory: their id, their name, and the run that does it for them, if one does.
    `may_change_all`: whether they may change what others have said, asked where that matters."""

    person: str
    name: str
    may_change_all: Callable[[], Awaitable[bool]]
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One entry was changed by a person: which, in what way, and when."""

    id: int
    kind: Kind
    number: int
    hash: str
    person: str
    at: str


_CHANGE = "SELECT id, kind, number, hash, person, at FROM memory_changes"


class Authors:
    """Of all entries."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def check(self, chat: ChatScope, by: Member, said: Iterable[tuple[int, str]]) -> None:
        """Raises `FactsRefused` unless `by` may change what is said: (number of the entry or 0,
        normalised text). Whose it is nobody knows where a hand or a summary has written it."""
        for number, words in said:
            if not await self.has_said(chat, by, words) and not await by.may_change_all():
                raise FactsRefused("not_yours", number)

    async def has_said(self, chat: ChatScope, by: Member, words: str) -> bool:
        """Whether they have had it written."""
        rows = await self._database.read(
            "SELECT 1 FROM memory_changes WHERE scope = ? AND hash = ? AND person = ?"
            " AND kind <> 'forgotten'",
            (chat.scope, hash_of(words), by.person),
        )
        return bool(rows)

    async def corrected(self, chat: ChatScope) -> frozenset[str]:
        """The hashes of what entries were corrected to by people."""
        rows = await self._database.read(
            "SELECT DISTINCT hash FROM memory_changes WHERE scope = ? AND kind = 'corrected'",
            (chat.scope,),
        )
        return frozenset(str(row[0]) for row in rows)

    async def undoable(self, run_id: str) -> list[Change]:
        """What a run has remembered or corrected: of each entry the newest change."""
        rows = await self._database.read(
            f"{_CHANGE} WHERE run_id = ? AND kind <> 'forgotten'"
            " GROUP BY number HAVING id = MAX(id) ORDER BY id",
            (run_id,),
        )
        return [Change(*row) for row in rows]

    async def change(self, chat: ChatScope, id_: int) -> Change | None:
        """A change of this memory."""
        rows = await self._database.read(
            f"{_CHANGE} WHERE id = ? AND scope = ?",
            (id_, chat.scope),
        )
        return Change(*rows[0]) if rows else None

    async def is_newest(self, chat: ChatScope, change: Change) -> bool:
        """Whether nobody, and no night, has changed the memory after that."""
        later = await self._database.read(
            "SELECT 1 FROM memory_changes WHERE scope = :scope AND id > :id UNION ALL"
            " SELECT 1 FROM nights WHERE scope = :scope AND changed_at > :at",
            {"scope": chat.scope, "id": change.id, "at": change.at},
        )
        return not later

    async def receipts(self, run_id: str) -> list[tuple[Kind, int]]:
        """What a run has changed so far: the kind, and the number of the entry or how much."""
        rows = await self._database.read(
            "SELECT kind, number FROM memory_changes WHERE run_id = ? GROUP BY kind, number, at"
            " ORDER BY MIN(id)",
            (run_id,),
        )
        return [(row[0], int(row[1])) for row in rows]


def note(
    connection: sqlite3.Connection,
    chat: ChatScope,
    by: Member,
    receipt: Receipt,
    *said: str,
    at: str | None = None,
) -> tuple[int, ...]:
    """Write down who has made the change (`at`: when, now without it); the next turn sees the memory as
    it is then. For use inside a write. The rows' ids, one after another."""
    at, ids = at or stamp(), list[int]()
    for each in said:
        cursor = connection.execute(
            "INSERT INTO memory_changes (scope, kind, number, hash, run_id, person, at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (chat.scope, receipt.kind, receipt.number, hash_of(each), by.run_id, by.person, at),
        )
        ids.append(int(cursor.lastrowid or 0))
    if receipt.kind == "forgotten":
        drop_snapshots(connection, chat)
    else:
        outdate_snapshots(connection, chat)
    return tuple(ids)
