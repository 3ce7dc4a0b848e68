"""What a chat used in its day and month: sums of one row per chat, person and day.

A day begins at midnight in the chat's zone. A change of the zone never gives a second day: the day
that has begun goes on until a midnight of the new zone that is a day (23 hours, for the nights in
which clocks are put forward) after its begin.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal

from memory.clock import stamp

SHORTEST_DAY = timedelta(hours=23)

Place = tuple[str, str, str]  # channel, account, chat


@dataclass(frozen=True, slots=True)
class Day:
    """A chat's day: when it began, as the database keeps times, and its local date."""

    began_at: str
    label: str

    @property
    def month(self) -> str:
        """Its calendar month, as `2026-11`."""
        return self.label[:7]


@dataclass(frozen=True, slots=True)
class Sums:
    """By the whole chat today and this month, by the person too. Costs are in micro-dollars."""

    chat_cost: int = 0
    chat_tokens: int = 0
    person_cost: int = 0
    person_tokens: int = 0
    month_cost: int = 0
    person_month_cost: int = 0


@dataclass(frozen=True, slots=True)
class Used(Sums):
    """What counts as used in `day`, with what running requests have reserved; that alone is `held`."""

    day: Day = field(kw_only=True)
    held: Sums = field(default=Sums(), kw_only=True)


Measure = Literal["chat_cost", "chat_tokens", "person_cost", "person_tokens", "month_cost"]


@dataclass(frozen=True, slots=True)
class Cap:
    """Of what a chat or person may use no more than `limit`; `key` names the setting."""

    key: str
    measure: Measure
    limit: int

    def used(self, used: Used) -> int:
        """What counts against it."""
        return int(getattr(used, self.measure))

    def held(self, used: Used) -> int:
        """What of that is only reserved."""
        return int(getattr(used.held, self.measure))

    def spent(self, used: Used) -> int:
        """What is used in fact."""
        return self.used(used) - self.held(used)


def first_met(caps: Iterable[Cap], used: Used) -> Cap | None:
    """The first cap that is used up."""
    return next((cap for cap in caps if cap.used(used) >= cap.limit), None)


def midnight(day: date, zone: tzinfo) -> datetime:
    """When that date begins in the zone, in UTC."""
    return datetime.combine(day, time(), tzinfo=zone).astimezone(UTC)


def day_of(now: datetime, zone: tzinfo, latest: Day | None) -> Day:
    """The chat's day at `now`. `latest`: the newest one in which anything was used."""
    local = now.astimezone(zone).date()
    began = midnight(local, zone)
    if latest is not None and began < datetime.fromisoformat(latest.began_at) + SHORTEST_DAY:
        return latest
    return Day(stamp(began), local.isoformat())


def next_day(day: Day, now: datetime, zone: tzinfo) -> datetime:
    """When the chat's next day begins."""
    local, earliest = now.astimezone(zone).date(), datetime.fromisoformat(day.began_at)
    for later in range(1, 4):
        began = midnight(local + timedelta(days=later), zone)
        if began >= earliest + SHORTEST_DAY:
            return began
    raise AssertionError("a day has begun in the future")


def next_month(day: Day, now: datetime, zone: tzinfo) -> datetime:
    """When the chat's next month begins."""
    first = date.fromisoformat(f"{day.month}-01")
    first = (first + timedelta(days=32)).replace(day=1)
    return max(midnight(first, zone), next_day(day, now, zone))


# A chat with the ids that it had before: its rows follow to a new id a moment after the move is known
# (`memory.chats.moving`).
ITS_IDS = (
    "chat IN (SELECT :chat UNION ALL SELECT old FROM moved_chats"
    " WHERE channel = :channel AND account = :account AND chat = :chat)"
)
# One look into the index for each id: over all of them SQLite would sort every day that is stored.
LATEST = (
    "WITH newest (both) AS (SELECT (SELECT began_at || '|' || day FROM usage_days"
    " WHERE channel = :channel AND account = :account AND chat = ids.id"
    " ORDER BY began_at DESC LIMIT 1)"
    " FROM (SELECT :chat AS id UNION ALL SELECT old FROM moved_chats"
    " WHERE channel = :channel AND account = :account AND chat = :chat) AS ids)"
    " SELECT substr(both, 1, instr(both, '|') - 1), substr(both, instr(both, '|') + 1)"
    " FROM newest WHERE both IS NOT NULL ORDER BY both DESC LIMIT 1"
)
_HERE = f"FROM usage_days WHERE channel = :channel AND account = :account AND {ITS_IDS}"
SUMS = (
    "SELECT today.cost, today.tokens, today.own_cost, today.own_tokens, month.cost,"  # noqa: S608
    " month.own_cost"
    " FROM (SELECT COALESCE(SUM(cost_microusd), 0) AS cost, COALESCE(SUM(tokens), 0) AS tokens,"
    " COALESCE(SUM(cost_microusd) FILTER (WHERE person IN (:person, :erased)), 0) AS own_cost,"
    " COALESCE(SUM(tokens) FILTER (WHERE person IN (:person, :erased)), 0) AS own_tokens"
    f" {_HERE} AND began_at = :day) AS today,"
    " (SELECT COALESCE(SUM(cost_microusd), 0) AS cost,"
    " COALESCE(SUM(cost_microusd) FILTER (WHERE person IN (:person, :erased)), 0) AS own_cost"
    f" {_HERE} AND began_at >= :since AND day >= :first) AS month"
)

