"""When conversations are flushed and memories consolidated: rows of the scheduler.

`flush` looks every few minutes for sessions that are idle; for each scope `end_of_day` flushes the day
that is over, and `consolidation` comes later in the night. Scopes are spread over the hour, so that a
thousand of them do not ask the model at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType
from typing import Final

from agent.messages import JsonObject
from bridge.remembering.calls import CallFailed, PutOff
from bridge.remembering.consolidation import Consolidation
from bridge.remembering.flushing import Flushing, Owner, ZoneOf
from bridge.scheduler import Due, Handler, Plan, Scheduler
from bridge.session import chat_of_scope
from bridge.sharing import Sharing
from memory.errors import StoreError
from memory.jobs import Jobs
from memory.night.nights import Night
from memory.notes.flushed import FlushMarks, OpenSession
from memory.scopes import SHARED
from memory.settings import MemorySettings

log = logging.getLogger(__name__)

FLUSH: Final = "flush"
END_OF_DAY: Final = "end_of_day"
CONSOLIDATION: Final = "consolidation"
TIDY: Final = "memory_tidy"  # what the control socket is asked
LOOK_EVERY = timedelta(minutes=5)  # for idle sessions
FLUSHED_WITHIN = timedelta(days=2)
LIMIT_S = 1800.0
SCOPES_AT_ONCE = 2
AGAIN_S = 60.0  # when the store does not take the first job

Report = Callable[[BaseException, str], Awaitable[str]]


class MemoryJobs:
    """`zone_of(owner)`: where their days begin. `bind` it to the scheduler, then `run` it."""

    def __init__(
        self,
        settings: MemorySettings,
        marks: FlushMarks,
        flushing: Flushing,
        consolidation: Consolidation,
        zone_of: ZoneOf,
        report: Report,
        jobs: Jobs,
        sharing: Sharing | None = None,
    ) -> None:
        self._settings = settings
        self._marks = marks
        self._flushing = flushing
        self.consolidation = consolidation
        self._zone_of = zone_of
        self._report = report
        self._jobs = jobs
        self._sharing = sharing or Sharing()
        self._planned_on: date | None = None
        self._sessions: set[int] = set()  # those whose scope was planned because they were flushed
        self._at_work: Counter[str] = Counter()  # scopes
        self._planned: dict[str, str] = {}  # scope -> the zone that its jobs are planned in

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """For the scheduler."""
        return MappingProxyType(
            {
                FLUSH: Handler(self._flush_idle, LIMIT_S),
                END_OF_DAY: Handler(self._end_of_day, LIMIT_S, SCOPES_AT_ONCE),
                CONSOLIDATION: Handler(self._consolidate, LIMIT_S, SCOPES_AT_ONCE),
            }
        )

    def bind(self, scheduler: Scheduler) -> None:
        """The scheduler that carries the jobs out."""
        self._scheduler = scheduler

    async def run(self) -> None:
        """Plan the first look; the others follow from it."""
        while True:
            try:
                await self._scheduler.once(FLUSH, datetime.now(UTC) + LOOK_EVERY)
            except StoreError as error:
                log.warning("nothing is flushed by the clock yet: %s", error)
                await asyncio.sleep(AGAIN_S)
            else:
                return

    # The jobs ---------------------------------------------------------------------------------------

    async def _flush_idle(self, due: Due) -> str:
        await self._scheduler.once(FLUSH, due.now + LOOK_EVERY)
        self._plan_anew(due.now.date())
        idle = due.now - timedelta(minutes=self._settings.flush_after_idle_minutes)
        entries = sessions = 0
        for found in await self._marks.open_sessions(due.now):
            owner = await self._flushing.owner(found.session)
            if owner is None:
                continue
            await self._plan(owner)
            if found.newest <= idle or found.ended:
                sessions += 1
                entries += await self._flush(found.session, owner)
        await self._plan_flushed(due.now)
        return f"{entries} entries of {sessions} conversations"

    async def _end_of_day(self, due: Due) -> str:
        return f"{await self._flush_chat(due.scope, due.now)} entries"

    async def _consolidate(self, due: Due) -> str:
        night = await self.tidy(due.scope, due.now)
        if night is None:
            return "no conversation"
        return night.outcome if not night.reason else f"{night.outcome}: {night.reason}"

    # What others ask for ----------------------------------------------------------------------------

    def at_work(self, scope: str) -> bool:
        """Whether that memory is being tidied."""
        return self._at_work[scope] > 0

    async def tidy(self, scope: str, now: datetime) -> Night | None:
        """Flush and consolidate now; None where the chat has no conversation. Raises `OSError`,
        `StoreError`."""
        self._at_work[scope] += 1
        try:
            return await self._tidy(scope, now)
        finally:
            self._at_work[scope] -= 1
            self._at_work += Counter()  # forgets those that are at zero

    async def _tidy(self, scope: str, now: datetime) -> Night | None:
        await self._flush_chat(scope, now)
        for session in await self._payers(scope):
            owner = await self._flushing.owner(session)
            if owner is not None and owner.scope == scope:
                if not await self._flushing.is_on(owner):
                    if scope == SHARED:
                        continue  # another chat's may be on
                    return None
                zone = await self._zone_of(owner)
                day = now.astimezone(zone).date()
                return await self.consolidation.night(scope, session, day, zone)
        return None

    async def tidy_all(self, _: JsonObject) -> JsonObject:
        """For `galata memory tidy`: every scope that has a job, and how often each outcome came."""
        outcomes: Counter[str] = Counter()
        for row in await self._jobs.all():
            if row.kind == CONSOLIDATION:
                night = await self.tidy(row.scope, datetime.now(UTC))
                outcomes["no conversation" if night is None else night.outcome] += 1
        return dict(outcomes)

    # ------------------------------------------------------------------------------------------------

    async def _payers(self, scope: str) -> list[int]:
        """Those whose chat may pay for the night, the first one that can does: of a shared memory the
        chat that the operator has listed first."""
        if scope != SHARED:
            return await self._marks.sessions_of(chat_of_scope(scope))
        chats = self._sharing.in_order()
        return [id_ for chat in chats for id_ in await self._marks.sessions_in(*chat)]

    async def _open_sessions(self, scope: str, now: datetime) -> list[OpenSession]:
        if scope != SHARED:
            return await self._marks.open_sessions(now, chat_of_scope(scope))
        together = self._sharing.together()
        found = await self._marks.open_sessions(now)
        return [one for one in found if (one.channel, one.chat) in together]

    async def _flush_chat(self, scope: str, now: datetime) -> int:
        entries = 0
        for found in await self._open_sessions(scope, now):
            owner = await self._flushing.owner(found.session)
            if owner is not None and owner.scope == scope:
                entries += await self._flush(found.session, owner)
        return entries

    async def _flush(self, session: int, owner: Owner) -> int:
        """One session; what fails for it stops no other, and comes again."""
        try:
            return await self._flushing.flush(session, owner)
        except (PutOff, CallFailed) as error:
            log.info("session %d is flushed later: %s", session, error)
        except OSError as error:
            await self._report(error, f"flush of session {session}")
        return 0

    def _plan_anew(self, today: date) -> None:
        """Once a day: jobs go when a chat is erased, which may come back."""
        if today != self._planned_on:
            self._planned_on = today
            self._planned.clear()
            self._sessions.clear()

    async def _plan_flushed(self, now: datetime) -> None:
        """Scopes whose sessions were flushed otherwise: by /new, or when their context was full."""
        for session in await self._marks.flushed_since(now - FLUSHED_WITHIN):
            if session not in self._sessions:
                owner = await self._flushing.owner(session)
                if owner is not None:
                    await self._plan(owner)
                self._sessions.add(session)

    async def _plan(self, owner: Owner) -> None:
        zone = str(await self._zone_of(owner))
        if self._planned.get(owner.scope) == zone:
            return
        spread = int.from_bytes(hashlib.sha256(owner.scope.encode()).digest()[:4], "big")
        hour = self._settings.night_hour
        crons = {
            END_OF_DAY: f"{1 + spread % 30} 0 * * *",
            CONSOLIDATION: f"{spread % 60} {hour} * * *",
        }
        for kind, cron in crons.items():
            await self._scheduler.plan(kind, Plan(cron, zone), owner.scope)
        self._planned[owner.scope] = zone
