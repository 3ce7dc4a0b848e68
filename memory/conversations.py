"""Sessions and their messages. Stored history is append-only; what goes to a model starts at the
newest boundary."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agent.messages import Message, encode
from memory.clock import stamp
from memory.database import Database
from memory.forgotten.resting import Noted, scrub_lately
from memory.stored_messages import readable


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """A session's key, and where on its platform it is."""

    key: str
    channel: str
    account: str
    chat: str
    thread: str | None


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message with its row id, run, place in the run, and time (ISO 8601, UTC)."""

    id: int
    run_id: str
    ordinal: int
    message: Message
    created_at: str


BoundaryKind = Literal["new", "trim", "compact", "aggressive", "emergency", "reset"]


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where a context starts: at message `start_id`. Turns that begin before `brief_id` go to a model
    as question and final answer only; `note` stands for what left before."""

    kind: BoundaryKind
    start_id: int
    brief_id: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What of a session goes to a model, oldest first, and the boundary that it starts at.
    `boundary_id`: that row's id, 0 without one; `read_at`: when this was so (ISO, UTC); `stopped`: runs
    that came to nothing but their question, which a stop has dropped while it waited."""

    messages: tuple[StoredMessage, ...]
    boundary: Boundary | None
    boundary_id: int = 0
    read_at: str = ""
    stopped: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ConversationSize:
    """The conversation since the last `/new`: messages, characters stored, time of the first."""

    messages: int
    characters: int
    started_at: str | None


def session_id(connection: sqlite3.Connection, place: SessionPlace) -> int:
    """The session's row id, made when it is new. For use inside a write."""
    # DO UPDATE, since DO NOTHING returns no row: one statement instead of two.
    rows = connection.execute(
        "INSERT INTO sessions (key, channel, account, chat, thread, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET key = excluded.key"
        " RETURNING id",
        (place.key, place.channel, place.account, place.chat, place.thread, stamp()),
    )
    return int(next(iter(rows))[0])


APPEND = (
    "INSERT INTO messages (session_id, run_id, ordinal, role, body, created_at)"
    " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (run_id, ordinal) DO NOTHING"
)
LEAVE_OUT = "INSERT INTO left_out (run_id, session_id, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_LEAVE_OUT_TRIES = (
    "WITH RECURSIVE tries (run_id) AS (VALUES (:run) UNION SELECT r.retry_of FROM runs r"
    " JOIN tries t ON t.run_id = r.run_id WHERE r.retry_of IS NOT NULL)"
    " INSERT INTO left_out (run_id, session_id, at) SELECT run_id, :s, :at FROM tries WHERE true"
    " ON CONFLICT DO NOTHING"
)