TOKENS = "u.input_tokens + u.output_tokens + u.cache_read_tokens + u.cache_write_tokens"
# The running requests of a chat (u), each with its row of the days (d). They are few: a CROSS JOIN
# makes SQLite begin with them.
RESERVED = (
    "FROM usage u INDEXED BY usage_reserved CROSS JOIN sessions s ON s.id = u.session_id"
    " CROSS JOIN usage_days d ON d.channel = s.channel AND d.account = s.account AND d.chat = s.chat"
    " AND d.began_at = u.day_began AND d.person = u.person"
    " WHERE u.outcome = 'reserved' AND d.channel = :channel AND d.account = :account"
    f" AND d.{ITS_IDS}"
)
_TODAY, _OWN = "d.began_at = :day", "u.person IN (:person, :erased)"
HELD = "SELECT {} {}".format(
    ", ".join(
        f"COALESCE(SUM({what}) FILTER (WHERE {where}), 0)"
        for what, where in (
            ("u.cost_microusd", _TODAY),
            (TOKENS, _TODAY),
            ("u.cost_microusd", f"{_TODAY} AND {_OWN}"),
            (TOKENS, f"{_TODAY} AND {_OWN}"),
            ("u.cost_microusd", "d.day >= :first"),
            ("u.cost_microusd", f"d.day >= :first AND {_OWN}"),
        )
    ),
    RESERVED,
)


def named(place: Place) -> dict[str, str]:
    """The parameters of `LATEST`."""
    return {"channel": place[0], "account": place[1], "chat": place[2]}


def latest_of(rows: Sequence[sqlite3.Row]) -> Day | None:
    """The day of `LATEST`'s rows."""
    return Day(str(rows[0][0]), str(rows[0][1])) if rows else None


def sums(place: Place, person: str, day: Day, *, month: bool) -> dict[str, str]:
    """The parameters of `SUMS`; without `month` only today's rows are read, and count as its."""
    first = datetime.fromisoformat(f"{day.month}-01T00:00:00+00:00")
    return {
        **named(place),
        "person": person,
        "erased": f"erased:{place[0]}:{person}",  # what they have had erased counts on
        "day": day.began_at,
        "first": f"{day.month}-01",
        "since": stamp(first - timedelta(days=2)) if month else day.began_at,
    }


def used_of(
    connection: sqlite3.Connection, place: Place, person: str, day: Day, *, month: bool = True
) -> Used:
    """What is used; the month's sums are 0 without `month`."""
    values = sums(place, person, day, month=month)
    row = connection.execute(SUMS, values).fetchone()
    held = Sums(*map(int, connection.execute(HELD, values).fetchone()))
    return Used(*map(int, row if month else row[:4]), day=day, held=held)


def current(connection: sqlite3.Connection, place: Place, now: datetime, zone: tzinfo) -> Day:
    """The chat's day."""
    return day_of(now, zone, latest_of(connection.execute(LATEST, named(place)).fetchall()))


def count(
    connection: sqlite3.Connection,
    place: Place,
    person: str,
    day: Day,
    amounts: tuple[int, int, int],
) -> None:
    """Add calls, tokens and micro-dollars to a day, inside the write of the call's own row."""
    connection.execute(
        "INSERT INTO usage_days VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (channel, account, chat, began_at, person) DO UPDATE SET"
        " calls = calls + excluded.calls, tokens = tokens + excluded.tokens,"
        " cost_microusd = cost_microusd + excluded.cost_microusd",
        (*place, day.began_at, person, day.label, *amounts),
    )


def adjust(
    connection: sqlite3.Connection, place: Place, person: str, began_at: str, more: tuple[int, int]
) -> None:
    """Add tokens and micro-dollars to the day of a call that was counted already."""
    connection.execute(
        "UPDATE usage_days SET tokens = tokens + ?, cost_microusd = cost_microusd + ?"
        " WHERE channel = ? AND account = ? AND chat = ? AND began_at = ? AND person = ?",
        (*more, *place, began_at, person),
    )


def carry_days(
    connection: sqlite3.Connection, account: tuple[str, str], old: str, new: str
) -> None:
    """A chat's days follow to its new id, inside a write; those of both are added up."""
    connection.execute(
        "INSERT INTO usage_days SELECT channel, account, :new, began_at, person, day, calls, tokens,"
        " cost_microusd FROM usage_days WHERE channel = :channel AND account = :account"
        " AND chat = :old ON CONFLICT (channel, account, chat, began_at, person) DO UPDATE SET"
        " calls = calls + excluded.calls, tokens = tokens + excluded.tokens,"
        " cost_microusd = cost_microusd + excluded.cost_microusd",
        {"channel": account[0], "account": account[1], "old": old, "new": new},
    )
    connection.execute(
        "DELETE FROM usage_days WHERE channel = ? AND account = ? AND chat = ?", (*account, old)
    )
