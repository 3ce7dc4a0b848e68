"""The inbox: every message that a person sent to the bot, stored before the platform is told.

It is the queue of record: lanes hold only the wake-up, and start after a crash is the same path as
a new message.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memory.clock import stamp
from memory.conversations import SessionPlace, session_id
from memory.costs.days import ITS_IDS, Place, named
from memory.database import Database

Kind = Literal["turn", "act", "refused"]
InboxKey = tuple[str, str, str, str]  # channel, account, chat, event

# What the bridge stores leaves out what is usual, and a private chat is.
_PRIVATE = "body IS NOT NULL AND json_extract(body, '$.address.private') IS NULL"

# SQLite would rather look through all that is stored: it does not know how few rows are open.
_OPEN_ROWS = "inbox i INDEXED BY inbox_open JOIN sessions s ON s.id = i.session_id"
_OPEN = (
    "SELECT i.id, s.key, i.session_id, i.person, i.kind, i.body, i.run_id,"  # noqa: S608 - constant
    f" i.received_at FROM {_OPEN_ROWS} WHERE i.state = 'open'"
)

# Pictures that were sent together are one question, and so are the full parts of a text that a client
# has cut.
_AS_ONE = (
    "COALESCE(json_extract({body}, '$.album'),"
    " IIF(json_extract({body}, '$.more_expected_s') > 0, 'cut:' || {sent_at}, {id}))"
)
_COUNT = (
    f"SELECT COUNT(DISTINCT {_AS_ONE.format(body='body', sent_at='sent_at', id='id')}),"  # noqa: S608
    " MIN(sent_at) FROM inbox"
    f" WHERE channel = :channel AND account = :account AND {ITS_IDS} AND person = :person"
    " AND kind = 'turn' AND sent_at > :since AND sent_at <= :until"
    f" AND {_AS_ONE.format(body='body', sent_at='sent_at', id='id')}"
    f" IS NOT {_AS_ONE.format(body=':body', sent_at=':sent_at', id='-1')}"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """What is put in. `kind`: `turn` for the agent, `act` for a command or press, `refused` for
    somebody without access (the key is kept, `body` must be None). `body`: the message as JSON.
    `sent_at`: the platform's time, ISO 8601 in UTC."""

    place: SessionPlace
    event: str
    person: str
    kind: Kind
    body: str | None
    sent_at: str


@dataclass(frozen=True, slots=True)
class InboxRow:
    """A stored message that is open. `run_id` is set when a run has taken it."""

    id: int
    session_key: str
    session: int
    person: str
    kind: Kind
    body: str
    run_id: str | None
    received_at: str


@dataclass(frozen=True, slots=True)
class Window:
    """At most `most` questions of one person in a chat that were sent after `since` and no later than
    `until` (as `memory.clock.stamp`). `key` names the setting."""

    key: str
    most: int
    since: str
    until: str


@dataclass(frozen=True, slots=True)
class Full:
    """A window that holds as many questions as it may, or more (`count`); when the oldest of them was
    sent (None: there is none)."""

    window: Window
    oldest: str | None
    count: int


