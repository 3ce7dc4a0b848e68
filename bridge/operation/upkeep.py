"""What keeps the store healthy: a look at the database before it is opened, and jobs by the clock."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from bridge.chats.keep_days import clean_chats
from bridge.config import Config, masked
from bridge.operation.data_folder import DATABASE
from bridge.runs.turn_plan import TurnServices
from bridge.scheduler import Due, Handler, Plan, Scheduler
from memory.chats.chat_retention import ChatRetention
from memory.database import Database
from memory.errors import StoreError, StoreUnavailable
from memory.jobs import Jobs
from memory.retention import Retention
from memory.storage.integrity import may_pass, set_aside_if_damaged
from memory.storage.migrate import KEPT_NAME

log = logging.getLogger(__name__)
T = TypeVar("T")

RETENTION = "retention"
BACKUP = "backup"
NIGHTLY = "30 3 * * *"
BACKUP_TIMES = MappingProxyType({"day": "30 4 * * *", "week": "30 4 * * sun"})  # after the clean-up
LIMIT_S = 3600.0  # for one night's work
START_AGAIN_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)  # between the tries of a step
AGAIN_S = 60.0  # when the store does not take the plans
TRUSTED_GAP = timedelta(days=1)
"""A clean-up that was missed by more waits for the next night: the clock may have been set wrong just
now, and what it would delete does not come back."""


async def patiently(step: Callable[[], Awaitable[T]], asked_to_stop: asyncio.Event) -> T:
    """A step of a start that needs the database and may be repeated. What may pass (another program
    holds the lock, the disk is full) is waited for, a minute at most. Raises `StoreError`."""
    for wait_s in START_AGAIN_S:
        try:
            return await step()
        except StoreUnavailable as error:
            if not may_pass(error.__cause__):
                raise
            log.warning("%s; tried again in %.0f s", error, wait_s)
        if await _stopped_within(wait_s, asked_to_stop):
            break
    return await step()


async def _stopped_within(wait_s: float, asked: asyncio.Event) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(wait_s):
            await asked.wait()
    return asked.is_set()


async def open_whole(path: Path) -> Database:
    """Open the database at a start, for the process that holds the data folder: a damaged file is
    set aside before, and said. Raises `StoreError`."""
    try:
        said = await asyncio.to_thread(set_aside_if_damaged, path, datetime.now(UTC))
    except OSError as error:
        raise StoreUnavailable(f"{path} is damaged and cannot be set aside: {error}") from error
    if said is not None:
        log.error(said)
    return await Database.open(path)


async def clear_damaged(database: Database, path: Path) -> None:
    """At the end, when the database is closed: where SQLite has met damage the whole file is checked,
    for which a start has no time, and set aside."""
    if not database.damaged.is_set():
        return
    if not await asyncio.to_thread(path.is_file):
        log.error("%s was taken away while the bot ran, with all that was said before", path)
        return
    try:
        said = await asyncio.to_thread(set_aside_if_damaged, path, datetime.now(UTC), None)
    except OSError as error:
        said = f"{path} is damaged and cannot be set aside: {error}"
    log.error(said or f"no damage is found in {path} any more: the next start goes on with it")


class Upkeep:
    """The scheduler with the jobs of the store. `more_handlers`: kinds of jobs beside them, and
    `more_plans` the cron plans of those that come by one."""

    def __init__(
        self,
        config: Config,
        database: Database,
        data: Path,
        services: TurnServices,
        group: asyncio.TaskGroup,
        more_handlers: Mapping[str, Handler] = MappingProxyType({}),
        more_plans: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._config = config
        self._data = data
        self._transcripts = services.transcripts
        self._policies = services.policies
        self._sharing = services.memory.sharing
        self._chat_retention = ChatRetention(database, data)
        self._retention = Retention(database, config.retention.keep())
        handlers = {
            RETENTION: Handler(self._clean, LIMIT_S),
            BACKUP: Handler(self._back_up, LIMIT_S),
            **more_handlers,
        }
        self._crons = {RETENTION: NIGHTLY, **more_plans}
        report = services.errors.report
        self.scheduler = Scheduler(Jobs(database), handlers, report, group)

    async def run(self) -> None:
        """Go on until cancelled; then jobs that run are ended, and come at the next start."""
        try:
            while True:
                if await self.start():
                    break
                await asyncio.sleep(AGAIN_S)
            await asyncio.Event().wait()
        finally:
            await self.scheduler.close()

    async def start(self) -> bool:
        """Plan the jobs by the configuration, and begin; false while the store does not take it."""
        # Plans import APScheduler, which takes a moment.
        plans = await asyncio.to_thread(self._plans)
        try:
            for kind, plan in plans.items():
                await self.scheduler.plan(kind, plan)
            if BACKUP not in plans:
                await self.scheduler.forget(BACKUP)
        except StoreError as error:
            log.warning("nothing is done by the clock yet: %s", error)
            return False
        await self.scheduler.start()
        return True

    def _plans(self) -> dict[str, Plan]:
        zone, backup = self._config.timezone, self._config.backup
        plans = {kind: Plan(cron, zone) for kind, cron in self._crons.items()}
        if backup is not None:
            plans[BACKUP] = Plan(BACKUP_TIMES[backup.every], zone)
        return plans

    async def _clean(self, due: Due) -> str:
        if due.now - due.planned_at > TRUSTED_GAP:
            return "left to the next night"
        keep = self._config.retention
        deleted = await self._retention.clean(due.now)
        deleted["transcripts"] += await self._transcripts.clean(
            due.now - keep.transcripts, keep.transcript_bytes
        )
        deleted["of chats' own days"] += await clean_chats(
            self._policies, self._chat_retention, self._sharing, due.now
        )
        deleted["old databases"] += await asyncio.to_thread(
            _delete_copies, self._data, due.now - timedelta(days=keep.messages_days)
        )
        return (
            ", ".join(f"{count} {name}" for name, count in (+deleted).items()) or "nothing is old"
        )

    async def _back_up(self, due: Due) -> str:
        from bridge.operation.backup import make_by_the_clock  # tar and its kind, once a night

        backup = self._config.backup
        keep = 1 if backup is None else backup.keep
        config = masked(self._config)
        made = await in_thread(
            lambda stop: make_by_the_clock(self._data, config, keep, due.now, stop)
        )
        return f"{made.path.name}, {made.size / 1e6:.1f} MB"


async def in_thread(work: Callable[[threading.Event], T]) -> T:
    """Carry out `work` in a thread; when this is cancelled, the event that it was given is set, and
    it is expected to end soon."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(work, stop)
    except asyncio.CancelledError:
        stop.set()
        raise


def _delete_copies(data: Path, before: datetime) -> int:
    """Copies of the database that were kept when its schema changed."""
    old = [
        path
        for path in data.iterdir()
        if path.name.startswith(DATABASE)
        and KEPT_NAME.search(path.name)
        and path.stat().st_mtime < before.timestamp()
    ]
    for path in old:
        path.unlink()
    return len(old)
