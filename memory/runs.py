"""Runs: begun with their question, settled with everything that they leave.

A run is settled in one transaction: its messages, how its question ended, and the reply that goes to
the outbox. Whatever kills the process before, the run is taken up again; after it, only delivery is
left.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agent.messages import Message, user_text
from memory.chats.off import is_off
from memory.clock import stamp
from memory.conversations import APPEND, LEAVE_OUT, Context, context_of, message_row
from memory.database import Database
from memory.forgotten.copies import Taken, take_out
from memory.forgotten.resting import said_by_others
from memory.inbox import InboxKey
from memory.outbox import NewReply, OutboxReply, find_reply, put_reply
from memory.scopes import ChatScope
from memory.snapshots import Shown, shown_in
from memory.stored_messages import readable
from memory.text.provenance import Whose
from memory.tombstones import Forgotten, forgotten_in
from memory.usage import (
    Cost,
    PersonReached,
    Reached,
    Reservation,
    UsageRow,
    cost_in,
    reserve_in,
    settle_calls,
)

RunOutcome = Literal["answered", "cancelled", "failed"]

_LOST = (
    "SELECT r.run_id, r.state = 'withdrawn', r.takeovers, r.preview_id, r.session_id,"
    " (SELECT body FROM inbox i WHERE i.run_id = r.run_id ORDER BY i.id DESC LIMIT 1) body"
    " FROM runs r"
)
_MOVE_OUT = (
    "DELETE FROM messages WHERE run_id = :run AND ordinal = 0"
    " AND NOT EXISTS (SELECT 1 FROM messages s WHERE s.run_id = :run AND s.ordinal > 0)"
    " AND id < (SELECT MAX(l.id) FROM messages l WHERE l.session_id = :session)"
)
_LEFT_ALONE = (
    "NOT EXISTS (SELECT 1 FROM inbox i WHERE i.run_id = r.run_id"
    " AND (i.state = 'open' OR i.stopped_by IS NOT NULL))"
)


@dataclass(frozen=True, slots=True)
class BegunRun:
    """A run that an earlier process, or an earlier try, has begun. `withdrawn`: nothing of it is under
    way, since it was ended in order or had not come to its question; otherwise its process died.
    `takeovers`: how often it was taken up after that. `preview_id`: the message that shows its answer.
    """

    run_id: str
    withdrawn: bool
    takeovers: int
    preview_id: str | None


@dataclass(frozen=True, slots=True)
class Lost:
    """A run that nothing will take up: its messages were closed by a stop while it waited to go on, or
    the process died before it was settled. `body`: the newest of those messages, as the inbox keeps
    it."""

    run: BegunRun
    session: int
    body: str


@dataclass(frozen=True, slots=True)
class Settlement:
    """What a run leaves. `messages`: its own, with their ordinals; `left_out`: a run that leaves the
    context with it; `scope`: the memory that it saw; `calls`: its model calls, booked already or
    not."""

    session: int
    run_id: str
    outcome: RunOutcome
    messages: Sequence[tuple[int, Message]]
    inbox_ids: Sequence[int]
    left_out: str | None = None
    scope: str = ""
    calls: Sequence[UsageRow] = ()


@dataclass(frozen=True, slots=True)
class Visible:
    """What a run's memory is not to be told again, and what of it was shown last."""

    forgotten: Forgotten
    shown: Shown | None


@dataclass(frozen=True, slots=True)
class Before:
    """What a run goes by, all of it as it was at one instant. `memory_off`: somebody has switched the
    memory off; `costs`: of all calls since each of the times that were asked for."""

    context: Context
    memory: Visible
    memory_off: bool
    costs: tuple[Cost, ...]


