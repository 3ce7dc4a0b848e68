"""Lanes: one run at a time in each session, and sessions that never wait for each other.

A lane is a task that exists only while its session has work; the inbox is the queue of record, and
a lane holds nothing but the wake-up. A run is a child task of its lane and the lane waits for it,
so that a user's cancel and a shutdown are told apart.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from agent.cancel import CancelToken
from channels.base import Address
from memory.errors import StoreDamaged
from memory.inbox import InboxKey

log = logging.getLogger(__name__)

# A run that does not end this many seconds after its cancel is left behind: the lane goes on.
CANCEL_GRACE_S = 0.8
SETTLE_GRACE_S = 3.0  # for a delivery under way when the process is stopping
# A "stop" so many seconds after its person's run is about it still: the end came in while they typed.
LATELY_S = 4.0
LONGEST_PAUSE_S = 60  # after a lane failed again and again

Ending = Literal["completed", "cancelled", "failed", "interrupted"]


@dataclass(slots=True)
class ActiveRun:
    """A run under way. `requests` are the messages that it answers, `asked_at` the platform's time of
    the newest of them. `ended_as`: its answer is out, there is nothing left to stop; how its rows in
    the inbox are to be closed. `over`: that, or its lane has gone on."""

    run_id: str
    session_key: str
    address: Address
    person: str
    asked_at: datetime
    requests: tuple[InboxKey, ...]
    token: CancelToken
    ended_as: str | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self, ended_as: str) -> None:
        """Its answer is out."""
        self.ended_as = ended_as
        self.over.set()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the first half of a job ended. `interrupted`: the process is stopping."""

    ending: Ending
    error: BaseException | None = None


class Job(Protocol):
    """One run, in two halves."""

    async def run(self, run: ActiveRun) -> None:
        """The half that /cancel ends."""
        ...

    async def settle(self, outcome: Outcome) -> None:
        """The half that it cannot reach; exactly once, whatever happened."""
        ...


@dataclass(slots=True)
class _Lane:
    task: asyncio.Task[None]
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    active: ActiveRun | None = None
    last: ActiveRun | None = None