class Inbox:
    """All messages that came in."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, entry: Entry) -> int | None:
        """Store a message; its row id, or None when it is stored already (a redelivery)."""
        return await self._database.write(lambda connection: _put(connection, entry))

    async def holds(self, key: InboxKey) -> bool:
        """Whether this message is stored."""
        found = await self._database.read(
            "SELECT 1 FROM inbox WHERE channel = ? AND account = ? AND chat = ? AND event = ?", key
        )
        return bool(found)

    async def accounts(self, channel: str, chat: str) -> list[str]:
        """The bot's own accounts that have a conversation in a chat of this id."""
        rows = await self._database.read(
            "SELECT DISTINCT account FROM sessions WHERE channel = ? AND chat = ?", (channel, chat)
        )
        return [str(row[0]) for row in rows]

    async def newest(self, channel: str, chat: str) -> str | None:
        """The body of the newest message of a chat that is stored."""
        for account in await self.accounts(channel, chat):
            rows = await self._database.read(
                "SELECT body FROM inbox WHERE channel = ? AND account = ? AND chat = ?"
                " AND body IS NOT NULL ORDER BY id DESC LIMIT 1",
                (channel, account, chat),
            )
            if rows:
                return str(rows[0][0])
        return None

    async def newest_of(self, channel: str, person: str) -> str | None:
        """The body of the person's newest message that is stored."""
        rows = await self._database.read(
            "SELECT body FROM inbox WHERE channel = ? AND person = ? AND body IS NOT NULL"
            " ORDER BY id DESC LIMIT 1",
            (channel, person),
        )
        return str(rows[0][0]) if rows else None

    async def newest_private(self, channel: str, person: str) -> str | None:
        """The same of those to the bot alone."""
        rows = await self._database.read(
            f"SELECT body FROM inbox WHERE channel = ? AND person = ? AND {_PRIVATE}"  # noqa: S608
            " ORDER BY id DESC LIMIT 1",
            (channel, person),
        )
        return str(rows[0][0]) if rows else None

    async def private_near(self, chat: Place, most: int) -> list[str]:
        """Of everybody who has written to the bot alone, the newest message: first of those who have
        written to it in a chat (channel, account, id) too, then the newest; of `most` people. Reads
        all that is stored of the account."""
        rows = await self._database.read(
            "SELECT body FROM inbox WHERE id IN (SELECT MAX(id) FROM inbox"  # noqa: S608 - constants
            f" WHERE channel = :channel AND account = :account AND {_PRIVATE} GROUP BY person)"
            " ORDER BY person IN (SELECT person FROM inbox WHERE channel = :channel"
            f" AND account = :account AND {ITS_IDS}) DESC, id DESC LIMIT :most",
            {**named(chat), "most": most},
        )
        return [str(row[0]) for row in rows]

    async def put_question(self, entry: Entry, windows: Sequence[Window] = ()) -> int | Full | None:
        """The same for a question, unless a window is full: then nothing is stored. Counting and
        storing are one transaction, so that questions at the same moment are counted."""

        def op(connection: sqlite3.Connection) -> int | Full | None:
            if windows and not _is_stored(connection, entry):
                for window in windows:
                    full = _full(connection, entry, window)
                    if full is not None:
                        return full
            return _put(connection, entry)

        return await self._database.write(op)

    async def questions(self, chat: Place, person: str, window: Window) -> int:
        """How many questions the person has asked in the chat (channel, account, id)."""
        rows = await self._database.read(_COUNT, _counted(chat, person, window))
        return int(rows[0][0])

    async def put_stop(
        self,
        entry: Entry,
        running: Sequence[InboxKey],
        waiting: Sequence[InboxKey],
        run_id: str | None = None,
    ) -> int | None:
        """Store a stop and close the messages that it has stopped, in one transaction: a crash right
        after brings none of them back, nor what of the run's reply is not sent yet. Those that were
        waiting can be opened again (`reopen`), unless their run had taken a step or shown something.
        The stop's row id, or None when it is stored already; its row keeps what it has ended
        (`ended_by`) until it is answered."""
        now = stamp()

        def op(connection: sqlite3.Connection) -> int | None:
            for key in running:
                _stop(connection, key, None, now)
            begun = [key for key in waiting if not _stop(connection, key, entry.event, now)]
            ended = "run" if run_id is not None or begun else "work" if running else None
            connection.execute(
                "UPDATE outbox SET halted = 1 WHERE key = ? AND state = 'open'", (run_id,)
            )
            id_ = _put(connection, entry)
            connection.execute("UPDATE inbox SET outcome = ? WHERE id = ?", (ended, id_))
            return id_

        return await self._database.write(op)

    async def ended_by(self, stop_id: int) -> str | None:
        """What a stop that is not answered yet has ended: a `run`, other `work`, or nothing."""
        rows = await self._database.read("SELECT outcome FROM inbox WHERE id = ?", (stop_id,))
        return rows[0][0] if rows else None

    async def reopen(self, session_key: str, person: str, stop_event: str) -> list[InboxRow]:
        """Open the messages again that this stop of that person has dropped while they waited."""

        def op(connection: sqlite3.Connection) -> list[int]:
            rows = connection.execute(
                "UPDATE inbox SET state = 'open', outcome = NULL, done_at = NULL, stopped_by = NULL"
                " WHERE session_id = (SELECT id FROM sessions WHERE key = ?) AND person = ?"
                " AND stopped_by = ? AND kind = 'turn' RETURNING id",
                (session_key, person, stop_event),
            ).fetchall()
            return [int(row[0]) for row in rows]

        reopened = set(await self._database.write(op))
        return [row for row in await self.open_turns(session_key) if row.id in reopened]

    async def dropped(self, session_key: str, person: str, stop_event: str) -> tuple[InboxKey, ...]:
        """The messages that this stop of that person has dropped while they waited."""
        rows = await self._database.read(
            "SELECT i.channel, i.account, i.chat, i.event FROM inbox i"
            " JOIN sessions s ON s.id = i.session_id WHERE s.key = ? AND i.person = ?"
            " AND i.stopped_by = ? AND i.kind = 'turn' ORDER BY i.id",
            (session_key, person, stop_event),
        )
        return tuple((row[0], row[1], row[2], row[3]) for row in rows)

    async def last_outcome(self, session_key: str) -> str | None:
        """How the session's newest question that is dealt with ended, or None."""
        rows = await self._database.read(
            "SELECT i.outcome FROM inbox i JOIN sessions s ON s.id = i.session_id"
            " WHERE s.key = ? AND i.kind = 'turn' AND i.state = 'done'"
            " ORDER BY i.done_at DESC LIMIT 1",
            (session_key,),
        )
        return rows[0][0] if rows else None

    async def unanswered(self, channel: str, since: str) -> tuple[int, int]:
        """How many of the channel's questions are open, and how many got an error for an answer since
        then (as `memory.clock.stamp`)."""
        rows = await self._database.read(
            "SELECT COALESCE(SUM(state = 'open'), 0),"
            " COALESCE(SUM(outcome = 'failed' AND done_at >= ?), 0)"
            " FROM inbox WHERE channel = ? AND kind = 'turn'",
            (since, channel),
        )
        return int(rows[0][0]), int(rows[0][1])

    async def open_sessions(self, channels: Sequence[str]) -> list[str]:
        """Keys of these channels' sessions that have open turns, the longest waiting first."""
        marks = ", ".join("?" for _ in channels)
        rows = await self._database.read(
            f"SELECT s.key FROM {_OPEN_ROWS}"  # noqa: S608 - constants and marks
            f" WHERE i.state = 'open' AND i.kind = 'turn' AND i.channel IN ({marks}) GROUP BY s.key"
            " ORDER BY MIN(i.sent_at), MIN(i.id)",
            tuple(channels),
        )
        return [str(row[0]) for row in rows]

    async def open_acts(self) -> list[InboxRow]:
        """Commands and presses that were stored and not carried out, oldest first."""
        rows = await self._database.read(_OPEN + " AND i.kind = 'act' ORDER BY i.id")
        return [InboxRow(*row) for row in rows]

    async def open_turns(self, session_key: str) -> list[InboxRow]:
        """The session's open messages: those that a run has taken, then by the platform's time."""
        rows = await self._database.read(
            _OPEN + " AND i.kind = 'turn' AND s.key = ? ORDER BY i.run_id IS NULL, i.sent_at, i.id",
            (session_key,),
        )
        return [InboxRow(*row) for row in rows]

    async def waiting(self, session_key: str, *, begun: bool = False) -> int:
        """How many of the session's messages are open and not taken by a run; `begun`: also those that
        one has taken."""
        rows = await self._database.read(
            f"SELECT COUNT(*) FROM {_OPEN_ROWS}"  # noqa: S608 - a constant
            " WHERE i.state = 'open' AND i.kind = 'turn' AND s.key = ? AND (? OR i.run_id IS NULL)",
            (session_key, begun),
        )
        return int(rows[0][0])

    async def mark(self, key: InboxKey, marked: bool) -> None:
        """The message may have the mark of waiting, or has it no more."""

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE inbox SET marked = ?"
                " WHERE channel = ? AND account = ? AND chat = ? AND event = ?",
                (marked, *key),
            )

        await self._database.write(op)

    async def marked(self, channels: Sequence[str]) -> list[str]:
        """The bodies of these channels' messages that may have the mark of waiting."""
        marks = ", ".join("?" for _ in channels)
        rows = await self._database.read(
            "SELECT body FROM inbox WHERE marked = 1 AND body IS NOT NULL"  # noqa: S608 - marks
            f" AND channel IN ({marks}) ORDER BY id",
            tuple(channels),
        )
        return [str(row[0]) for row in rows]

    async def close(self, ids: Sequence[int], outcome: str) -> None:
        """These messages are dealt with; `outcome` says how (`answered`, `cancelled`, `failed`)."""
        now = stamp()

        def op(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "UPDATE inbox SET state = 'done', outcome = ?, done_at = ?"
                " WHERE id = ? AND state = 'open'",
                [(outcome, now, id_) for id_ in ids],
            )

        await self._database.write(op)


