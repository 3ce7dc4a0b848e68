"""What is asked before each model call: the month's spending limit."""

from __future__ import annotations

from datetime import datetime, tzinfo

from agent.errors import LimitReached
from memory.usage import UsageStore

MICRO = 1_000_000


class MonthlyGate:
    """`limit_usd` a calendar month in `zone` for the whole installation, compared with what the usage
    rows say."""

    def __init__(self, usage: UsageStore, *, limit_usd: float, zone: tzinfo) -> None:
        self._usage = usage
        self._limit = round(limit_usd * MICRO)
        self._zone = zone

    async def check(self, step: int) -> None:
        """Raises `LimitReached` (`month`), whatever the step."""
        spent = await self.spent_microusd()
        if spent >= self._limit:
            raise LimitReached("month", used=usd(spent), limit=usd(self._limit))

    async def spent_microusd(self) -> int:
        """This month's cost so far, in micro-dollars."""
        return await self._usage.cost_since(self.month_began())

    def month_began(self) -> datetime:
        """When this month began, in the zone."""
        now = datetime.now(self._zone)
        return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)

    @property
    def limit_microusd(self) -> int:
        """The month's limit in micro-dollars."""
        return self._limit


def usd(microusd: int) -> str:
    """Dollars with two decimals, four where cents would hide it."""
    dollars = microusd / MICRO
    return f"{dollars:.4f}" if 0 < dollars < 0.01 else f"{dollars:.2f}"