class Lanes:
    """All lanes. `work(session_key)` does the session's next turn; false when there is none."""

    def __init__(self, group: asyncio.TaskGroup, work: Callable[[str], Awaitable[bool]]) -> None:
        self._group = group
        self._work = work
        self._lanes: dict[str, _Lane] = {}
        self._ended: dict[str, tuple[str, float]] = {}  # whose run was the last, and when it ended
        self._closing = False

    def wake(self, session_key: str) -> None:
        """There is something to do in this session."""
        lane = self._lanes.get(session_key)
        if lane is not None:
            lane.woken.set()
        elif not self._closing:
            task = self._group.create_task(self._drain(session_key), name=f"lane {session_key}")
            self._lanes[session_key] = _Lane(task)

    def busy(self, session_key: str) -> bool:
        """Whether a run is under way in the session."""
        return self.active(session_key) is not None

    def active(self, session_key: str) -> ActiveRun | None:
        """The session's run, or None; one whose answer is out is none."""
        lane = self._lanes.get(session_key)
        run = lane.active if lane else None
        return None if run is None or run.ended_as is not None else run

    def just_ended(self, session_key: str) -> str | None:
        """How the session's last run has ended, as long as its rows may still be open; else None."""
        lane = self._lanes.get(session_key)
        if lane is None:
            return None
        run = lane.active or lane.last
        return run.ended_as if run is not None else None

    def ended_lately(self, session_key: str, person: str) -> bool:
        """Whether the session's last run was this person's and has ended `LATELY_S` ago at most."""
        whose, at = self._ended.get(session_key, ("", 0.0))
        return whose == person and asyncio.get_running_loop().time() - at <= LATELY_S

    def _note_end(self, run: ActiveRun) -> None:
        now = asyncio.get_running_loop().time()
        lately = {key: end for key, end in self._ended.items() if now - end[1] <= LATELY_S}
        self._ended = {**lately, run.session_key: (run.person, now)}

    def all_active(self) -> list[ActiveRun]:
        """The runs of all sessions."""
        runs = (self.active(key) for key in self._lanes)
        return [run for run in runs if run is not None]

    def __len__(self) -> int:
        return len(self._lanes)

    async def more_within(self, session_key: str, seconds: float) -> bool:
        """For a lane's own work: wait for a wake-up since the work began or since the last one that
        this has told of; false after `seconds`."""
        woken = self._lanes[session_key].woken
        try:
            async with asyncio.timeout(seconds):
                await woken.wait()
        except TimeoutError:
            return False
        woken.clear()
        return True

    async def idle(self) -> None:
        """Return when no session has work."""
        while self._lanes:
            await asyncio.wait([lane.task for lane in self._lanes.values()])

    async def carry_out(self, job: Job, run: ActiveRun) -> None:
        """Both halves of a job, in the lane of its session."""
        lane = self._lanes[run.session_key]
        lane.active = run
        try:
            outcome = await self._first_half(job, run)
        finally:
            run.token.unbind()
        settling = asyncio.create_task(job.settle(outcome), name=f"settling of {run.run_id}")
        try:
            if outcome.ending == "interrupted":
                raise asyncio.CancelledError
            await asyncio.shield(settling)
        except asyncio.CancelledError:  # the process is stopping: what is not out comes next time
            await asyncio.wait({settling}, timeout=SETTLE_GRACE_S)
            settling.cancel()
            await asyncio.wait({settling})
            raise
        finally:
            lane.last, lane.active = run, None
            run.over.set()
            self._note_end(run)

    async def close(self, patience_s: float) -> None:
        """Start nothing more, give running work `patience_s` seconds, then interrupt it."""
        self._closing = True
        tasks = [lane.task for lane in self._lanes.values()]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=patience_s)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    async def _first_half(self, job: Job, run: ActiveRun) -> Outcome:
        task = asyncio.create_task(job.run(run), name=f"run {run.run_id}")
        stopped = asyncio.create_task(run.token.wait(), name=f"stop of {run.run_id}")
        run.token.bind(task)
        try:
            await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                await asyncio.wait({task}, timeout=CANCEL_GRACE_S)
        except asyncio.CancelledError:  # not the user's cancel: the process is stopping
            task.cancel()
            await asyncio.wait({task}, timeout=CANCEL_GRACE_S)
            return Outcome("interrupted")
        finally:
            stopped.cancel()
        return _outcome(task, run)

    async def _drain(self, session_key: str) -> None:
        lane = self._lanes[session_key]
        failures = 0
        try:
            while not self._closing:
                lane.woken.clear()
                try:
                    more = await self._work(session_key)
                    failures = 0
                except StoreDamaged:  # nothing here can be taken up before another start
                    log.exception("lane %s has ended", session_key)
                    break
                except Exception:
                    # It never reaches another lane, and what is open here is tried again: a disk
                    # that is full now will have room later.
                    log.exception("lane %s failed", session_key)
                    failures += 1
                    more = await self._pause(lane, failures)
                if not more and not lane.woken.is_set():
                    break
        finally:
            del self._lanes[session_key]

    @staticmethod
    async def _pause(lane: _Lane, failures: int) -> bool:
        """After a failure: 1, 2, 4 … 60 seconds, or until something new comes in."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(2 ** (failures - 1), LONGEST_PAUSE_S)):
                await lane.woken.wait()
        return True


def _outcome(task: asyncio.Task[None], run: ActiveRun) -> Outcome:
    if not task.done():
        log.warning("run %s did not end after its cancel; its lane goes on", run.run_id)
        task.add_done_callback(_note_late_end)
        return Outcome("cancelled")
    if task.cancelled():
        return Outcome("cancelled")
    error = task.exception()
    if error is None:
        return Outcome("completed")
    return Outcome("cancelled" if run.token.cancelled else "failed", error)


def _note_late_end(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.warning("%s ended late", task.get_name(), exc_info=task.exception())
