"""What model calls used, one row each. Sums are queries: there are no counters beside the facts."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from agent.provider import Usage
from memory.clock import stamp
from memory.costs.days import (
    Cap,
    Day,
    Place,
    Used,
    adjust,
    count,
    current,
    first_met,
    used_of,
)
from memory.database import Database

_OF_PERSON = (
    "SELECT COALESCE(SUM(u.cost_microusd), 0) + (SELECT COALESCE(SUM(cost_microusd), 0) FROM usage"
    # What they have had erased since then counts on, see `memory.chats.erasing`.
    " WHERE person = 'erased:' || :channel || ':' || :person AND created_at >= :since),"
    " COALESCE(SUM(u.cost_microusd) FILTER (WHERE u.outcome = 'reserved'), 0)"
    " FROM usage u JOIN sessions s ON s.id = u.session_id WHERE u.person = :person"
    " AND s.channel = :channel AND u.created_at >= :since"
)
_AS_ESTIMATED = "UPDATE usage SET outcome = 'failed', estimated = 1 WHERE outcome = 'reserved'"


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One model call. `number` counts from 1 in its run. `cost_microusd` is None where the model
    has no price. `outcome` is `reserved` while it runs, then `completed`, `cancelled` or `failed`;
    `purpose` is `answer`, `summary`, `flush` or `consolidation`. `zone`: the chat's, for its
    days."""

    run_id: str
    number: int
    session: int
    person: str
    model: str
    purpose: str
    outcome: str
    usage: Usage
    cost_microusd: int | None
    zone: tzinfo = UTC


@dataclass(frozen=True, slots=True)
class Reached:
    """A cap that is used up, and what is used."""

    cap: Cap
    used: Used


@dataclass(frozen=True, slots=True)
class Cost:
    """What counts as used, in micro-dollars, and what of it running calls have only reserved."""

    counted: int
    held: int = 0

    @property
    def spent(self) -> int:
        """What is used in fact."""
        return self.counted - self.held


@dataclass(frozen=True, slots=True)
class PersonCap:
    """What one person may use over all chats of a channel since then (`memory.clock.stamp`), in
    micro-dollars."""

    limit: int
    since: str


@dataclass(frozen=True, slots=True)
class PersonReached:
    """The same of what one person may use."""

    cap: PersonCap
    cost: Cost


@dataclass(frozen=True, slots=True)
class Reservation:
    """A call that is to begin: what it is known to cost (`row.outcome` is `reserved`), and the limits
    that must leave room for it."""

    row: UsageRow
    caps: Sequence[Cap] = ()
    person: PersonCap | None = None


class UsageStore:
    """All model calls."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def book(self, rows: Sequence[UsageRow]) -> None:
        """Store calls, those that were reserved with what they used in the end. Idempotent on (run,
        number)."""
        await self._database.write(lambda connection: _book_all(connection, rows))

    async def settle(self, run_id: str, rows: Sequence[UsageRow]) -> None:
        """The run is over, and these are its calls: see `settle_calls`."""
        await self._database.write(lambda connection: settle_calls(connection, run_id, rows))

    async def settle_all(self) -> int:
        """At a start: the same for all runs, whose process has died; how many calls."""

        def op(connection: sqlite3.Connection) -> int:
            return connection.execute(_AS_ESTIMATED).rowcount

        return await self._database.write(op)

    async def used(self, place: Place, person: str, zone: tzinfo, *, month: bool = True) -> Used:
        """What the chat and the person have used; the month's sums are 0 without `month`."""

        def op(connection: sqlite3.Connection) -> Used:
            day = current(connection, place, datetime.now(UTC), zone)
            return used_of(connection, place, person, day, month=month)

        return await self._database.look(op)

    async def of_person(self, channel: str, person: str, since: str) -> Cost:
        """What a person has used in all chats of a channel."""
        rows = await self._database.read(
            _OF_PERSON, {"person": person, "channel": channel, "since": since}
        )
        return Cost(*map(int, rows[0]))

    async def cost_since(self, start: datetime, purposes: Sequence[str] = ()) -> Cost:
        """What all calls since `start` cost together, or those for some purposes."""
        return await self._database.look(lambda connection: cost_in(connection, start, purposes))

    async def calls_of(self, run_id: str) -> int:
        """The number of calls that are booked for a run."""
        rows = await self._database.read(
            "SELECT COALESCE(MAX(number), 0) FROM usage WHERE run_id = ?", (run_id,)
        )
        return int(rows[0][0])

    async def of_session(self, session: int) -> tuple[int, Usage]:
        """The number of calls for a session, and their tokens together."""
        rows = await self._database.read(
            "SELECT COUNT(*), COALESCE(SUM(input_tokens), 0), COALESCE(SUM(output_tokens), 0),"
            " COALESCE(SUM(cache_read_tokens), 0), COALESCE(SUM(cache_write_tokens), 0),"
            " COALESCE(MAX(estimated), 0) FROM usage WHERE session_id = ?",
            (session,),
        )
        calls, *counts = (int(value) for value in rows[0])
        return calls, Usage(counts[0], counts[1], counts[2], counts[3], bool(counts[4]))


