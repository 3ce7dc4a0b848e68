"""Work beside the lanes: commands, notices, marks. The app's task group owns it, and no failure of it
ends the group."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from bridge.errors import ErrorReporter


class Beside:
    """What nobody waits for."""

    def __init__(self, group: asyncio.TaskGroup, errors: ErrorReporter) -> None:
        self._group = group
        self._errors = errors
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], what: str) -> None:
        """Begin; a failure is reported."""
        task = self._group.create_task(self._guarded(work, what), name=what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self, patience_s: float) -> None:
        """Give what is under way `patience_s` seconds, then end it."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=patience_s)
        for task in self._tasks:
            task.cancel()

    async def idle(self) -> None:
        """Return when nothing is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    async def _guarded(self, work: Coroutine[Any, Any, None], what: str) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - a border: reported
            await self._errors.report(error, what)
