"""Bots that are started and that end: the harness' side of `tests.crash.bot`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.crash.points import KILLED

ROOT = Path(__file__).parent.parent.parent


@dataclass(slots=True, eq=False)
class Bot:
    """One process. `status` as `os.waitpid` gives it, once it has ended."""

    pid: int
    log: Path
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    status: int = 0

    def kill(self, signum: int = signal.SIGKILL) -> None:
        """Send a signal, if it still runs."""
        with contextlib.suppress(ProcessLookupError):  # it has ended, which is not told yet
            if not self.ended.is_set():
                os.kill(self.pid, signum)

    async def ends_within(self, seconds: float) -> bool:
        """Whether it ends by itself in that time."""
        try:
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        except TimeoutError:
            return False
        return True

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL has ended it."""
        return self._signal == signal.SIGKILL

    @property
    def ended_in_order(self) -> bool:
        """Whether it has come to its own end, or was asked to stop before it listened to that."""
        return self.status == 0 or self._signal == signal.SIGTERM

    @property
    def _signal(self) -> int | None:
        return os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else None

    @property
    def point(self) -> str | None:
        """The point at which it has killed itself, if it did."""
        for line in reversed(self.lines()):
            if line.startswith(KILLED):
                return line.removeprefix(KILLED)
        return None

    def lines(self) -> list[str]:
        """What it has logged."""
        return self.log.read_text("utf-8", "replace").splitlines() if self.log.exists() else []


class Nursery:
    """Starts bots, one after the other, from one warm process."""

    def __init__(self) -> None:
        self._bots: dict[int, Bot] = {}
        self._born: asyncio.Queue[int] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.crash.bot",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=ROOT,
        )
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._reader

    async def start(self, log: Path, **order: Any) -> Bot:
        """A new bot; see `tests.crash.bot` for what it is told."""
        assert self._process.stdin is not None
        line = json.dumps({"log": str(log), **order}) + "\n"
        self._process.stdin.write(line.encode())
        await self._process.stdin.drain()
        pid = await self._born.get()
        self._bots[pid].log = log
        return self._bots[pid]

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            told = json.loads(line)
            if "pid" in told:
                self._bots[told["pid"]] = Bot(told["pid"], Path())
                self._born.put_nowait(told["pid"])
            else:
                bot = self._bots[told["ended"]]
                bot.status = told["status"]
                bot.ended.set()
