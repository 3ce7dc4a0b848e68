"""A loop in virtual time: where it would sleep, its clock jumps to the next timer."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class JumpingSelector(selectors.SelectSelector):
    """Never waits: where a loop would sleep, `now` jumps."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            self.now += timeout or 0.0
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Counts the timers that were set."""

    def __init__(self) -> None:
        self.jumping = JumpingSelector()
        self.timers = 0
        super().__init__(self.jumping)

    def time(self) -> float:
        return self.jumping.now

    def call_at(self, *args: Any, **options: Any) -> asyncio.TimerHandle:
        self.timers += 1
        return super().call_at(*args, **options)


def in_virtual_time(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())
