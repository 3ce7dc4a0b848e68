"""What is to be done at a time, and how it went. When it comes again is `bridge.scheduler`'s matter."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from memory.clock import stamp
from memory.database import Database

Outcome = Literal["done", "failed", "too_long", "interrupted"]

_COLUMNS = (
    "kind, scope, cron, zone, due_at, day, last_day, tries, began_at, last_at, outcome, detail"
)


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as it is stored; the columns are described in the migration. Times are UTC."""

    kind: str
    scope: str
    cron: str | None
    zone: str | None
    due_at: datetime | None
    day: date | None
    last_day: date | None
    tries: int
    began_at: datetime | None
    last_at: datetime | None
    outcome: Outcome | None
    detail: str | None


@dataclass(frozen=True, slots=True)
class NextTime:
    """When a job comes, and the local date that this stands for (None without a plan)."""

    due_at: datetime
    day: date | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended. `day`: the date that is over with it, or None when it is tried again or has
    none. `next`: None when it does not come again. `tries`: those that the next time begins with."""

    at: datetime
    outcome: Outcome
    detail: str
    next: NextTime | None
    day: date | None
    tries: int


class Jobs:
    """All jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def plan(
        self,
        kind: str,
        scope: str,
        cron: str,
        zone: str,
        next_time: Callable[[date | None], NextTime],
    ) -> None:
        """A job that comes by a plan. One that waits by the same plan already keeps its time, except
        where that is later than the next by the plan (the clock was wrong when it was computed).
        `next_time` gives that for the newest date that is over; it runs on the database's thread."""

        def op(connection: sqlite3.Connection) -> None:
            found = connection.execute(
                "SELECT cron IS ? AND zone IS ? AS same, due_at, last_day FROM jobs"
                " WHERE kind = ? AND scope = ?",
                (cron, zone, kind, scope),
            ).fetchone()
            coming = next_time(_date(found["last_day"]) if found else None)
            due_at = stamp(coming.due_at)
            if found and found["same"] and found["due_at"] and found["due_at"] <= due_at:
                return
            connection.execute(
                "INSERT INTO jobs (kind, scope, cron, zone, due_at, day) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (kind, scope) DO UPDATE SET cron = excluded.cron, tries = 0,"
                " zone = excluded.zone, due_at = excluded.due_at, day = excluded.day",
                (kind, scope, cron, zone, due_at, _text(coming.day)),
            )

        await self._database.write(op)

    async def once(self, kind: str, scope: str, due_at: datetime) -> None:
        """A job that comes once; asked for again before that, it takes the newer time."""

        await self._database.write(lambda connection: set_once(connection, kind, scope, due_at))

    async def forget(self, kind: str, scope: str) -> None:
        """The job does not come any more; one that runs is not stopped. Idempotent."""

        def op(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM jobs WHERE kind = ? AND scope = ?", (kind, scope))

        await self._database.write(op)

    async def all(self) -> list[JobRow]:
        """Every job, the next one first."""
        rows = await self._database.read(
            f"SELECT {_COLUMNS} FROM jobs ORDER BY due_at IS NULL, due_at, kind, scope"  # noqa: S608
        )
        return [_row(row) for row in rows]

    async def due(self, kind: str, now: datetime, running: Collection[str]) -> JobRow | None:
        """The job of that kind that has waited longest, without the scopes that are `running`."""
        marks = ", ".join("?" for _ in running)
        rows = await self._database.read(
            f"SELECT {_COLUMNS} FROM jobs WHERE kind = ? AND due_at <= ?"  # noqa: S608 - marks
            f" AND scope NOT IN ({marks}) ORDER BY due_at, scope LIMIT 1",
            (kind, stamp(now), *running),
        )
        return _row(rows[0]) if rows else None

    async def begin(self, job: JobRow, at: datetime) -> None:
        """The job runs from now on; the try counts also when the process does not survive it."""

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE jobs SET began_at = ?, tries = tries + 1 WHERE kind = ? AND scope = ?",
                (stamp(at), job.kind, job.scope),
            )

        await self._database.write(op)

    async def put_back(self, job: JobRow) -> None:
        """The process is stopping: the run does not count, and the job stays due."""

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE jobs SET began_at = NULL, tries = MAX(tries - 1, 0)"
                " WHERE kind = ? AND scope = ?",
                (job.kind, job.scope),
            )

        await self._database.write(op)

    async def end(self, job: JobRow, ended: Ended) -> None:
        """The run is over. A time that was set while it ran stands."""
        due_at = None if job.due_at is None else stamp(job.due_at)
        coming = ended.next
        values = {
            "kind": job.kind,
            "scope": job.scope,
            "at": stamp(ended.at),
            "outcome": ended.outcome,
            "detail": ended.detail,
            "over": _text(ended.day),
            "taken": due_at,
            "next": stamp(coming.due_at) if coming else None,
            "next_day": _text(coming.day) if coming else None,
            "tries": ended.tries,
        }

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE jobs SET last_at = :at, outcome = :outcome, detail = :detail,"
                " began_at = NULL, last_day = COALESCE(:over, last_day)"
                " WHERE kind = :kind AND scope = :scope",
                values,
            )
            connection.execute(
                "UPDATE jobs SET due_at = :next, day = :next_day, tries = :tries"
                " WHERE kind = :kind AND scope = :scope AND due_at IS :taken",
                values,
            )

        await self._database.write(op)


def set_once(connection: sqlite3.Connection, kind: str, scope: str, due_at: datetime) -> None:
    """As `Jobs.once`, inside another write."""
    connection.execute(
        "INSERT INTO jobs (kind, scope, due_at) VALUES (?, ?, ?)"
        " ON CONFLICT (kind, scope) DO UPDATE SET cron = NULL, zone = NULL, day = NULL,"
        " due_at = excluded.due_at, tries = 0",
        (kind, scope, stamp(due_at)),
    )


def _row(row: sqlite3.Row) -> JobRow:
    return JobRow(
        row["kind"],
        row["scope"],
        row["cron"],
        row["zone"],
        _time(row["due_at"]),
        _date(row["day"]),
        _date(row["last_day"]),
        int(row["tries"]),
        _time(row["began_at"]),
        _time(row["last_at"]),
        row["outcome"],
        row["detail"],
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _date(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)


def _text(day: date | None) -> str | None:
    return None if day is None else day.isoformat()