class Conversations:
    """The messages of all sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(self, place: SessionPlace) -> int:
        """The session's row id, made when it is new."""

        def op(connection: sqlite3.Connection) -> int:
            return session_id(connection, place)

        return await self._database.write(op)

    async def append(
        self, session: int, run_id: str, messages: Sequence[tuple[int, Message]]
    ) -> None:
        """Store messages as (ordinal, message). Idempotent on (run, ordinal); returns when they are
        committed."""
        rows = [message_row(session, run_id, ordinal, message) for ordinal, message in messages]

        def op(connection: sqlite3.Connection) -> None:
            connection.executemany(APPEND, rows)

        await self._database.write(op)

    async def context(self, session: int) -> Context:
        """The messages since the newest boundary, without runs that were taken out."""
        return await self._database.look(lambda connection: context_of(connection, session))

    async def bound(
        self,
        session: int,
        boundary: Boundary,
        *,
        since: int | None = None,
        replaced: Sequence[int] = (),
        noted: Noted | None = None,
    ) -> bool:
        """From now on the context starts there; what was said stays stored. `since`: only while that
        row is the newest boundary, and no run of the messages `replaced` has left the context. What its
        note was made of (`noted`) may have been forgotten meanwhile: that goes from it. Whether it was
        written."""
        values = (
            session,
            boundary.kind,
            boundary.start_id,
            boundary.brief_id,
            boundary.note,
            stamp(),
        )

        def op(connection: sqlite3.Connection) -> bool:
            newest = connection.execute(
                "SELECT COALESCE(MAX(id), 0) FROM boundaries WHERE session_id = ?", (session,)
            ).fetchone()
            if since is not None and (newest[0] != since or _left_out(connection, replaced)):
                return False
            connection.execute(
                "INSERT INTO boundaries (session_id, kind, start_id, brief_id, note, created_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                values,
            )
            if noted is not None:
                scrub_lately(connection, session, noted)
            return True

        return await self._database.write(op)

    async def begin_new(self, session: int) -> None:
        """From now on the context is empty; what was said stays stored."""

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO boundaries (session_id, kind, start_id, created_at) VALUES"
                " (?, 'new', (SELECT COALESCE(MAX(id), 0) + 1 FROM messages), ?)",
                (session, stamp()),
            )

        await self._database.write(op)

    async def emergencies(self, session: int) -> tuple[int, str | None]:
        """How many emergencies the conversation had since it began, and when the last one was."""
        rows = await self._database.read(
            "SELECT COUNT(*), MAX(created_at) FROM boundaries WHERE session_id = :s"
            " AND kind = 'emergency' AND id > COALESCE((SELECT MAX(id) FROM boundaries"
            " WHERE session_id = :s AND kind = 'new'), 0)",
            {"s": session},
        )
        return int(rows[0][0]), rows[0][1]

    async def last_run(self, session: int, *, besides: str | None = None) -> str | None:
        """The newest run of the context (other than `besides`), or None when there is none."""
        context = await self.context(session)
        runs = (stored.run_id for stored in reversed(context.messages))
        return next((run for run in runs if run != besides), None)

    async def question_of(self, run_id: str) -> Message | None:
        """What the run was asked, or None when there is no such run."""
        rows = await self._database.read(
            "SELECT body FROM messages WHERE run_id = ? AND ordinal = 0", (run_id,)
        )
        return readable(rows[0]["body"]) if rows else None

    async def of_run(self, run_id: str) -> list[tuple[int, Message]]:
        """What is stored of a run, as (ordinal, message) in its own order."""
        rows = await self._database.read(
            "SELECT ordinal, body FROM messages WHERE run_id = ? ORDER BY ordinal", (run_id,)
        )
        return [(int(row[0]), readable(row[1])) for row in rows]

    async def leave_out(self, session: int, run_id: str) -> None:
        """The messages of the run, and of those whose question it has answered again, leave the
        context; they stay stored. Idempotent."""

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(_LEAVE_OUT_TRIES, {"run": run_id, "s": session, "at": stamp()})

        await self._database.write(op)

    async def size(self, session: int) -> ConversationSize:
        """How large the conversation since the last `/new` is."""
        rows = await self._database.read(
            "SELECT COUNT(*), COALESCE(SUM(LENGTH(body)), 0), MIN(created_at) FROM messages"
            " WHERE session_id = :s AND id >= COALESCE((SELECT MAX(start_id) FROM boundaries"
            " WHERE session_id = :s AND kind = 'new'), 0)",
            {"s": session},
        )
        count, characters, first = rows[0]
        return ConversationSize(int(count), int(characters), first)

    async def speaker(self, session: int, person: str) -> int:
        """The person's number within the session, from 1 in order of appearance."""
        known = await self._database.read(
            "SELECT number FROM speakers WHERE session_id = ? AND person = ?", (session, person)
        )
        if known:
            return int(known[0][0])

        def op(connection: sqlite3.Connection) -> int:
            connection.execute(
                "INSERT INTO speakers (session_id, person, number) SELECT :s, :p,"
                " (SELECT COALESCE(MAX(number), 0) + 1 FROM speakers WHERE session_id = :s)"
                " WHERE true ON CONFLICT (session_id, person) DO NOTHING",
                {"s": session, "p": person},
            )
            rows = connection.execute(
                "SELECT number FROM speakers WHERE session_id = ? AND person = ?",
                (session, person),
            )
            return int(next(iter(rows))[0])

        return await self._database.write(op)


def _left_out(connection: sqlite3.Connection, messages: Sequence[int]) -> bool:
    """Whether a run of these messages was taken out of the context."""
    found = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM messages m JOIN left_out l ON l.run_id = m.run_id"
        " WHERE m.id IN (SELECT value FROM json_each(?)))",
        (json.dumps(list(messages)),),
    )
    return bool(found.fetchone()[0])


def message_row(session: int, run_id: str, ordinal: int, message: Message) -> tuple[object, ...]:
    """The values of `APPEND`."""
    return (session, run_id, ordinal, message.role, encode(message), stamp())


def context_of(connection: sqlite3.Connection, session: int) -> Context:
    """As `Conversations.context`, inside a look."""
    now = stamp()
    newest = connection.execute(
        "SELECT kind, start_id, brief_id, note, id FROM boundaries WHERE session_id = ?"
        " ORDER BY id DESC LIMIT 1",
        (session,),
    ).fetchone()
    boundary = None if newest is None else Boundary(*newest[:4])
    rows = connection.execute(
        "SELECT id, run_id, ordinal, body, created_at FROM messages"
        " WHERE session_id = :s AND id >= :start AND run_id NOT IN"
        " (SELECT run_id FROM left_out WHERE session_id = :s) ORDER BY id",
        {"s": session, "start": boundary.start_id if boundary else 0},
    )
    boundary_id = 0 if newest is None else int(newest["id"])
    messages = tuple(map(_stored, rows))
    return Context(messages, boundary, boundary_id, now, _stopped(connection, messages))


def _stopped(connection: sqlite3.Connection, messages: Sequence[StoredMessage]) -> frozenset[str]:
    """Of the runs with nothing but their question, those that a stop has dropped."""
    alone = {stored.run_id for stored in messages if stored.ordinal == 0}
    alone -= {stored.run_id for stored in messages if stored.ordinal}
    if not alone:
        return frozenset()
    rows = connection.execute(
        "SELECT run_id FROM inbox WHERE stopped_by IS NOT NULL"
        " AND run_id IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(alone)),),
    )
    return frozenset(str(row[0]) for row in rows.fetchall())


def _stored(row: sqlite3.Row) -> StoredMessage:
    return StoredMessage(
        int(row["id"]),
        str(row["run_id"]),
        int(row["ordinal"]),
        readable(row["body"]),
        str(row["created_at"]),
    )
