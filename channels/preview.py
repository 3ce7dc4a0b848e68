"""The preview of a streamed answer: a mailbox of one.

Text comes in as fast as the model writes; it goes out as fast as the platform allows. In between
there is one slot, the text so far, so that a slow platform never slows the model, and a skipped
frame costs nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)


class Preview:
    """Calls `update(text_so_far)` while text is shown, at most every `interval_s` seconds.

    The first update goes out at once. `update` may be slow and may fail: a failed frame is logged,
    and the next one tries again; `refresh_in` asks for one also when no more text comes. Text
    beyond `limit` characters is not handed on (the platform's message is full), so that the cost
    stays linear in the length of the answer.
    """

    def __init__(
        self, update: Callable[[str], Awaitable[None]], *, interval_s: float, limit: int
    ) -> None:
        self._update = update
        self._interval_s = interval_s
        self._limit = limit
        self._parts: list[str] = []
        self._length = 0
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._refresh = False
        self._timer: asyncio.TimerHandle | None = None
        self._closed = asyncio.Event()

    def show(self, more: str) -> None:
        """Append to the text so far. Nothing happens after `close`."""
        if self._closed.is_set() or self._length >= self._limit or not more:
            return
        self._parts.append(more)
        self._length += len(more)
        self._wake()

    def refresh_in(self, seconds: float) -> None:
        """One more update after `seconds`, with the text of then, which may be none at all; an
        earlier request of the kind is replaced."""
        if self._timer is not None:
            self._timer.cancel()
        if not self._closed.is_set():
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(seconds, self._refresh_now)

    async def close(self) -> None:
        """No update starts after this; one that is under way is waited for, since its request may
        have left already. Idempotent."""
        self._closed.set()
        if self._timer is not None:
            self._timer.cancel()
        self._changed.set()
        task, self._task = self._task, None
        if task is not None:
            await asyncio.shield(task)

    def _refresh_now(self) -> None:
        self._refresh = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        if self._task is None:
            self._task = asyncio.create_task(self._pump(), name="preview")

    async def _pump(self) -> None:
        while True:
            await self._changed.wait()
            if self._closed.is_set():
                return
            self._changed.clear()
            text = "".join(self._parts)[: self._limit]
            self._parts = [text]
            if text.strip() or self._refresh:
                self._refresh = False
                await self._send(text)
                await self._pause()

    async def _send(self, text: str) -> None:
        try:
            await self._update(text)
        except Exception:
            log.warning("a preview frame was skipped", exc_info=True)

    async def _pause(self) -> None:
        """Wait for the interval, or until the preview is closed: a stop must not wait for it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._interval_s):
                await self._closed.wait()
