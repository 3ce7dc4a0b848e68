"""Which messages are in the day files: a high-water mark per session, in row ids."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime

from memory.clock import stamp
from memory.database import Database
from memory.notes.flush import Unflushed
from memory.scopes import MARK
from memory.stored_messages import readable

MOST_AT_ONCE = 400  # messages that are read together

# Messages beyond the marks, a question with the time when it was sent: it may have been stored long
# after, and its "tomorrow" is that of its own day. A run that is under way, and what came after it,
# waits for its end.
_UNFLUSHED = (
    "SELECT m.id, m.body, MIN(m.created_at, COALESCE((SELECT MIN(i.sent_at) FROM inbox i"
    " WHERE i.run_id = m.run_id AND m.ordinal = 0), m.created_at)) AS at,"
    " COALESCE(r.own_words, 1) AS own_words,"
    " r.overheard IS 1 AS overheard,"
    " COALESCE((SELECT MAX(b.start_id) FROM boundaries b WHERE b.session_id = m.session_id"
    " AND b.kind = 'new' AND b.start_id <= m.id), 0) AS conversation"
    " FROM messages m LEFT JOIN runs r ON r.run_id = m.run_id"
    " WHERE m.session_id = :s AND m.id > :after"
    " AND NOT EXISTS (SELECT 1 FROM sessions p WHERE p.id = :s AND p.key GLOB :private)"
    " AND m.id < COALESCE((SELECT MIN(o.id) FROM messages o JOIN runs u ON u.run_id = o.run_id"
    " WHERE o.session_id = :s AND o.id > :after AND u.state <> 'settled'), :all)"
    " AND NOT EXISTS (SELECT 1 FROM flushed f WHERE f.session_id = :s"
    " AND m.id BETWEEN f.first_id AND f.last_id)"
    " AND m.run_id NOT IN (SELECT run_id FROM left_out WHERE session_id = :s)"
    " ORDER BY m.id LIMIT :most"
)
_ALL = 2**62
PRIVATE = f"*{MARK}*"  # sessions of which nothing is kept


@dataclass(frozen=True, slots=True)
class Waiting:
    """Messages of a session that are in no day file. `foreign`: the conversation that held foreign
    words before them."""

    messages: tuple[Unflushed, ...]
    foreign: int | None


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session with messages that are in no day file, and the time of its newest message. `ended`: a
    new conversation has begun after that."""

    session: int
    channel: str
    account: str
    chat: str
    newest: datetime
    ended: bool


