"""Codes that let in whoever uses them: so many people, until a time."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from memory.access.admissions import Someone, let_in, stands
from memory.access.codes import digest, invite_code, note_wrong, too_many_wrong
from memory.audit import record
from memory.clock import stamp
from memory.database import Database

Used = Literal["in", "already", "bad", "shut_out", "too_many"]
"""What came of using one. `bad`: it is none, used up or over; `shut_out`: an owner has to decide about
this person; `too_many`: wrong codes, so that this one was not looked at."""

_GOOD = "revoked_at IS NULL AND expires_at > :now"


@dataclass(frozen=True, slots=True)
class Invite:
    """One that is good: how many people it lets in, and how many it has let in."""

    id: int
    channel: str
    uses: int
    used: int
    expires_at: str


class Invites:
    """All of them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def make(self, channel: str, uses: int, lifetime: timedelta, by: str) -> str:
        """A new code for that channel."""
        now, code = datetime.now(UTC), invite_code()

        def op(connection: sqlite3.Connection) -> None:
            until = stamp(now + lifetime)
            cursor = connection.execute(
                "INSERT INTO invites (channel, code_hash, uses, made_by, made_at, expires_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (channel, digest(code), uses, by, stamp(now), until),
            )
            what = f"{uses} people until {until[:16]}"
            record(connection, by, "invite.made", f"invite:{cursor.lastrowid}", None, what)

        await self._database.write(op)
        return code

    async def use(self, code: str, who: Someone) -> Used:
        """Let the person in, if the code is good. Who was shut out comes in by no code."""
        now = datetime.now(UTC)
        return await self._database.write(lambda connection: _use(connection, code, who, now))

    async def good(self) -> list[Invite]:
        """Those that can still be used, the oldest first."""
        rows = await self._database.read(
            "SELECT i.id, i.channel, i.uses, COUNT(u.person), i.expires_at FROM invites i"  # noqa: S608
            f" LEFT JOIN invite_uses u ON u.invite_id = i.id WHERE {_GOOD}"
            " GROUP BY i.id HAVING COUNT(u.person) < i.uses ORDER BY i.id",
            {"now": stamp()},
        )
        return [Invite(*row) for row in rows]

    async def revoke(self, id_: int, by: str) -> bool:
        """Nobody comes in by it any more; false when it was over already."""

        def op(connection: sqlite3.Connection) -> bool:
            cursor = connection.execute(
                f"UPDATE invites SET revoked_at = :now WHERE id = :id AND {_GOOD}",  # noqa: S608
                {"now": stamp(), "id": id_},
            )
            if cursor.rowcount:
                record(connection, by, "invite.revoked", f"invite:{id_}")
            return bool(cursor.rowcount)

        return await self._database.write(op)


def _use(connection: sqlite3.Connection, code: str, who: Someone, now: datetime) -> Used:
    if too_many_wrong(connection, str(who), now):
        return "too_many"
    standing = stands(connection, who)
    if standing is not None:
        return "already" if standing == "in" else "shut_out"
    row = connection.execute(
        "SELECT id, made_by, uses - (SELECT COUNT(*) FROM invite_uses WHERE invite_id = id)"  # noqa: S608
        f" FROM invites WHERE code_hash = :code AND channel = :channel AND {_GOOD}",
        {"code": digest(code), "channel": who.channel, "now": stamp(now)},
    ).fetchone()
    if row is None or row[2] <= 0:
        note_wrong(connection, str(who), now)
        return "bad"
    connection.execute("INSERT INTO invite_uses VALUES (?, ?, ?)", (row[0], who.person, stamp(now)))
    let_in(connection, who, f"invite:{row[0]}", row[1])
    return "in"
