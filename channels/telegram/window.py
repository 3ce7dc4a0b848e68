"""A limit that counts what has left, for where a leaky bucket lets too much through."""

from __future__ import annotations

import asyncio
from collections import deque

_ROUNDING_S = 1e-6  # less than any clock here shows


class Window:
    """At most `max_rate` acquisitions in any `time_period` seconds, all of them at once if need be.

    A leaky bucket of that size (`aiolimiter`, whose methods these are) lets nearly twice as many
    through, since it leaks while it is filled. One event loop. Of several that wait for room nobody
    knows which is first: whoever needs an order keeps it.
    """

    __slots__ = ("_left_at", "max_rate", "time_period")

    def __init__(self, max_rate: int, time_period: float) -> None:
        self.max_rate = max_rate
        self.time_period = time_period
        self._left_at: deque[float] = deque()

    def has_capacity(self, amount: float = 1) -> bool:
        """Whether so much could be acquired now."""
        self._forget()
        return len(self._left_at) + amount <= self.max_rate

    async def acquire(self) -> None:
        """Wait until there is room for one, and take it."""
        while True:
            if self.has_capacity():
                self._left_at.append(_now())
                return
            await asyncio.sleep(self._left_at[0] + self.time_period - _now())

    def _forget(self) -> None:
        old = _now() - self.time_period + _ROUNDING_S
        while self._left_at and self._left_at[0] <= old:
            self._left_at.popleft()


def _now() -> float:
    return asyncio.get_running_loop().time()
