"""A reply's way as it is kept, and processes that die."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar, copy_context
from typing import Any, Literal

from channels.base import ReplyPart, Resumed
from channels.errors import NotStored

_TASKS: ContextVar[list[asyncio.Task[Any]] | None] = ContextVar("tasks", default=None)


class Diary:
    """A `ReplyJournal` in memory, with the parts as another process finds them. `clock` counts the
    requests that have reached the platform."""

    def __init__(self, clock: Callable[[], int] = lambda: 0) -> None:
        self._clock = clock
        self.heard: list[str] = []
        self.left: list[tuple[int, int]] = []
        """(a part that was said to leave, how many requests had arrived before)"""
        self.preview_id: str | None = None
        self.parts: list[ReplyPart] = []
        self.full: list[int] = []
        """The numbers of parts of which the next `leaving` cannot be stored."""
        self.unknown = 0
        """So many times `showing` cannot be stored."""
        self.unkept = 0
        """So many times the preview's id cannot be stored."""
        self.shown_at: int | None = None
        """How many requests had arrived when it heard of the preview."""
        self.closed = False
        """Nothing is kept from now on."""
        self.last_id: str | None = None
        """Of the last part's message, which is kept with the end of the reply."""
        self._changed = asyncio.Event()

    def composed(self, bodies: tuple[str, ...]) -> list[ReplyPart]:
        """The reply is stored."""
        self.parts = [ReplyPart(body) for body in bodies]
        return self.parts.copy()

    def revived(self) -> Diary:
        """As the next process finds it."""
        found = Diary(self._clock)
        found.preview_id, found.parts = self.preview_id, self.parts.copy()
        return found

    async def knows(self, preview_id: str | None) -> None:
        """Until the preview is this message."""
        while self.preview_id != preview_id:
            self._changed.clear()
            await self._changed.wait()

    @property
    def resumed(self) -> Resumed:
        """What another process knows of the preview."""
        return Resumed(self.preview_id)

    async def showing(self) -> None:
        await asyncio.sleep(0)
        if self.unknown:
            self.unknown -= 1
            raise NotStored("the disk is full")
        self.shown_at = self._clock()

    async def previewed(self, message_id: str) -> bool:
        await asyncio.sleep(0)  # as long as a store takes at least
        if self.unkept:
            self.unkept -= 1
            return False
        if not self.closed:
            self.preview_id = message_id
            self._changed.set()
        return True

    async def leaving(self, number: int) -> None:
        await asyncio.sleep(0)
        if number in self.full:
            self.full.remove(number)
            raise NotStored("the disk is full")
        self._note(number, "leaving", "again", None)
        self.left.append((number, self._clock()))

    async def stayed(self, number: int) -> None:
        await asyncio.sleep(0)
        self._note(number, "stayed", "open", None)

    async def ended(
        self, number: int, how: Literal["sent", "uncertain", "refused"], message_id: str | None
    ) -> None:
        await asyncio.sleep(0)
        if number == len(self.parts) - 1:  # the bridge keeps it with the end of the reply
            self.heard.append(f"{how} {number}")
            self.last_id = message_id
            return
        self._note(number, how, "sent" if how == "sent" else "lost", message_id)

    def _note(
        self,
        number: int,
        what: str,
        state: Literal["open", "again", "sent", "lost"],
        message_id: str | None,
    ) -> None:
        if self.closed:
            return
        self.heard.append(f"{what} {number}")
        if number < len(self.parts):
            self.parts[number] = ReplyPart(self.parts[number].body, state, message_id)


class Process:
    """Work whose every task ends with `kill`."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks: list[asyncio.Task[Any]] = []
        loop = asyncio.get_running_loop()
        loop.set_task_factory(_tracked)
        context = copy_context()
        context.run(_TASKS.set, self._tasks)
        self.task = loop.create_task(work, context=context)

    async def kill(self) -> None:
        """Whatever it is about."""
        tasks = [self.task, *self._tasks]
        while pending := [task for task in tasks if not task.done()]:
            for task in pending:  # again, since `wait_for` of Python 3.11 may swallow it
                task.cancel()
            await asyncio.sleep(0)


def _tracked(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any
) -> asyncio.Task[Any]:
    """A task that its process knows, if it is of one."""
    task = asyncio.Task(work, loop=loop, **options)
    tasks = _TASKS.get()
    if tasks is not None:
        tasks.append(task)
    return task