def _stop(connection: sqlite3.Connection, key: InboxKey, event: str | None, at: str) -> bool:
    """Close a message that a stop has stopped, also one that its lane was the first to close; false
    when its run had taken a step or shows something, which is to be ended: then the message cannot be
    asked after all."""
    closed = connection.execute(
        "UPDATE inbox SET state = 'done', outcome = 'cancelled', done_at = ?,"
        " stopped_by = CASE WHEN EXISTS (SELECT 1 FROM messages m"
        " WHERE m.run_id = inbox.run_id AND m.ordinal > 0) OR EXISTS (SELECT 1 FROM runs r"
        " WHERE r.run_id = inbox.run_id AND r.preview_id IS NOT NULL) THEN NULL ELSE ? END"
        " WHERE channel = ? AND account = ? AND chat = ? AND event = ?"
        " AND (state = 'open' OR outcome = 'cancelled') RETURNING stopped_by",
        (at, event, *key),
    ).fetchall()
    return all(row[0] is not None for row in closed)


def _put(connection: sqlite3.Connection, entry: Entry) -> int | None:
    place = entry.place
    refused = entry.kind == "refused"
    values = (
        place.channel,
        place.account,
        place.chat,
        entry.event,
        None if refused else session_id(connection, place),
        entry.person,
        entry.kind,
        "done" if refused else "open",
        entry.body,
        stamp(),
        entry.sent_at,
    )
    cursor = connection.execute(
        "INSERT INTO inbox (channel, account, chat, event, session_id, person, kind, state, body,"
        " received_at, sent_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        values,
    )
    return cursor.lastrowid if cursor.rowcount == 1 else None


def _is_stored(connection: sqlite3.Connection, entry: Entry) -> bool:
    place = entry.place
    found = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM inbox"
        " WHERE channel = ? AND account = ? AND chat = ? AND event = ?)",
        (place.channel, place.account, place.chat, entry.event),
    )
    return bool(found.fetchone()[0])


def _full(connection: sqlite3.Connection, entry: Entry, window: Window) -> Full | None:
    """Whether the question is one too many."""
    place = entry.place
    chat = (place.channel, place.account, place.chat)
    asked = _counted(chat, entry.person, window, entry)
    count, oldest = connection.execute(_COUNT, asked).fetchone()
    return Full(window, oldest, int(count)) if count >= window.most else None


def _counted(
    chat: Place, person: str, window: Window, new: Entry | None = None
) -> dict[str, str | None]:
    """The parameters of `_COUNT`; what is one question with `new` is left out."""
    return {
        **named(chat),
        "person": person,
        "since": window.since,
        "until": window.until,
        "body": new.body if new is not None else None,
        "sent_at": new.sent_at if new is not None else "",
    }