class FlushMarks:
    """Of all sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def has_any(self, session: int) -> bool:
        """Whether there is a mark of the session."""
        rows = await self._database.read(
            "SELECT 1 FROM flushed WHERE session_id = ? LIMIT 1", (session,)
        )
        return bool(rows)

    async def waiting(self, session: int) -> Waiting:
        """The oldest messages that are not flushed, `MOST_AT_ONCE` at most."""
        marks = await self._database.read(
            "SELECT MIN(last_id), (SELECT foreign_id FROM flushed WHERE session_id = :s"
            " ORDER BY last_id DESC LIMIT 1) FROM flushed WHERE session_id = :s",
            {"s": session},
        )
        after, foreign = marks[0]
        rows = await self._database.read(
            _UNFLUSHED,
            {
                "s": session,
                "after": after or 0,
                "all": _ALL,
                "most": MOST_AT_ONCE,
                "private": PRIVATE,
            },
        )
        return Waiting(tuple(map(_unflushed, rows)), foreign)

    async def advance(self, session: int, first: int, last: int, foreign: int | None) -> None:
        """The messages from `first` to `last` are in the day files, or were not worth it. Repeats are
        harmless."""

        def op(connection: sqlite3.Connection) -> None:
            newest = connection.execute(
                "SELECT id, last_id FROM flushed WHERE session_id = ? ORDER BY last_id DESC LIMIT 1",
                (session,),
            ).fetchone()
            between = (
                newest is not None
                and connection.execute(
                    "SELECT 1 FROM messages WHERE session_id = ? AND id > ? AND id < ?"
                    " AND run_id NOT IN (SELECT run_id FROM left_out WHERE session_id = ?) LIMIT 1",
                    (session, newest["last_id"], first, session),
                ).fetchone()
            )
            if newest is not None and not between:
                connection.execute(
                    "UPDATE flushed SET last_id = MAX(last_id, ?), foreign_id = ?, at = ?"
                    " WHERE id = ?",
                    (last, foreign, stamp(), newest["id"]),
                )
                return
            connection.execute(
                "INSERT INTO flushed (session_id, first_id, last_id, foreign_id, at)"
                " VALUES (?, ?, ?, ?, ?)",
                (session, first, last, foreign, stamp()),
            )

        await self._database.write(op)

    async def skip(self, session: int) -> None:
        """Everything of the session so far is passed over."""

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO flushed (session_id, first_id, last_id, at)"
                " SELECT session_id, MIN(id), MAX(id), ? FROM messages m WHERE session_id = ?"
                " AND id > COALESCE((SELECT MAX(last_id) FROM flushed f"
                " WHERE f.session_id = m.session_id), 0) GROUP BY session_id",
                (stamp(), session),
            )

        await self._database.write(op)

    async def open_sessions(
        self, quiet_since: datetime, chat: tuple[str, str, str] | None = None
    ) -> list[OpenSession]:
        """Sessions with messages beyond their mark, the newest of them before `quiet_since`; those of
        one chat (channel, account, id), or of all."""
        where = "" if chat is None else " AND channel = ? AND account = ? AND chat = ?"
        rows = await self._database.read(
            "SELECT * FROM (SELECT s.id, s.channel, s.account, s.chat,"  # noqa: S608 - our words
            " (SELECT m.created_at FROM messages m WHERE m.session_id = s.id"
            "  ORDER BY m.id DESC LIMIT 1) AS newest,"
            " (SELECT MAX(m.id) FROM messages m WHERE m.session_id = s.id) AS last,"
            " COALESCE((SELECT MAX(f.last_id) FROM flushed f WHERE f.session_id = s.id), 0) AS mark,"
            " COALESCE((SELECT MAX(b.start_id) FROM boundaries b WHERE b.session_id = s.id"
            "  AND b.kind = 'new'), 0) AS began"
            f" FROM sessions s WHERE s.key NOT GLOB '{PRIVATE}') WHERE last > mark AND newest <= ?"
            + where
            + " ORDER BY newest",
            (stamp(quiet_since), *(chat or ())),
        )
        return [_open(row) for row in rows]

    async def flushed_since(self, moment: datetime) -> list[int]:
        """Sessions of which something was flushed since then."""
        rows = await self._database.read(
            "SELECT DISTINCT session_id FROM flushed WHERE at >= ?", (stamp(moment),)
        )
        return [int(row[0]) for row in rows]

    async def newest_body(self, session: int) -> str | None:
        """The newest message of the session as the inbox keeps it."""
        rows = await self._database.read(
            "SELECT body FROM inbox WHERE session_id = ? AND kind = 'turn' AND body IS NOT NULL"
            " ORDER BY id DESC LIMIT 1",
            (session,),
        )
        return str(rows[0][0]) if rows else None

    async def sessions_in(self, channel: str, chat: str) -> list[int]:
        """The sessions of a chat on any of the channel's accounts, the newest first."""
        rows = await self._database.read(
            "SELECT id FROM sessions WHERE channel = ? AND chat = ? ORDER BY id DESC",
            (channel, chat),
        )
        return [int(row[0]) for row in rows]

    async def sessions_of(self, chat: tuple[str, str, str]) -> list[int]:
        """The sessions of a chat, the one that was made last first."""
        rows = await self._database.read(
            "SELECT id FROM sessions WHERE channel = ? AND account = ? AND chat = ?"
            " ORDER BY id DESC",
            chat,
        )
        return [int(row[0]) for row in rows]


def _unflushed(row: sqlite3.Row) -> Unflushed:
    return Unflushed(
        int(row["id"]),
        int(row["conversation"]),
        readable(row["body"]),
        datetime.fromisoformat(row["at"]),
        bool(row["own_words"]),
        bool(row["overheard"]),
    )


def _open(row: sqlite3.Row) -> OpenSession:
    return OpenSession(
        int(row["id"]),
        str(row["channel"]),
        str(row["account"]),
        str(row["chat"]),
        datetime.fromisoformat(row["newest"]),
        row["began"] > row["last"],
    )
