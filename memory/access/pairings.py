"""Strangers who ask to be let in: a code for each request, and what an owner has decided."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from memory.access.admissions import Someone, let_in
from memory.access.codes import digest, note_wrong, plain, short_code, too_many_wrong
from memory.audit import record
from memory.clock import stamp
from memory.database import Database

LIFETIME: Final = timedelta(hours=1)
MOST_OPEN: Final = 3  # on a channel; one more replaces the oldest
MOST_A_DAY: Final = 3  # of one person
REFUSED_FOR: Final = timedelta(days=30)  # somebody whom an owner refused does not ask again
MOST_TOLD: Final = 10  # requests on a channel within an hour that owners are asked about

_COLUMNS = "id, channel, person, name, language, state, asked_at, expires_at, decided_by"
_OPEN = "state = 'open' AND expires_at > ?"


@dataclass(frozen=True, slots=True)
class Pairing:
    """A request. `state` is that of the row; one that is past `expires_at` counts no more."""

    id: int
    who: Someone
    state: Literal["open", "allowed", "refused", "replaced"]
    asked_at: str
    expires_at: str
    decided_by: str | None

    @property
    def over(self) -> bool:
        """Whether it can be decided no more."""
        return self.state != "open" or self.expires_at <= stamp()


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of asking. `new`: a request with this code; `waits`: there is one already; `no`: this
    person may not ask now. `tell`: owners are to be asked."""

    how: Literal["new", "waits", "no"]
    code: str = ""
    id: int = 0
    tell: bool = False


@dataclass(frozen=True, slots=True)
class Decided:
    """`done`: by this very decision. `over`: it was decided, replaced or too late before; `unknown`: no
    such request; `too_many`: too many wrong codes, so that this one was not looked at."""

    how: Literal["done", "over", "unknown", "too_many"]
    pairing: Pairing | None = None


class Pairings:
    """All requests."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ask(self, who: Someone) -> Asked:
        """Ask for that person, unless they have asked already, or too often."""
        now, code = datetime.now(UTC), short_code()
        return await self._database.write(lambda connection: _ask(connection, who, code, now))

    async def told(self, id_: int) -> None:
        """The owners were asked."""

        def op(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE pairings SET told_at = ? WHERE id = ?", (stamp(), id_))

        await self._database.write(op)

    async def open(self, *, untold: bool = False) -> list[Pairing]:
        """Those that wait for an owner; `untold`: which owners were not asked about yet."""
        where = _OPEN + (" AND told_at IS NULL" if untold else "")
        rows = await self._database.read(
            f"SELECT {_COLUMNS} FROM pairings WHERE {where} ORDER BY id",  # noqa: S608
            (stamp(),),
        )
        return [_pairing(row) for row in rows]

    async def decide(self, id_: int, by: str, *, allow: bool) -> Decided:
        """By a button."""

        def op(connection: sqlite3.Connection) -> Decided:
            return _decide(connection, _one(connection, "id", id_), by, allow=allow)

        return await self._database.write(op)

    async def approve(self, code: str, by: str) -> Decided:
        """By the code, which `by` has typed."""
        now = datetime.now(UTC)

        def op(connection: sqlite3.Connection) -> Decided:
            if too_many_wrong(connection, by, now):
                return Decided("too_many")
            found = _one(connection, "code_hash", digest(plain(code)))
            if found is None:
                note_wrong(connection, by, now)
            return _decide(connection, found, by, allow=True)

        return await self._database.write(op)


def _ask(connection: sqlite3.Connection, who: Someone, code: str, now: datetime) -> Asked:
    connection.execute("DELETE FROM pairings WHERE asked_at <= ?", (stamp(now - REFUSED_FOR),))
    own = connection.execute(
        "SELECT state, expires_at, asked_at FROM pairings WHERE channel = ? AND person = ?",
        (who.channel, who.person),
    ).fetchall()
    if any(row["state"] == "open" and row["expires_at"] > stamp(now) for row in own):
        return Asked("waits")
    today = [row for row in own if row["asked_at"] > stamp(now - timedelta(days=1))]
    if len(today) >= MOST_A_DAY or any(row["state"] == "refused" for row in own):
        return Asked("no")
    connection.execute(
        f"UPDATE pairings SET state = 'replaced' WHERE channel = ? AND {_OPEN} AND id NOT IN"  # noqa: S608
        f" (SELECT id FROM pairings WHERE channel = ? AND {_OPEN} ORDER BY id DESC LIMIT ?)",
        (who.channel, stamp(now), who.channel, stamp(now), MOST_OPEN - 1),
    )
    told = connection.execute(
        "SELECT COUNT(*) FROM pairings WHERE channel = ? AND asked_at > ?",
        (who.channel, stamp(now - LIFETIME)),
    ).fetchone()[0]
    tell = int(told) < MOST_TOLD
    cursor = connection.execute(
        "INSERT INTO pairings (channel, person, name, language, code_hash, state, asked_at,"
        " expires_at, told_at) VALUES (?, ?, ?, ?, ?, 'open', ?, ?, ?)",
        (
            *(who.channel, who.person, who.name, who.language, digest(code)),
            *(stamp(now), stamp(now + LIFETIME), None if tell else stamp(now)),
        ),
    )
    return Asked("new", code, int(cursor.lastrowid or 0), tell)


def _decide(
    connection: sqlite3.Connection, found: Pairing | None, by: str, *, allow: bool
) -> Decided:
    if found is None:
        return Decided("unknown")
    if found.over:
        return Decided("over", found)
    connection.execute(
        "UPDATE pairings SET state = ?, decided_by = ?, decided_at = ? WHERE id = ?",
        ("allowed" if allow else "refused", by, stamp(), found.id),
    )
    if allow:
        let_in(connection, found.who, "pairing", by)
    else:
        record(connection, by, "person.refused", str(found.who))
    return Decided("done", found)


def _one(connection: sqlite3.Connection, column: str, value: object) -> Pairing | None:
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM pairings WHERE {column} = ?",  # noqa: S608 - our columns
        (value,),
    ).fetchone()
    return None if row is None else _pairing(row)


def _pairing(row: sqlite3.Row) -> Pairing:
    who = Someone(row["channel"], row["person"], row["name"], row["language"])
    return Pairing(
        row["id"], who, row["state"], row["asked_at"], row["expires_at"], row["decided_by"]
    )
