"""The scheduler: what is due is a row in the table of jobs, and `tick` starts it.

A kind of job is registered by a `Handler` under its name in the mapping that `Scheduler` is given;
rows of other kinds wait untouched. `plan` makes a row that comes by a `Plan`, `once` one that comes
at a time. A job that was missed (the machine slept, the bot was down) is made up once, however often
it was missed. APScheduler runs `tick` every few seconds and knows nothing else; its `CronTrigger` only
computes which wall-clock time comes next, over a clock that never shifts: the hour that a zone has
twice, or not at all, is handled here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from memory.jobs import Ended, JobRow, Jobs, NextTime, Outcome

log = logging.getLogger(__name__)

EVERY_S = 5.0  # between two ticks
MOST_TRIES = (
    3  # for one date; begun and never ended counts, so that no job ends the process for ever
)
RETRY_AFTER = (timedelta(minutes=10), timedelta(hours=1))  # after the first and the second try
WARN_EVERY = timedelta(hours=1)
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MOST_DETAIL = 200  # characters of a run's result that are kept


@dataclass(frozen=True, slots=True)
class Plan:
    """When a job comes: `cron` as `minute hour day month weekday`, in the IANA zone `zone`.

    Minute and hour are numbers, since a job comes once a local date at most; weekdays are names
    (`mon-fri`, `sat,sun`), since numbers mean other days to other programs; day and month are as in
    cron, and all fields have to fit. Raises `ValueError` for what is none, or never comes.
    """

    cron: str
    zone: str

    def __post_init__(self) -> None:
        next_time(self, datetime(2000, 1, 1, tzinfo=UTC))

    def tzinfo(self) -> tzinfo:
        """The zone."""
        return UTC if self.zone == "UTC" else ZoneInfo(self.zone)


@dataclass(frozen=True, slots=True)
class Due:
    """A run of a job: its scope, the local date that it is for (of the oldest one missed; None without
    a plan), the time that it was planned for or asked for, and now; both UTC."""

    kind: str
    scope: str
    day: date | None
    planned_at: datetime
    now: datetime


@dataclass(frozen=True, slots=True)
class Handler:
    """What carries a kind of job out. `run` returns a short result for `galata jobs`, without secrets
    or texts of people; it is cancelled after `limit_s` seconds and when the process stops, and may
    come again. `at_once`: how many scopes of the kind may run at a time."""

    run: Callable[[Due], Awaitable[str]]
    limit_s: float
    at_once: int = 1


Report = Callable[[BaseException, str], Awaitable[str]]


class Scheduler:
    """Starts what is due. `report` keeps an error and gives its id; `clock` gives the time in UTC."""

    def __init__(
        self,
        jobs: Jobs,
        handlers: Mapping[str, Handler],
        report: Report,
        group: asyncio.TaskGroup,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._jobs = jobs
        self._handlers = handlers
        self._report = report
        self._group = group
        self._clock = clock
        self._running: dict[str, set[str]] = {kind: set() for kind in handlers}
        self._workers: set[asyncio.Task[None]] = set()
        self._taking = asyncio.Lock()
        self._warned: datetime | None = None
        self._timer: _Timer | None = None
        self._closed = False

    # What is to come ------------------------------------------------------------------------------

    async def plan(self, kind: str, plan: Plan, scope: str = "") -> None:
        """The job comes by `plan`; one that waits by the same plan already is left as it is."""
        now = self._clock()
        await self._jobs.plan(
            kind, scope, plan.cron, plan.zone, lambda last: next_time(plan, now, after_day=last)
        )

    async def once(self, kind: str, due_at: datetime, scope: str = "") -> None:
        """The job comes once, at `due_at`; asked for again before that, it takes the newer time."""
        await self._jobs.once(kind, scope, due_at)

    async def forget(self, kind: str, scope: str = "") -> None:
        """The job does not come any more; one that runs is not stopped."""
        await self._jobs.forget(kind, scope)

    # The clockwork --------------------------------------------------------------------------------

    async def start(self, every_s: float = EVERY_S) -> None:
        """Tick every `every_s` seconds from now on."""
        self._timer = await asyncio.to_thread(_Timer, self._tick_now, every_s)
        self._timer.start()

    async def tick(self, now: datetime) -> None:
        """Start what is due at `now`, and return when it is started. Raises `StoreError`."""
        for kind in self._handlers:
            while (job := await self._take(kind, now)) is not None:
                worker = self._group.create_task(self._work(job, now), name=f"job {_name(job)}")
                self._workers.add(worker)
                worker.add_done_callback(self._workers.discard)

    async def idle(self) -> None:
        """Return when no job runs."""
        while self._workers:
            await asyncio.wait(self._workers)

    async def close(self) -> None:
        """Start nothing more and cancel what runs: it stays due, and comes at the next start."""
        self._closed = True
        if self._timer is not None:
            await self._timer.stop()
        async with self._taking:  # nothing is started from now on
            workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _tick_now(self) -> None:
        try:
            await self.tick(self._clock())
        except Exception as error:  # noqa: BLE001 - a border: the next tick comes in any case
            self._warn(f"jobs could not be looked up: {error}")

    def _warn(self, warning: str) -> None:
        """A store that fails does so every few seconds; once an hour is enough."""
        now = self._clock()
        if self._warned is None or abs(now - self._warned) >= WARN_EVERY:
            self._warned = now
            log.warning(warning)

    # Jobs -----------------------------------------------------------------------------------------

    async def _take(self, kind: str, now: datetime) -> JobRow | None:
        """The next job of the kind that is due, if one more may run; it counts as running then."""
        async with self._taking:
            running = self._running[kind]
            if self._closed or len(running) >= self._handlers[kind].at_once:
                return None
            job = await self._jobs.due(kind, now, running)
            if job is not None:
                running.add(job.scope)
            return job

    async def _work(self, first: JobRow, now: datetime) -> None:
        """Carry out that job and, one after another, those of its kind that were due with it."""
        job: JobRow | None = first
        try:
            while job is not None:
                try:
                    await self._carry_out(job)
                finally:
                    self._running[first.kind].discard(job.scope)
                job = await self._take(first.kind, now)
        except Exception as error:  # noqa: BLE001 - a border: the store does not take it
            self._warn(f"job {first.kind} could not be kept: {error}")

    async def _carry_out(self, job: JobRow) -> None:
        began = self._clock()
        if job.tries >= MOST_TRIES:  # each of them ended the process
            await self._end(
                job, began, "interrupted", f"given up after {job.tries} tries", job.tries
            )
            return
        try:
            await self._jobs.begin(job, began)
            outcome, detail = await self._outcome(job, began)
        except asyncio.CancelledError:
            await self._jobs.put_back(job)
            raise
        await self._end(job, began, outcome, detail, job.tries + 1)

    async def _outcome(self, job: JobRow, began: datetime) -> tuple[Outcome, str]:
        handler = self._handlers[job.kind]
        due = Due(job.kind, job.scope, job.day, job.due_at or began, began)
        limit = asyncio.timeout(handler.limit_s)
        try:
            async with limit:
                return "done", await handler.run(due)
        except Exception as error:  # noqa: BLE001 - a border: reported, and the next job comes
            if limit.expired():
                log.warning("job %s was stopped after %.0f s", _name(job), handler.limit_s)
                return "too_long", f"stopped after {handler.limit_s:.0f} s"
            return "failed", f"error {await self._report(error, f'job {_name(job)}')}"

    async def _end(
        self, job: JobRow, began: datetime, outcome: Outcome, detail: str, tries: int
    ) -> None:
        """Keep how it ended, and when it comes again: soon where a try is left, else by its plan."""
        again = outcome in ("failed", "too_long") and tries < MOST_TRIES
        if again:
            coming: NextTime | None = NextTime(began + RETRY_AFTER[tries - 1], job.day)
        elif job.cron is not None and job.zone is not None:
            coming = next_time(Plan(job.cron, job.zone), began, after_day=job.day)
        else:
            coming = None
        day, left = (None, tries) if again else (job.day, 0)
        detail = detail[:_MOST_DETAIL]
        await self._jobs.end(job, Ended(self._clock(), outcome, detail, coming, day, left))


def _name(job: JobRow) -> str:
    return f"{job.kind} {job.scope}".rstrip()


class _Timer:
    """APScheduler with the one job. It sleeps until a time by the wall clock: one that was set back
    would stop it for that long, so what no tick follows for a while is woken by the loop's clock."""

    def __init__(self, tick: Callable[[], Awaitable[None]], every_s: float) -> None:
        # Imported where it is used: 0.1 s, beside the start of everything else.
        from apscheduler.schedulers.asyncio import (  # pyright: ignore[reportMissingTypeStubs]
            AsyncIOScheduler,
        )

        self._tick = tick
        self._every_s = every_s
        self._scheduler: Any = AsyncIOScheduler(timezone=UTC)
        self._watch: asyncio.TimerHandle | None = None
        self._ticking = asyncio.Lock()
        self._stopped = False

    def start(self) -> None:
        self._scheduler.start()
        self._scheduler.add_job(
            self._ticked,
            "interval",
            seconds=self._every_s,
            id="tick",
            coalesce=True,
            max_instances=1,
            misfire_grace_time=None,
            next_run_time=datetime.now(UTC),
        )
        self._watch_over()

    async def stop(self) -> None:
        """Tick no more; a tick under way ends first."""
        self._stopped = True
        if self._watch is not None:
            self._watch.cancel()
        self._scheduler.remove_job("tick")
        async with self._ticking:
            self._scheduler.shutdown(wait=False)

    async def _ticked(self) -> None:
        async with self._ticking:
            if not self._stopped:
                self._watch_over()
                await self._tick()

    def _watch_over(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        loop = asyncio.get_running_loop()
        self._watch = loop.call_later(3 * self._every_s, self._wake)

    def _wake(self) -> None:
        self._scheduler.modify_job("tick", next_run_time=datetime.now(UTC))
        self._watch_over()


def next_time(plan: Plan, now: datetime, *, after_day: date | None = None) -> NextTime:
    """The first time by `plan` after `now` (UTC) whose local date is later than `after_day`.

    A wall-clock time that comes twice counts once, the first time; one that the zone leaves out comes
    as much later as the clock was put forward. `after_day` in the future is no reason to wait: the
    clock was wrong. Raises `ValueError` for a plan that never comes.
    """
    zone = plan.tzinfo()
    local = now.astimezone(zone)
    if after_day is not None and after_day > local.date() + timedelta(days=1):
        after_day = None
    trigger = _trigger(plan.cron)
    # From a day before: a time of today that the zone leaves out may come later than it says.
    wall = local.replace(tzinfo=UTC, fold=0) - timedelta(days=1)
    while True:
        wall = trigger.get_next_fire_time(None, wall + timedelta(microseconds=1))
        if wall is None:
            raise ValueError(f"{plan.cron!r} never comes")
        due_at = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
        if due_at > now and (after_day is None or wall.date() > after_day):
            return NextTime(due_at, wall.date())


def _trigger(cron: str) -> Any:
    """The trigger, over a clock that never shifts. Raises `ValueError`."""
    from apscheduler.triggers.cron import (  # pyright: ignore[reportMissingTypeStubs]
        CronTrigger,
    )

    fields = cron.split()
    if len(fields) != 5:
        raise ValueError(f"{cron!r} is not `minute hour day month weekday`")
    minute, hour, day, month, weekday = fields
    if not (minute.isdecimal() and hour.isdecimal()):
        raise ValueError(f"{cron!r}: minute and hour must be numbers")
    return CronTrigger(
        minute=minute,
        hour=hour,
        day=day,
        month=month,
        day_of_week=_weekdays(weekday),
        timezone=UTC,
    )


def _weekdays(field: str) -> str:
    """Names and ranges of names, also over the weekend (`sat-mon`), as single names."""
    if field == "*":
        return field
    return ",".join(name for part in field.split(",") for name in _range(part))


def _range(part: str) -> list[str]:
    first, dash, last = part.lower().partition("-")
    if first not in _WEEKDAYS or (dash and last not in _WEEKDAYS):
        raise ValueError(f"{part!r} is no weekday by name, such as mon or mon-fri")
    begin, end = _WEEKDAYS.index(first), _WEEKDAYS.index(last or first)
    return [_WEEKDAYS[index % 7] for index in range(begin, end + 1 + 7 * (end < begin))]
