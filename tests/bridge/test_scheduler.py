"""The scheduler on a real database with a clock of its own: each date once, nothing missed, nothing
that one job does reaches another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.scheduler import MOST_TRIES, Due, Handler, Plan, Scheduler, next_time
from memory.database import Database
from memory.jobs import JobRow, Jobs

BERLIN = "Europe/Berlin"
NIGHTLY = Plan("30 3 * * *", BERLIN)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def berlin(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(BERLIN)).astimezone(UTC)


def times(plan: Plan, start: datetime, count: int) -> list[datetime]:
    found: list[datetime] = []
    day: date | None = None
    for _ in range(count):
        coming = next_time(plan, start, after_day=day)
        start, day = coming.due_at, coming.day
        found.append(coming.due_at)
    return found


# When a job comes next -------------------------------------------------------------------------


def test_a_time_that_comes_twice_in_autumn_counts_once() -> None:
    plan = Plan("30 2 * * *", BERLIN)
    assert times(plan, utc("2026-10-24T12:00"), 2) == [
        utc("2026-10-25T00:30"),
        utc("2026-10-26T01:30"),
    ]
    after_restart_between_the_two = next_time(plan, utc("2026-10-25T01:00"))
    assert after_restart_between_the_two.due_at == utc("2026-10-26T01:30")


def test_a_time_that_spring_leaves_out_is_made_up_an_hour_later() -> None:
    plan = Plan("30 2 * * *", BERLIN)
    assert times(plan, utc("2026-03-28T12:00"), 2) == [
        utc("2026-03-29T01:30"),  # 3:30 by the clock on the wall
        utc("2026-03-30T00:30"),
    ]
    after_restart_in_between = next_time(plan, berlin("2026-03-29T03:10"))
    assert after_restart_in_between.due_at == utc("2026-03-29T01:30")


def test_a_day_that_a_zone_leaves_out_is_no_reason_to_stop() -> None:
    plan = Plan("0 3 * * *", "Pacific/Apia")  # it had no 30 December 2011
    days = [moment.astimezone(plan.tzinfo()).date().isoformat()
            for moment in times(plan, utc("2011-12-29T00:00"), 3)]  # fmt: skip
    assert days == ["2011-12-29", "2011-12-31", "2012-01-01"]


def test_a_leap_day_is_a_day_and_a_plan_for_it_waits_for_the_next() -> None:
    assert [moment.date().isoformat() for moment in times(Plan("0 3 * * *", "UTC"),
            utc("2028-02-28T12:00"), 2)] == ["2028-02-29", "2028-03-01"]  # fmt: skip
    leap = next_time(Plan("0 3 29 2 *", "UTC"), utc("2026-11-30T12:00"))
    assert leap.due_at == utc("2028-02-29T03:00")


@pytest.mark.parametrize(
    ("weekdays", "expected"),
    [
        ("mon-fri", ["mon", "tue", "wed", "thu", "fri"]),
        ("sat-mon", ["mon", "sat", "sun"]),
        ("Wed,sun", ["sun", "wed"]),
    ],
)
def test_weekdays_are_those_of_their_names(weekdays: str, expected: list[str]) -> None:
    names = {
        f"{moment:%a}".lower()
        for moment in times(Plan(f"0 9 * * {weekdays}", "UTC"), utc("2026-11-30T12:00"), 14)
    }
    assert sorted(names) == sorted(expected)


@pytest.mark.parametrize(
    "cron",
    ["0 9 * * 1-5", "0 9 * * 0", "* 9 * * *", "0 */2 * * *", "0 3 30 2 *", "9", "0 25 * * *"],
)
def test_what_would_mean_something_else_or_never_come_is_refused(cron: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Plan(cron, "UTC")


@given(
    zone=st.sampled_from(
        [BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"]
    ),
    start=st.integers(0, 5 * 365 * 1440).map(lambda n: utc("2024-01-01") + timedelta(minutes=n)),
    hour=st.integers(0, 23),
    minute=st.integers(0, 59),
)
def test_a_daily_plan_comes_once_on_each_local_date(
    zone: str, start: datetime, hour: int, minute: int
) -> None:
    plan = Plan(f"{minute} {hour} * * *", zone)
    found = [next_time(plan, start)]
    for _ in range(5):
        found.append(next_time(plan, found[-1].due_at, after_day=found[-1].day))
    days = [coming.day for coming in found if coming.day is not None]
    assert days == [days[0] + timedelta(days=n) for n in range(6)]
    assert found[0].due_at > start
    assert found[0].due_at - start <= timedelta(hours=25)


# Running what is due ---------------------------------------------------------------------------


class Night:
    """A scheduler with a clock of its own, and what its jobs did."""

    def __init__(self, database: Database, group: asyncio.TaskGroup, now: datetime) -> None:
        self.now = now
        self.runs: list[Due] = []
        self.faults: list[str] = []
        self.during: Callable[[Due], object] = lambda due: None
        self.gate = asyncio.Event()
        self.begun = asyncio.Event()
        self.most_at_once = 0
        self.at_once = 0
        self.jobs = Jobs(database)
        handlers = {
            "work": Handler(self._work, limit_s=60),
            "hang": Handler(self._hang, limit_s=60),
            "slow": Handler(self._hang, limit_s=0.01),
            "many": Handler(self._many, limit_s=60, at_once=3),
        }
        self.scheduler = Scheduler(self.jobs, handlers, self._report, group, lambda: self.now)

    async def at(self, moment: datetime) -> list[Due]:
        """What a tick at that time carries out."""
        self.now = moment
        before = len(self.runs)
        await self.scheduler.tick(moment)
        await self.scheduler.idle()
        return self.runs[before:]

    async def row(self, kind: str = "work", scope: str = "") -> JobRow:
        return next(row for row in await self.jobs.all() if (row.kind, row.scope) == (kind, scope))

    async def _work(self, due: Due) -> str:
        self.runs.append(due)
        self.during(due)
        return "well"

    async def _hang(self, due: Due) -> str:
        self.runs.append(due)
        self.begun.set()
        await self.gate.wait()
        return "well"

    async def _many(self, due: Due) -> str:
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        if self.at_once == 3:
            self.gate.set()
        await self.gate.wait()
        self.at_once -= 1
        self.runs.append(due)
        return "well"

    async def _report(self, error: BaseException, place: str) -> str:
        self.faults.append(f"{place}: {error}")
        return "ID"


@asynccontextmanager
async def night(folder: Path, now: datetime) -> AsyncIterator[Night]:
    database = await Database.open(folder / "galata.db")
    try:
        async with asyncio.TaskGroup() as group:
            made = Night(database, group, now)
            yield made
            await made.scheduler.close()
    finally:
        await database.close()


EVENING = berlin("2026-11-30T20:00")
NIGHT = berlin("2026-12-01T03:30")


async def test_a_job_comes_at_its_time_and_once(tmp_path: Path) -> None:
    async with night(tmp_path, EVENING) as bed:
        await bed.scheduler.plan("work", NIGHTLY)
        assert await bed.at(NIGHT - timedelta(seconds=1)) == []
        (run,) = await bed.at(NIGHT + timedelta(seconds=4))
        assert (run.day, run.planned_at) == (date(2026, 12, 1), NIGHT)
        assert await bed.at(NIGHT + timedelta(seconds=9)) == []
        row = await bed.row()
        assert (row.outcome, row.detail) == ("done", "well")
        assert row.due_at == berlin("2026-12-02T03:30")


async def test_a_machine_that_slept_over_three_nights_makes_them_up_once(tmp_path: Path) -> None:
    async with night(tmp_path, EVENING) as bed:
        await bed.scheduler.plan("work", NIGHTLY)
        assert len(await bed.at(berlin("2026-12-03T09:00"))) == 1
        assert await bed.at(berlin("2026-12-03T09:05")) == []
        assert (await bed.row()).due_at == berlin("2026-12-04T03:30")


@pytest.mark.parametrize("killed", [True, False])
async def test_a_restart_at_night_repeats_only_what_did_not_end(
    tmp_path: Path, killed: bool
) -> None:
    async with night(tmp_path, EVENING) as bed:
        await bed.scheduler.plan("work", NIGHTLY)
        await bed.scheduler.plan("hang", NIGHTLY)
        bed.now = NIGHT
        await bed.scheduler.tick(NIGHT)
        await bed.begun.wait()
        if killed:  # what the next process finds then
            row = await bed.row("hang")
            await bed.scheduler.close()
            await bed.jobs.begin(row, NIGHT)
    async with night(tmp_path, NIGHT) as bed:
        bed.gate.set()
        for kind in ("work", "hang"):
            await bed.scheduler.plan(kind, NIGHTLY)
        runs = await bed.at(NIGHT + timedelta(minutes=1))
        assert [run.kind for run in runs] == ["hang"]
        assert await bed.at(NIGHT + timedelta(minutes=2)) == []
        assert (await bed.row("hang")).outcome == "done"


async def test_an_hour_that_comes_twice_is_worked_once_also_across_a_restart(
    tmp_path: Path,
) -> None:
    plan = Plan("30 2 * * *", BERLIN)
    async with night(tmp_path, utc("2026-10-24T12:00")) as bed:
        await bed.scheduler.plan("work", plan)
        assert len(await bed.at(utc("2026-10-25T00:30"))) == 1
    async with night(tmp_path, utc("2026-10-25T00:45")) as bed:
        await bed.scheduler.plan("work", plan)
        assert await bed.at(utc("2026-10-25T01:30")) == []
        assert len(await bed.at(utc("2026-10-26T01:30"))) == 1


async def test_an_hour_that_does_not_exist_is_worked_too(tmp_path: Path) -> None:
    async with night(tmp_path, utc("2026-03-28T12:00")) as bed:
        await bed.scheduler.plan("work", Plan("30 2 * * *", BERLIN))
        assert await bed.at(utc("2026-03-29T01:29")) == []
        assert len(await bed.at(utc("2026-03-29T01:30"))) == 1
        assert len(await bed.at(utc("2026-03-30T00:30"))) == 1


async def test_another_zone_gives_no_second_run_on_one_date(tmp_path: Path) -> None:
    async with night(tmp_path, EVENING - timedelta(hours=8)) as bed:
        await bed.scheduler.plan("work", Plan("30 3 * * *", "Asia/Tokyo"))
        (run,) = await bed.at(utc("2026-11-30T18:30"))
        assert run.day == date(2026, 12, 1)
        await bed.scheduler.plan("work", NIGHTLY)
        assert (await bed.row()).due_at == berlin("2026-12-02T03:30")


async def test_a_clock_that_was_years_ahead_does_not_stop_the_jobs(tmp_path: Path) -> None:
    async with night(tmp_path, EVENING) as bed:
        await bed.scheduler.plan("work", NIGHTLY)
        assert len(await bed.at(berlin("2099-01-01T03:30"))) == 1
        bed.now = EVENING
        await bed.scheduler.plan("work", NIGHTLY)
        assert (await bed.row()).due_at == berlin("2026-12-02T03:30")
    assert next_time(NIGHTLY, EVENING, after_day=date(2099, 1, 1)).due_at == NIGHT


async def test_a_job_that_comes_once_comes_once(tmp_path: Path) -> None:
    async with night(tmp_path, EVENING) as bed:
        await bed.scheduler.once("work", EVENING, "a")
        await bed.scheduler.once("work", EVENING, "b")
        assert [run.scope for run in await bed.at(EVENING)] == ["a", "b"]
        assert await bed.at(EVENING + timedelta(days=1)) == []
        assert (await bed.row(scope="a")).due_at is None


async def test_a_failing_job_stops_no_other_and_is_tried_again(tmp_path: Path) -> None:
    def fail(due: Due) -> None:
        if due.scope == "bad":
            raise RuntimeError("oops")

    async with night(tmp_path, EVENING) as bed:
        bed.during = fail
        await bed.scheduler.plan("work", NIGHTLY, "bad")
        await bed.scheduler.plan("work", NIGHTLY, "good")
        assert len(await bed.at(NIGHT)) == 2
        assert bed.faults == ["job work bad: oops"]
        row = await bed.row(scope="bad")
        assert (row.outcome, row.detail) == ("failed", "error ID")
        assert await bed.at(NIGHT + timedelta(minutes=9)) == []
        assert len(await bed.at(NIGHT + timedelta(minutes=10))) == 1
        assert len(await bed.at(NIGHT + timedelta(minutes=70))) == 1
        assert await bed.at(NIGHT + timedelta(hours=12)) == [], "three tries for a night"
        assert (await bed.row(scope="bad")).due_at == berlin("2026-12-02T03:30")
        assert len(await bed.at(berlin("2026-12-02T03:30"))) == 2


async def test_a_job_that_ends_the_process_each_time_is_given_up(tmp_path: Path) -> None:
    async with night(tmp_path, EVENING) as bed:
        await bed.scheduler.plan("work", NIGHTLY)
        for _ in range(MOST_TRIES):
            await bed.jobs.begin(await bed.row(), NIGHT)
        assert await bed.at(NIGHT) == []
        row = await bed.row()
        assert (row.outcome, row.due_at) == ("interrupted", berlin("2026-12-02T03:30"))
        assert len(await bed.at(berlin("2026-12-02T03:30"))) == 1


async def test_a_job_has_a_bound_on_time(tmp_path: Path) -> None:
    async with night(tmp_path, EVENING) as bed:
        await bed.scheduler.once("slow", EVENING)
        assert len(await bed.at(EVENING)) == 1
        assert (await bed.row("slow")).outcome == "too_long"


async def test_a_job_that_still_runs_does_not_come_again_and_delays_no_other_kind(
    tmp_path: Path,
) -> None:
    async with night(tmp_path, EVENING) as bed:
        await bed.scheduler.plan("hang", NIGHTLY)
        await bed.scheduler.plan("work", NIGHTLY)
        for days in range(3):
            bed.now = NIGHT + timedelta(days=days)
            await bed.scheduler.tick(bed.now)
            await bed.begun.wait()
        assert [run.kind for run in bed.runs].count("hang") == 1
        bed.gate.set()
        await bed.scheduler.idle()
        assert [run.kind for run in bed.runs].count("work") >= 1


async def test_many_scopes_are_worked_a_few_at_a_time(tmp_path: Path) -> None:
    async with night(tmp_path, EVENING) as bed:
        for number in range(20):
            await bed.scheduler.plan("many", NIGHTLY, f"s{number}")
        runs = await bed.at(NIGHT)
        assert sorted(run.scope for run in runs) == sorted(f"s{number}" for number in range(20))
        assert bed.most_at_once == 3


async def test_a_stop_ends_running_jobs_at_once_and_they_stay_due(tmp_path: Path) -> None:
    async with night(tmp_path, EVENING) as bed:
        await bed.scheduler.plan("hang", NIGHTLY)
        bed.now = NIGHT
        await bed.scheduler.tick(NIGHT)
        await bed.begun.wait()
        await bed.scheduler.close()
        row = await bed.row("hang")
        assert (row.due_at, row.tries, row.began_at) == (NIGHT, 0, None)
        await bed.scheduler.tick(NIGHT)
        assert len(bed.runs) == 1, "a closed scheduler starts nothing"


async def test_the_clockwork_ticks_and_stops(tmp_path: Path) -> None:
    async with night(tmp_path, EVENING) as bed:
        await bed.scheduler.once("hang", EVENING)
        await bed.scheduler.start(every_s=0.01)
        await bed.begun.wait()
    assert len(bed.runs) == 1


async def test_a_clock_that_is_set_back_does_not_stop_the_clockwork(tmp_path: Path) -> None:
    async with night(tmp_path, EVENING) as bed:
        await bed.scheduler.start(every_s=0.01)
        timer = bed.scheduler._timer
        assert timer is not None
        # For APScheduler the next tick is now hours away.
        timer._scheduler.modify_job("tick", next_run_time=datetime.now(UTC) + timedelta(hours=2))
        await bed.scheduler.once("hang", EVENING)
        await bed.begun.wait()
