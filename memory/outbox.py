"""The outbox: every final reply, stored with its parts before the first of them is sent.

A part that is about to leave as a new message is marked before; a process that finds the mark after a
crash cannot know whether the part has arrived, and sends it once more, with a note.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memory.clock import stamp
from memory.conversations import SessionPlace, session_id
from memory.database import Database
from memory.errors import StoreError

PartState = Literal["open", "sending", "resending", "sent", "uncertain", "refused"]
ReplyOutcome = Literal["delivered", "halted", "unreachable", "incomplete"]


@dataclass(frozen=True, slots=True)
class NewReply:
    """What is to be delivered. `key`: the run that it answers, or the act. `parts`: bodies, as its
    channel composed them; `private`, `reply_to`: where, in the session's place; `language`: of what
    is said beside it; `preview_id`: the message that its first part takes the place of."""

    key: str
    private: bool
    reply_to: str | None
    language: str
    parts: tuple[str, ...]
    preview_id: str | None = None
    halted: bool = False


@dataclass(frozen=True, slots=True)
class StoredPart:
    """One part as it stands. `message_id`: where it has arrived."""

    body: str
    state: PartState
    message_id: str | None


@dataclass(frozen=True, slots=True)
class OutboxReply:
    """A stored reply. `halted`: a person stopped it."""

    id: int
    key: str
    place: SessionPlace
    private: bool
    reply_to: str | None
    language: str
    preview_id: str | None
    halted: bool
    parts: tuple[StoredPart, ...]


_REPLY = (
    "SELECT o.id, o.key, s.key AS session_key, s.channel, s.account, s.chat, s.thread, o.private,"
    " o.reply_to, o.language, COALESCE((SELECT preview_id FROM runs WHERE run_id = o.key),"
    " o.preview_id) AS preview_id, o.halted"
    " FROM outbox o"
)
_PLACE = "JOIN sessions s ON s.id = o.session_id"


class Outbox:
    """All replies."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self, place: SessionPlace, reply: NewReply, *, closes: Sequence[int] = ()
    ) -> OutboxReply:
        """Store a reply, and close the acts in the inbox that it answers, in one transaction. One
        with this key that is stored already stays as it is."""

        def op(connection: sqlite3.Connection) -> int:
            connection.executemany(
                "UPDATE inbox SET state = 'done', outcome = 'done', done_at = ?"
                " WHERE id = ? AND state = 'open'",
                [(stamp(), id_) for id_ in closes],
            )
            return put_reply(connection, session_id(connection, place), reply)

        return await self.get(await self._database.write(op))

    async def mark(
        self, reply: int, number: int, state: PartState, message_id: str | None = None
    ) -> None:
        """How a part stands from now on."""

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE outbox_parts SET state = ?, message_id = COALESCE(?, message_id)"
                " WHERE reply_id = ? AND number = ?",
                (state, message_id, reply, number),
            )

        await self._database.write(op)

    async def close(
        self, reply: int, outcome: ReplyOutcome, last: tuple[int, PartState, str | None] | None
    ) -> None:
        """The reply is dealt with. `last`: how a part that was not marked yet stands."""

        def op(connection: sqlite3.Connection) -> None:
            if last is not None:
                number, state, message_id = last
                connection.execute(
                    "UPDATE outbox_parts SET state = ?, message_id = ?"
                    " WHERE reply_id = ? AND number = ?",
                    (state, message_id, reply, number),
                )
            connection.execute(
                "UPDATE outbox SET state = 'done', outcome = ?, done_at = ? WHERE id = ?",
                (outcome, stamp(), reply),
            )

        await self._database.write(op)

    async def get(self, reply: int) -> OutboxReply:
        """A stored reply. Raises `StoreError` when there is none."""
        return await self._database.look(lambda connection: find_reply(connection, reply))

    async def open_replies(self, channels: Sequence[str]) -> list[OutboxReply]:
        """What an earlier process has left, oldest first."""
        marks = ", ".join("?" for _ in channels)
        sql = (
            f"{_REPLY} INDEXED BY outbox_open {_PLACE} WHERE o.state = 'open'"
            f" AND s.channel IN ({marks}) ORDER BY o.id"
        )

        def op(connection: sqlite3.Connection) -> list[OutboxReply]:
            rows = connection.execute(sql, tuple(channels)).fetchall()
            return [_whole(connection, row) for row in rows]

        return await self._database.look(op)

    async def take_unreachable(self, channel: str, account: str, chat: str) -> list[OutboxReply]:
        """The replies that were closed since the chat could not be reached, each once. Of those alone
        that have shown something: what is left of it can be taken away now."""

        def op(connection: sqlite3.Connection) -> list[int]:
            rows = connection.execute(
                "UPDATE outbox SET outcome = 'incomplete' WHERE outcome = 'unreachable'"
                " AND session_id IN (SELECT id FROM sessions"
                " WHERE channel = ? AND account = ? AND chat = ?) RETURNING id",
                (channel, account, chat),
            )
            return [int(row[0]) for row in rows]

        replies = [await self.get(id_) for id_ in sorted(await self._database.write(op))]
        return [reply for reply in replies if reply.preview_id is not None]

    async def last_answer(self, session: int) -> OutboxReply | None:
        """The newest answer of a run in the session."""

        def op(connection: sqlite3.Connection) -> OutboxReply | None:
            row = connection.execute(
                f"{_REPLY} {_PLACE} WHERE o.session_id = ? AND EXISTS"  # noqa: S608 - a constant
                " (SELECT 1 FROM runs r WHERE r.run_id = o.key) ORDER BY o.id DESC LIMIT 1",
                (session,),
            ).fetchone()
            return None if row is None else _whole(connection, row)

        return await self._database.look(op)