def cost_in(connection: sqlite3.Connection, start: datetime, purposes: Sequence[str] = ()) -> Cost:
    """As `UsageStore.cost_since`, inside a look."""
    marks = ", ".join("?" for _ in purposes)
    since = "created_at >= ?" + (f" AND purpose IN ({marks})" if purposes else "")
    row = connection.execute(
        # The sum of all is read from an index alone, what is reserved from one of few rows.
        "SELECT COALESCE(SUM(cost_microusd), 0), (SELECT COALESCE(SUM(cost_microusd), 0)"  # noqa: S608
        f" FROM usage INDEXED BY usage_reserved WHERE outcome = 'reserved' AND {since})"
        f" FROM usage WHERE {since}",
        (stamp(start), *purposes) * 2,
    ).fetchone()
    return Cost(*map(int, row))


def reserve_in(
    connection: sqlite3.Connection, asked: Reservation
) -> Reached | PersonReached | None:
    """A call begins, and what it is known to cost counts from now on. With a cap that is used up
    already nothing is stored, and that one is the answer. For use inside a write."""
    row, person, now = asked.row, asked.person, datetime.now(UTC)
    place = _place_of(connection, row.session)
    if person is not None:
        whose = {"person": row.person, "channel": place[0], "since": person.since}
        cost = Cost(*map(int, connection.execute(_OF_PERSON, whose).fetchone()))
        if cost.counted >= person.limit:
            return PersonReached(person, cost)
    day = current(connection, place, now, row.zone)
    used = used_of(connection, place, row.person, day)
    met = first_met(asked.caps, used)
    if met is not None:
        return Reached(met, used)
    _insert(connection, row, day, place, now)
    return None


def settle_calls(connection: sqlite3.Connection, run_id: str, rows: Sequence[UsageRow]) -> None:
    """Book what a run that is over has called. A call of it that is still reserved then was not heard
    of again, and stays booked as it was estimated. For use inside a write."""
    _book_all(connection, rows)
    connection.execute(f"{_AS_ESTIMATED} AND run_id = ?", (run_id,))


def _book_all(connection: sqlite3.Connection, rows: Sequence[UsageRow]) -> None:
    now = datetime.now(UTC)
    for row in rows:
        _book(connection, row, now)


def _book(connection: sqlite3.Connection, row: UsageRow, now: datetime) -> None:
    known = connection.execute(
        "SELECT outcome, input_tokens + output_tokens + cache_read_tokens + cache_write_tokens,"
        " COALESCE(cost_microusd, 0), day_began FROM usage WHERE run_id = ? AND number = ?",
        (row.run_id, row.number),
    ).fetchone()
    place = _place_of(connection, row.session)
    if known is None:
        _insert(connection, row, current(connection, place, now, row.zone), place, now)
        return
    if known["outcome"] != "reserved":
        return
    usage = row.usage
    connection.execute(
        "UPDATE usage SET model = ?, outcome = ?, input_tokens = ?, output_tokens = ?,"
        " cache_read_tokens = ?, cache_write_tokens = ?, estimated = ?, cost_microusd = ?"
        " WHERE run_id = ? AND number = ?",
        (row.model, row.outcome, *_amounts(usage), row.cost_microusd, row.run_id, row.number),
    )
    more = (usage.total - int(known[1]), (row.cost_microusd or 0) - int(known[2]))
    adjust(connection, place, row.person, str(known["day_began"]), more)


def _insert(
    connection: sqlite3.Connection, row: UsageRow, day: Day, place: Place, now: datetime
) -> None:
    cursor = connection.execute(
        "INSERT INTO usage (run_id, number, session_id, person, model, purpose, outcome,"
        " input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, estimated,"
        " cost_microusd, created_at, day_began) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (run_id, number) DO NOTHING",
        (
            row.run_id,
            row.number,
            row.session,
            row.person,
            row.model,
            row.purpose,
            row.outcome,
            *_amounts(row.usage),
            row.cost_microusd,
            stamp(now),
            day.began_at,
        ),
    )
    if cursor.rowcount == 1:
        count(connection, place, row.person, day, (1, row.usage.total, row.cost_microusd or 0))


def _amounts(usage: Usage) -> tuple[int, int, int, int, int]:
    return (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        int(usage.estimated),
    )


def _place_of(connection: sqlite3.Connection, session: int) -> Place:
    """The chat that a session belongs to now."""
    row = connection.execute(
        "SELECT channel, account, chat FROM sessions WHERE id = ?", (session,)
    ).fetchone()
    return (str(row[0]), str(row[1]), str(row[2]))
