"""People who were let in, and people who were shut out. Each change leaves a row in the audit table."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Literal

from memory.audit import record
from memory.clock import stamp
from memory.database import Database

State = Literal["in", "out"]


@dataclass(frozen=True, slots=True)
class Someone:
    """A person by their id on a channel. `name` and `language` (a BCP 47 tag) are what they or their
    client say: untrusted."""

    channel: str
    person: str
    name: str = ""
    language: str | None = None

    def __str__(self) -> str:
        return f"{self.channel}:{self.person}"


@dataclass(frozen=True, slots=True)
class Admission:
    """A row; the columns are described in the migration."""

    who: Someone
    state: State
    via: str
    by: str
    at: str


class Admissions:
    """All of them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[Admission]:
        """Everybody, the newest decision first."""
        return await self._read("ORDER BY at DESC")

    async def to_greet(self) -> list[Someone]:
        """Those who were let in and have not been told so."""
        found = await self._read("WHERE state = 'in' AND greeted_at IS NULL ORDER BY at")
        return [one.who for one in found]

    async def _read(self, rest: str) -> list[Admission]:
        rows = await self._database.read(
            "SELECT channel, person, name, language, state, via, by, at FROM admissions "  # noqa: S608
            + rest
        )
        return [Admission(Someone(*row[:4]), *row[4:]) for row in rows]

    async def greeted(self, who: Someone) -> None:
        """They were told that they are let in."""

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE admissions SET greeted_at = ? WHERE channel = ? AND person = ?",
                (stamp(), who.channel, who.person),
            )

        await self._database.write(op)

    async def shut_out(self, channel: str, person: str, by: str) -> bool:
        """The person may not talk any more: ownership that a link gave ends too, and what they have
        asked and nobody has answered is closed, with the parts of answers that are not sent. False
        when they were shut out already."""

        def op(connection: sqlite3.Connection) -> bool:
            before = _stands(connection, channel, person)
            if before == "out":
                return False
            connection.execute(
                "INSERT INTO admissions (channel, person, state, name, via, by, at)"
                " VALUES (?, ?, 'out', '', 'owner', ?, ?) ON CONFLICT (channel, person)"
                " DO UPDATE SET state = 'out', via = excluded.via, by = excluded.by,"
                " at = excluded.at",
                (channel, person, by, stamp()),
            )
            connection.execute(
                "DELETE FROM owners WHERE channel = ? AND person = ?", (channel, person)
            )
            _close(connection, "i.person = ?", (channel, person))
            record(connection, by, "person.revoked", f"{channel}:{person}", before, "out")
            return True

        return await self._database.write(op)

    async def close(self, channel: str, person: str) -> None:
        """Nothing that the person has asked is answered any more."""
        await self._database.write(
            lambda connection: _close(connection, "i.person = ?", (channel, person))
        )

    async def close_in(self, channel: str, person: str, session: int) -> None:
        """The same, of what they have asked in one session."""
        await self._database.write(
            lambda connection: _close(
                connection, "i.person = ? AND i.session_id = ?", (channel, person, session)
            )
        )


def let_in(connection: sqlite3.Connection, who: Someone, via: str, by: str) -> None:
    """Inside the write that decides it."""
    before = _stands(connection, who.channel, who.person)
    connection.execute(
        "INSERT INTO admissions VALUES (?, ?, 'in', ?, ?, ?, ?, ?, NULL)"
        " ON CONFLICT (channel, person) DO UPDATE SET state = 'in', name = excluded.name,"
        " language = excluded.language, via = excluded.via, by = excluded.by, at = excluded.at,"
        " greeted_at = NULL",
        (who.channel, who.person, who.name, who.language, via, by, stamp()),
    )
    record(connection, by, "person.let_in", str(who), before, via)


def stands(connection: sqlite3.Connection, who: Someone) -> str | None:
    """Whether the person is `in`, `out`, or None; inside a write."""
    return _stands(connection, who.channel, who.person)


def close_chat(connection: sqlite3.Connection, channel: str, chat: str) -> None:
    """Nothing that waits in the chat is answered any more; inside a write."""
    _close(connection, "i.chat = ?", (channel, chat))


def _stands(connection: sqlite3.Connection, channel: str, person: str) -> str | None:
    row = connection.execute(
        "SELECT state FROM admissions WHERE channel = ? AND person = ?", (channel, person)
    ).fetchone()
    return None if row is None else str(row[0])


def _close(connection: sqlite3.Connection, whose: str, names: tuple[str | int, ...]) -> None:
    found = f"i.channel = ? AND {whose} AND i.kind = 'turn' AND i.state = 'open'"
    connection.execute(
        "UPDATE outbox SET halted = 1 WHERE state = 'open' AND key IN"  # noqa: S608 - our words
        f" (SELECT i.run_id FROM inbox i WHERE {found})",
        names,
    )
    connection.execute(
        "UPDATE inbox SET state = 'done', outcome = 'cancelled', done_at = ? WHERE id IN"  # noqa: S608
        f" (SELECT i.id FROM inbox i WHERE {found})",
        (stamp(), *names),
    )
