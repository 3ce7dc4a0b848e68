"""Deadlines of a stream, at the cost of one clock reading a chunk.

One timer looks at the time of the last chunk when it fires, and is set again for what is left. A
timer or a task for each chunk would cost more than reading it.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Literal, Self

from agent.provider import Deadlines


class DeadlineExceeded(TimeoutError):
    """A deadline passed; `which` says which one."""

    def __init__(self, which: str, seconds: float) -> None:
        super().__init__(f"nothing came within {seconds:g} s ({which})")
        self.which = which


class StreamWatch:
    """`async with StreamWatch(deadlines) as watch:`, `watch.beat()` for each chunk, and
    `watch.alive()` for whatever else comes: a provider that pings is at work, however long it thinks.
    Only the total deadline ends a stream that goes on pinging.

    When a deadline passes, the task inside is cancelled and the block raises `DeadlineExceeded`. A
    cancel from outside passes through as such, also when both happen at once.
    """

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._expired: DeadlineExceeded | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._beaten = False

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a stream is read by a task")
        self._task = task
        self._cancelling = task.cancelling()
        self._began = self._last = self._loop.time()
        self._set_timer()
        return self

    def beat(self) -> None:
        """A chunk came in."""
        self._beaten = True
        self._last = self._loop.time()

    def alive(self) -> None:
        """Something came in, if only a sign that more is to come."""
        self._last = self._loop.time()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        if self._timer is not None:
            self._timer.cancel()
        if self._expired is None:
            return False
        # As asyncio.Timeout does it: ours is taken back; one from outside remains and passes on.
        ours = self._task.uncancel() <= self._cancelling
        if ours and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise self._expired from error
        return False

    def _due(self) -> tuple[float, str, float]:
        limits = self._deadlines
        total = (self._began + limits.total_s, "total_s", limits.total_s)
        if self._beaten:
            near = (self._last + limits.between_s, "between_chunks_s", limits.between_s)
        else:
            near = (self._last + limits.first_s, "first_chunk_s", limits.first_s)
        return min(total, near)

    def _set_timer(self) -> None:
        # Also when much is left: after the first chunk the nearest deadline is between_s away.
        latest = self._loop.time() + self._deadlines.between_s
        self._timer = self._loop.call_at(min(self._due()[0], latest), self._look)

    def _look(self) -> None:
        due, which, seconds = self._due()
        if self._loop.time() < due:
            self._set_timer()
            return
        self._expired = DeadlineExceeded(which, seconds)
        self._task.cancel()