class Runs:
    """All runs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(
        self,
        session: int,
        run_id: str,
        question: Message,
        inbox_ids: Sequence[int],
        *,
        own_words: bool = True,
        overheard: bool = False,
        claimed: bool = False,
        retry_of: str | None = None,
    ) -> int:
        """A run begins, or is taken up: its question is stored as ordinal 0 and its inbox rows are
        taken, in one transaction. The question of one that has not taken a step moves behind what has
        been said since: it had been dropped, and is asked after all. `own_words`: somebody wrote all of
        it themselves; `overheard`: the model is shown what others said before; `claimed`: this process
        has claimed it before; `retry_of`: the run whose question it is. The row id of the question."""
        row = message_row(session, run_id, 0, question)

        def op(connection: sqlite3.Connection) -> int:
            connection.execute(
                "INSERT INTO runs"
                " (run_id, session_id, state, began_at, own_words, overheard, retry_of)"
                " VALUES (?, ?, 'running', ?, ?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET"
                " takeovers = takeovers + (state = 'running' AND NOT ?), state = 'running',"
                " own_words = excluded.own_words, overheard = MAX(overheard, excluded.overheard),"
                " retry_of = excluded.retry_of WHERE state <> 'settled'",
                (run_id, session, stamp(), own_words, overheard, retry_of, claimed),
            )
            connection.execute(_MOVE_OUT, {"run": run_id, "session": session})
            connection.execute(APPEND, row)
            _take(connection, run_id, inbox_ids)
            stored = connection.execute(
                "SELECT id FROM messages WHERE run_id = ? AND ordinal = 0", (run_id,)
            )
            return int(next(iter(stored))[0])

        return await self._database.write(op)

    async def claim(self, session: int, run_id: str, inbox_ids: Sequence[int]) -> None:
        """The run is about to do what may kill the process (files are fetched and opened), before its
        question can be stored: a death counts as one of the run."""

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO runs (run_id, session_id, state, began_at)"
                " VALUES (?, ?, 'running', ?) ON CONFLICT (run_id) DO UPDATE SET"
                " takeovers = takeovers + (state = 'running'), state = 'running'"
                " WHERE state <> 'settled'",
                (run_id, session, stamp()),
            )
            _take(connection, run_id, inbox_ids)

        await self._database.write(op)

    async def own_words(self, run_id: str) -> bool:
        """Whether somebody wrote all of the run's question themselves; false where nobody knows."""
        rows = await self._database.read("SELECT own_words FROM runs WHERE run_id = ?", (run_id,))
        return bool(rows and rows[0][0])

    async def since_new(
        self, session: int, person: str, *, besides: str, most: int
    ) -> list[tuple[Message, Whose]]:
        """The messages since the last `/new`, also those that a context no longer holds, oldest first,
        each with whose its run's question is for this person; without the run `besides`. The newest
        `most` of them. Before them something foreign where one of their runs was shown what others
        had said: those words are not stored."""
        rows = await self._database.read(
            "SELECT m.body, r.own_words IS 0 AS passed_on, r.overheard IS 1 AS overheard,"
            " (EXISTS (SELECT 1 FROM inbox i WHERE i.run_id = m.run_id AND i.person IS NOT :person)"
            " OR m.run_id IN (SELECT run_id FROM left_out WHERE session_id = :s)) AS others"
            " FROM messages m LEFT JOIN runs r ON r.run_id = m.run_id"
            " WHERE m.session_id = :s AND m.run_id IS NOT :besides AND m.id >= COALESCE((SELECT"
            " MAX(start_id) FROM boundaries WHERE session_id = :s AND kind = 'new'), 0)"
            " ORDER BY m.id DESC LIMIT :most",
            {"s": session, "person": person, "besides": besides, "most": most},
        )
        said: list[tuple[Message, Whose]] = []
        if any(row["overheard"] for row in rows):
            said.append((user_text(""), "foreign"))
        said.extend((readable(row["body"]), _whose(row)) for row in reversed(rows))
        return said

    async def take(self, session: int, run_id: str, inbox_ids: Sequence[int]) -> None:
        """The run is about to show something, and may not have begun: these messages are its own from
        now on, so that whoever takes them up after a crash finds what it has shown."""

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO runs (run_id, session_id, state, began_at)"
                " VALUES (?, ?, 'withdrawn', ?) ON CONFLICT (run_id) DO NOTHING",
                (run_id, session, stamp()),
            )
            _take(connection, run_id, inbox_ids)

        await self._database.write(op)

    async def previewed(self, run_id: str, message_id: str) -> None:
        """The run's answer is shown in this message."""

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE runs SET preview_id = ? WHERE run_id = ?", (message_id, run_id)
            )

        await self._database.write(op)

    async def withdraw(self, run_id: str, *, ended: bool = False) -> None:
        """The run was ended in order before its end: its messages stay open, and it is taken up
        later. `ended`: what its message shows stays, so that it shows no other answer."""

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE runs SET state = 'withdrawn', preview_id = IIF(?, NULL, preview_id)"
                " WHERE run_id = ? AND state = 'running'",
                (ended, run_id),
            )

        await self._database.write(op)

    async def before(
        self, session: int, scope: str, switch: str, since: Sequence[datetime]
    ) -> Before:
        """What a run goes by. `scope`: of its memory; `switch`: the scope that can switch it off;
        `since`: when what may be spent began to count."""

        def op(connection: sqlite3.Connection) -> Before:
            context = context_of(connection, session)
            visible = _visible(connection, scope, session)
            costs = tuple(cost_in(connection, start) for start in since)
            return Before(context, visible, is_off(connection, switch), costs)

        return await self._database.look(op)

    async def visible(self, session: int, scope: str) -> Visible:
        """What a run may see of its memory."""
        return await self._database.look(lambda c: _visible(c, scope, session))

    async def reserve(
        self, asked: Reservation, scope: str
    ) -> tuple[Reached | PersonReached | None, Visible]:
        """A call of a run begins (see `reserve_in`); what it may see of its memory at that instant."""

        def op(connection: sqlite3.Connection) -> tuple[Reached | PersonReached | None, Visible]:
            met = reserve_in(connection, asked)
            return met, _visible(connection, scope, asked.row.session)

        return await self._database.write(op)

    async def settle(self, settlement: Settlement, reply: NewReply) -> OutboxReply:
        """The run is over, and its reply, as it is returned, in the outbox. Idempotent."""
        run, now = settlement, stamp()
        rows = [message_row(run.session, run.run_id, n, message) for n, message in run.messages]

        def op(connection: sqlite3.Connection) -> OutboxReply:
            settle_calls(connection, run.run_id, run.calls)
            connection.executemany(APPEND, rows)
            connection.executemany(
                "UPDATE inbox SET state = 'done', outcome = ?, done_at = ?"
                " WHERE id = ? AND state = 'open'",
                [(run.outcome, now, id_) for id_ in run.inbox_ids],
            )
            connection.execute(
                "UPDATE runs SET state = 'settled', outcome = ?, settled_at = ? WHERE run_id = ?",
                (run.outcome, now, run.run_id),
            )
            if run.left_out is not None:
                connection.execute(LEAVE_OUT, (run.left_out, run.session, now))
            _forget_again(connection, run, now)
            return find_reply(connection, put_reply(connection, run.session, reply))

        return await self._database.write(op)

    async def begun(self, run_id: str) -> BegunRun | None:
        """A run that is not settled, or None."""
        rows = await self._database.read(
            "SELECT run_id, state = 'withdrawn', takeovers, preview_id FROM runs"
            " WHERE run_id = ? AND state <> 'settled'",
            (run_id,),
        )
        return _begun(rows[0]) if rows else None

    async def lost(self, channels: Sequence[str]) -> list[Lost]:
        """Runs that were begun and that no message will take up: none of theirs is open, or was dropped
        while it waited and can be asked after all."""
        marks = ", ".join("?" for _ in channels)
        rows = await self._database.read(
            f"{_LOST} JOIN sessions s ON s.id = r.session_id"
            f" WHERE r.state <> 'settled' AND s.channel IN ({marks}) AND {_LEFT_ALONE}",
            tuple(channels),
        )
        return [_lost(row) for row in rows if row["body"]]

    async def lost_with(self, stopped: Sequence[InboxKey]) -> dict[InboxKey, Lost]:
        """Those of them whose messages these are, which a stop has closed; by message."""
        found: dict[InboxKey, Lost] = {}
        for key in stopped:
            rows = await self._database.read(
                f"{_LOST} WHERE r.state <> 'settled' AND {_LEFT_ALONE}"  # noqa: S608 - constants
                " AND r.run_id = (SELECT run_id FROM inbox"
                " WHERE channel = ? AND account = ? AND chat = ? AND event = ?)",
                key,
            )
            if rows and rows[0]["body"]:
                found[key] = _lost(rows[0])
        return found


