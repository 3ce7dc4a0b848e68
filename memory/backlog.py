"""Questions that waited through a long outage: those of one chat together, and those set aside."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from memory.chats.reach import ChatPlace
from memory.clock import stamp
from memory.database import Database
from memory.outbox import NewReply, put_reply


@dataclass(frozen=True, slots=True)
class MissedRow:
    """A question that is open. `run_id` is set when a run has taken it."""

    id: int
    session_key: str
    session: int
    body: str
    run_id: str | None


class BacklogStore:
    """The inbox as a chat's backlog."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def waiting(self, place: ChatPlace) -> list[MissedRow]:
        """The chat's open questions in all of its sessions, by the platform's time."""
        rows = await self._database.read(
            "SELECT i.id, s.key, i.session_id, i.body, i.run_id"
            " FROM sessions s JOIN inbox i INDEXED BY inbox_open ON i.session_id = s.id"
            " WHERE s.channel = ? AND s.account = ? AND s.chat = ?"
            " AND i.kind = 'turn' AND i.state = 'open' ORDER BY i.sent_at, i.id",
            (place.channel, place.account, place.chat),
        )
        return [MissedRow(*row) for row in rows]

    async def set_aside(self, ids: Iterable[int], name: str, session: int, notice: NewReply) -> int:
        """Close these, so that they can be opened again under `name`, and put the notice that says so
        into the outbox, in one transaction; its row there."""
        now = stamp()
        values = [(now, name, id_) for id_ in ids]

        def op(connection: sqlite3.Connection) -> int:
            connection.executemany(
                "UPDATE inbox SET state = 'done', outcome = 'set_aside', done_at = ?,"
                " stopped_by = ? WHERE id = ? AND state = 'open' AND run_id IS NULL",
                values,
            )
            return put_reply(connection, session, notice)

        return await self._database.write(op)

    async def reopen(self, place: ChatPlace, name: str) -> list[MissedRow]:
        """Open what was set aside in this chat under `name`, whoever had asked it."""

        def op(connection: sqlite3.Connection) -> set[int]:
            rows = connection.execute(
                "UPDATE inbox SET state = 'open', outcome = NULL, done_at = NULL, stopped_by = NULL"
                " WHERE stopped_by = ? AND outcome = 'set_aside' AND session_id IN"
                " (SELECT id FROM sessions WHERE channel = ? AND account = ? AND chat = ?)"
                " RETURNING id",
                (name, place.channel, place.account, place.chat),
            ).fetchall()
            return {int(row[0]) for row in rows}

        reopened = await self._database.write(op)
        return [row for row in await self.waiting(place) if row.id in reopened]
