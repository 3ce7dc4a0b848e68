"""What a signal asks of the process: to stop, to hurry, in the terminal first to stop the answer."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Generator
from typing import Any

from channels.console import ConsoleChannel

PATIENCE_S = 20.0  # for running answers at a stop; a second signal ends it at once


class Signals:
    """Signals: the first asks to stop (in the terminal Ctrl-C first stops the answer), the second
    hurries."""

    def __init__(self) -> None:
        self.terminal: ConsoleChannel | None = None
        self.asked = asyncio.Event()
        self._hurry = asyncio.Event()
        self._interrupting: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def on_signals(self) -> Generator[None]:
        """Handle SIGINT and SIGTERM while inside."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._stop)
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGTERM)
            loop.remove_signal_handler(signal.SIGINT)

    async def hurried(self, work: Coroutine[Any, Any, None]) -> None:
        """Await `work`, but no longer than until the second signal."""
        task = asyncio.ensure_future(work)
        hurry = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait({task, hurry}, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        task.cancel()
        await asyncio.gather(task, hurry, return_exceptions=True)

    def _stop(self) -> None:
        if self.asked.is_set():
            self._hurry.set()
        self.asked.set()

    def _interrupt(self) -> None:
        if self.terminal is None or self.asked.is_set():
            self._stop()
        elif self._interrupting is None or self._interrupting.done():
            self._interrupting = asyncio.ensure_future(self._interrupt_answer(self.terminal))
        else:  # whoever presses again does not wait for what hangs
            self._stop()

    async def _interrupt_answer(self, terminal: ConsoleChannel) -> None:
        if not await terminal.interrupt():
            self._stop()