def _visible(connection: sqlite3.Connection, scope: str, session: int) -> Visible:
    return Visible(forgotten_in(connection, scope), shown_in(connection, scope, session))


def _forget_again(connection: sqlite3.Connection, run: Settlement, now: str) -> None:
    """What was forgotten while the run was under way, or its question waited, goes from it too: what
    its tools brought, and the run itself where it says it, other than the one that has it forgotten."""
    began = connection.execute(
        "SELECT MIN(began_at, COALESCE((SELECT MIN(received_at) FROM inbox"
        " WHERE run_id = :run), began_at)) FROM runs WHERE run_id = :run",
        {"run": run.run_id},
    ).fetchone()
    if began is None:
        return
    forgotten = forgotten_in(connection, run.scope, str(began[0]))
    if not forgotten.sayings:
        return
    place = connection.execute(
        "SELECT channel, account, chat FROM sessions WHERE id = ?", (run.session,)
    ).fetchone()
    (first,) = connection.execute(
        "SELECT COALESCE(MIN(id), 0) FROM messages WHERE run_id = ?", (run.run_id,)
    ).fetchone()
    take_out(connection, ChatScope(run.scope, *place), Taken(forgotten), [], int(first) - 1)
    if said_by_others(connection, [(run.run_id, run.session)], forgotten):
        return
    lines = [line for _, message in run.messages for line in message.text.split("\n")]
    forgets = connection.execute(
        "SELECT 1 FROM memory_changes WHERE run_id = ? AND kind = 'forgotten'", (run.run_id,)
    ).fetchone()
    if not forgets and any(map(forgotten.covers, lines)):
        connection.execute(LEAVE_OUT, (run.run_id, run.session, now))


def _whose(row: sqlite3.Row) -> Whose:
    if row["passed_on"]:
        return "foreign"
    return "people" if row["others"] else "own"


def _take(connection: sqlite3.Connection, run_id: str, inbox_ids: Sequence[int]) -> None:
    """These messages are the run's. For use inside a write."""
    connection.executemany(
        "UPDATE inbox SET run_id = ? WHERE id = ? AND run_id IS NULL",
        [(run_id, id_) for id_ in inbox_ids],
    )


def _lost(row: sqlite3.Row) -> Lost:
    return Lost(_begun(row), int(row[4]), row["body"])


def _begun(row: sqlite3.Row) -> BegunRun:
    return BegunRun(str(row[0]), bool(row[1]), int(row[2]), row[3])
