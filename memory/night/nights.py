"""How the newest night of each scope went, and what of it nobody has been told."""

from __future__ import annotations

import json
import operator
import sqlite3
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from memory.clock import stamp
from memory.database import Database
from memory.scopes import SHARED, ChatScope

Outcome = Literal["changed", "same", "refused", "failed", "put_off"]


@dataclass(frozen=True, slots=True)
class Night:
    """How the newest night of a scope went. `failures`: nights in a row of which nothing came;
    `passed`: notes that were passed over for that. `found`, `left_as`: digests of `MEMORY.md` before
    its first change and after its last (`memory.markdown.versions`); empty where it made none, or
    somebody else one in between."""

    day: date
    outcome: Outcome
    reason: str = ""
    added: int = 0
    merged: int = 0
    corrected: int = 0
    dropped: int = 0
    failures: int = 0
    passed: int = 0
    found: str = ""
    left_as: str = ""

    def failures_with(self, day: date) -> int:
        """How many there are with one that fails on that day: tries of one day count once."""
        tried = self.day == day and self.outcome in ("refused", "failed") and self.failures > 0
        return self.failures + (not tried)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """How many entries it has added, merged, corrected and dropped."""
        return self.added, self.merged, self.corrected, self.dropped


class Nights:
    """Of all scopes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self, scope: str, night: Night) -> None:
        """Keep how it went. What it changed, however it ended, is to be told together with what was not
        told before; until then it stands. With that, and with what else was done for the same day, it
        is taken back as one. Of a shared memory, which each chat is told by itself, only the newest
        night that changed something is told."""
        day, at = night.day.isoformat(), stamp()

        def op(connection: sqlite3.Connection) -> None:
            owed, found, left_as = night.counts, night.found, night.left_as
            passed_owed = night.passed
            changed_day, changed_at = (day, at) if any(owed) else ("", "")
            earlier = connection.execute(
                "SELECT * FROM nights WHERE scope = ?", (scope,)
            ).fetchone()
            if earlier is not None and not any(owed):
                owed = _owed(earlier["owed"]) if scope == SHARED else owed
                found, left_as = earlier["found"], earlier["left_as"]
                changed_day, changed_at = earlier["changed_day"], earlier["changed_at"]
            elif earlier is not None:
                together = not earlier["told"] or earlier["changed_day"] == day
                found = earlier["found"] if together and found == earlier["left_as"] else found
            if earlier is not None:
                passed_owed += int(earlier["passed_owed"])
            if earlier is not None and not earlier["told"]:
                owed = _sum(owed, _owed(earlier["owed"]))
            values = (
                *(scope, day, at, night.outcome, night.reason, *night.counts, night.failures),
                *(int(scope == SHARED or not any(owed)), found, left_as),
                *(json.dumps(owed), changed_day, changed_at, night.passed, passed_owed),
            )
            connection.execute("DELETE FROM nights WHERE scope = ?", (scope,))
            connection.execute(
                "INSERT INTO nights (scope, day, at, outcome, reason, added, merged, corrected,"
                " dropped, failures, told, found, left_as, owed, changed_day, changed_at, passed,"
                " passed_owed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )

        await self._database.write(op)

    async def newest(self, scope: str) -> Night | None:
        """How the newest night went."""
        rows = await self._database.read(
            "SELECT day, outcome, reason, added, merged, corrected, dropped, failures, passed"
            " FROM nights WHERE scope = ?",
            (scope,),
        )
        return _night(rows[0]) if rows else None

    async def traces(self, scope: str, day: date) -> tuple[str, str] | None:
        """What the night of that day, and those that were told with it, found and left of `MEMORY.md`;
        None where another one has changed something since."""
        rows = await self._database.read(
            "SELECT found, left_as FROM nights WHERE scope = ? AND changed_day = ?",
            (scope, day.isoformat()),
        )
        return (str(rows[0][0]), str(rows[0][1])) if rows else None

    async def to_tell_in(self, chat: ChatScope, since: datetime) -> Night | None:
        """As `to_tell`; a night of a shared memory is told in each of its chats."""
        if chat.scope != SHARED:
            return await self.to_tell(chat.scope, since)
        rows = await self._database.read(
            "SELECT changed_day, owed, changed_at FROM nights WHERE scope = ? AND changed_at >= ?",
            (SHARED, stamp(since)),
        )
        if not rows:
            return None
        key = ":".join(("night", chat.channel, chat.account, chat.chat, rows[0]["changed_at"]))
        told = "INSERT INTO notices VALUES (?, ?) ON CONFLICT DO NOTHING"
        fresh = await self._database.write(lambda c: c.execute(told, (key, stamp())).rowcount)
        return _changes(rows[0]) if fresh else None

    async def to_tell(self, scope: str, since: datetime) -> Night | None:
        """What nights have changed that was not told, the newest of them after `since`; told with this.
        It has the day by which that is taken back."""
        rows = await self._database.read(
            "SELECT 1 FROM nights WHERE scope = ? AND told = 0 AND changed_at >= ?",
            (scope, stamp(since)),
        )
        if not rows:
            return None

        def op(connection: sqlite3.Connection) -> Night | None:
            row = connection.execute(
                "UPDATE nights SET told = 1 WHERE scope = ? AND told = 0"
                " RETURNING changed_day, owed",
                (scope,),
            ).fetchone()
            return None if row is None else _changes(row)

        return await self._database.write(op)

    async def passed_to_tell(self, scope: str) -> int:
        """How many notes nights have passed over without that anybody was told; told with this."""
        owed = "SELECT passed_owed FROM nights WHERE scope = ? AND passed_owed > 0"
        if not await self._database.read(owed, (scope,)):
            return 0

        def op(connection: sqlite3.Connection) -> int:
            row = connection.execute(owed, (scope,)).fetchone()
            connection.execute("UPDATE nights SET passed_owed = 0 WHERE scope = ?", (scope,))
            return 0 if row is None else int(row[0])

        return await self._database.write(op)


def _changes(row: sqlite3.Row) -> Night:
    """What is to be told, with the day by which it is taken back."""
    return Night(date.fromisoformat(row["changed_day"]), "changed", "", *_owed(row["owed"]))


def _owed(text: str) -> tuple[int, int, int, int]:
    added, merged, corrected, dropped = json.loads(text or "[0, 0, 0, 0]")
    return added, merged, corrected, dropped


def _sum(
    some: tuple[int, int, int, int], more: tuple[int, int, int, int]
) -> tuple[int, int, int, int]:
    added, merged, corrected, dropped = map(operator.add, some, more)
    return added, merged, corrected, dropped


def _night(row: sqlite3.Row) -> Night:
    return Night(date.fromisoformat(row["day"]), row["outcome"], *list(row)[2:9])
