"""Jobs as rows: one for each kind and scope, and no time is lost that was set while one ran."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from memory.database import Database
from memory.jobs import Ended, Jobs, NextTime

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
async def jobs(tmp_path: Path) -> AsyncIterator[Jobs]:
    database = await Database.open(tmp_path / "galata.db")
    yield Jobs(database)
    await database.close()


async def test_what_waits_longest_comes_first_and_what_runs_does_not_come(jobs: Jobs) -> None:
    await jobs.once("flush", "b", NOON - HOUR)
    await jobs.once("flush", "a", NOON)
    await jobs.once("flush", "later", NOON + HOUR)
    await jobs.once("other", "x", NOON - 2 * HOUR)
    first = await jobs.due("flush", NOON, ())
    second = await jobs.due("flush", NOON, ("b",))
    assert first is not None
    assert second is not None
    assert (first.scope, second.scope) == ("b", "a")
    assert await jobs.due("flush", NOON, ("a", "b")) is None


async def test_a_time_that_was_set_while_the_job_ran_stands(jobs: Jobs) -> None:
    await jobs.once("flush", "a", NOON)
    job = await jobs.due("flush", NOON, ())
    assert job is not None
    await jobs.begin(job, NOON)
    await jobs.once("flush", "a", NOON + HOUR)
    await jobs.end(job, Ended(NOON, "done", "well", None, None, 0))
    (row,) = await jobs.all()
    assert (row.due_at, row.outcome, row.began_at) == (NOON + HOUR, "done", None)


async def test_the_same_plan_keeps_its_time_and_another_one_sets_it(jobs: Jobs) -> None:
    def coming(at: datetime) -> NextTime:
        return NextTime(at, at.date())

    await jobs.plan("backup", "", "0 3 * * *", "UTC", lambda _: coming(NOON))
    await jobs.plan("backup", "", "0 3 * * *", "UTC", lambda _: coming(NOON + 24 * HOUR))
    assert [row.due_at for row in await jobs.all()] == [NOON], "it was missed, and is made up"
    await jobs.plan("backup", "", "0 4 * * *", "UTC", lambda _: coming(NOON + HOUR))
    (row,) = await jobs.all()
    assert (row.due_at, row.cron) == (NOON + HOUR, "0 4 * * *")
    await jobs.plan("backup", "", "0 4 * * *", "UTC", lambda _: coming(NOON - HOUR))
    assert [row.due_at for row in await jobs.all()] == [NOON - HOUR], "the clock had been wrong"


async def test_a_plan_is_told_which_date_is_over(jobs: Jobs) -> None:
    days: list[date | None] = []

    def coming(last: date | None) -> NextTime:
        days.append(last)
        return NextTime(NOON, NOON.date())

    await jobs.plan("backup", "", "0 3 * * *", "UTC", coming)
    job = await jobs.due("backup", NOON, ())
    assert job is not None
    following = NextTime(NOON + 24 * HOUR, date(2026, 12, 1))
    await jobs.end(job, Ended(NOON, "done", "", following, job.day, 0))
    await jobs.plan("backup", "", "0 5 * * *", "UTC", coming)
    assert days == [None, date(2026, 11, 30)]


async def test_what_is_forgotten_does_not_come(jobs: Jobs) -> None:
    await jobs.once("flush", "a", NOON)
    for _ in range(2):
        await jobs.forget("flush", "a")
    assert await jobs.all() == []