def put_reply(connection: sqlite3.Connection, session: int, reply: NewReply) -> int:
    """Store a reply that is not stored yet; its row id. For use inside a write."""
    known = connection.execute("SELECT id FROM outbox WHERE key = ?", (reply.key,)).fetchone()
    if known is not None:
        return int(known[0])
    cursor = connection.execute(
        "INSERT INTO outbox (key, session_id, private, reply_to, language, preview_id, halted, state,"
        " created_at) VALUES (?, ?, ?, ?, ?, ?, ?, 'open', ?)",
        (
            reply.key,
            session,
            reply.private,
            reply.reply_to,
            reply.language,
            reply.preview_id,
            reply.halted,
            stamp(),
        ),
    )
    id_ = int(cursor.lastrowid or 0)
    connection.executemany(
        "INSERT INTO outbox_parts (reply_id, number, body, state) VALUES (?, ?, ?, 'open')",
        [(id_, number, body) for number, body in enumerate(reply.parts)],
    )
    return id_


def find_reply(connection: sqlite3.Connection, reply: int) -> OutboxReply:
    """A stored reply. Raises `StoreError` when there is none. For use inside a look or a write."""
    row = connection.execute(f"{_REPLY} {_PLACE} WHERE o.id = ?", (reply,)).fetchone()
    if row is None:
        raise StoreError(f"the outbox has no reply {reply}")
    return _whole(connection, row)


def _whole(connection: sqlite3.Connection, row: sqlite3.Row) -> OutboxReply:
    parts = connection.execute(
        "SELECT body, state, message_id FROM outbox_parts WHERE reply_id = ? ORDER BY number",
        (row["id"],),
    )
    place = SessionPlace(
        row["session_key"], row["channel"], row["account"], row["chat"], row["thread"]
    )
    return OutboxReply(
        int(row["id"]),
        row["key"],
        place,
        bool(row["private"]),
        row["reply_to"],
        row["language"],
        row["preview_id"],
        bool(row["halted"]),
        tuple(StoredPart(*part) for part in parts),
    )
