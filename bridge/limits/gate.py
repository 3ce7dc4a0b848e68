"""What is asked before each model call: what the whole installation may spend, and one person in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from agent.errors import LimitReached
from memory.clock import stamp
from memory.usage import Cost, PersonCap, UsageStore

MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class Spending:
    """What is used of one of the installation's limits (`month`, `day`), `most` micro-dollars.
    `window`: of its time; `opens`: when the next one begins."""

    limit: str
    cost: Cost
    most: int
    window: str
    opens: datetime

    @property
    def is_full(self) -> bool:
        """Whether no further call may begin."""
        return self.cost.counted >= self.most

    @property
    def held(self) -> bool:
        """Whether that is so only by what running calls have reserved."""
        return self.is_full and self.cost.spent < self.most

    @property
    def text(self) -> str:
        """Which text `limit_…` tells that it is full: a limit of nothing is opened by no wait."""
        why = "_held" if self.held else "" if self.most else "_none"
        return self.limit + why


@dataclass(frozen=True, slots=True)
class SpendingWindow:
    """One of the installation's limits, and since when it counts; the rest as in `Spending`."""

    limit: str
    most: int
    since: datetime
    window: str
    opens: datetime

    def used(self, cost: Cost) -> Spending:
        """With what all calls since then cost."""
        return Spending(self.limit, cost, self.most, self.window, self.opens)


class MonthlyGate:
    """`limit_usd` a calendar month in `zone` for the whole installation, `day_usd` a day (None: as
    much as in a month), `person_usd` a day for one person over all chats (None: no such limit);
    compared with what the usage rows say."""

    def __init__(
        self,
        usage: UsageStore,
        *,
        limit_usd: float,
        zone: tzinfo,
        day_usd: float | None = None,
        person_usd: float | None = None,
    ) -> None:
        self._usage = usage
        self._limit = round(limit_usd * MICRO)
        self._day = None if day_usd is None else round(day_usd * MICRO)
        self._person = None if person_usd is None else round(person_usd * MICRO)
        self._zone = zone
        self._shut: bool | None = None  # as of the last look; None: not known

    def change(self, *, limit_usd: float, day_usd: float | None, person_usd: float | None) -> None:
        """Other limits from now on."""
        self._shut = None
        self._limit = round(limit_usd * MICRO)
        self._day = None if day_usd is None else round(day_usd * MICRO)
        self._person = None if person_usd is None else round(person_usd * MICRO)

    async def check(self) -> None:
        """Raises `LimitReached` as `judge`."""
        self.judge(await self.spending())

    def judge(self, found: Sequence[Spending]) -> None:
        """Raises `LimitReached`: `month`, `day`; `month_held`, `day_held` where it is what running
        calls have reserved that leaves no room; `month_none`, `day_none` where nothing may be spent
        at all."""
        for one in found:
            if one.is_full:
                raise LimitReached(
                    one.text,
                    used=usd(one.cost.spent),
                    held=usd(one.cost.held),
                    limit=usd(one.most),
                    opens=f"{one.opens:%Y-%m-%d %H:%M} ({self._zone})",
                )

    async def full(self) -> Spending | None:
        """The limit that is used up, to be asked for each question: where the last look, after the last
        run, found room, nothing is summed up."""
        if self._shut is False:
            return None
        return next((one for one in await self.spending() if one.is_full), None)

    async def spending(self) -> list[Spending]:
        """Of each of the installation's limits."""
        windows = self.windows()
        return self.used(windows, [await self._usage.cost_since(one.since) for one in windows])

    def windows(self) -> list[SpendingWindow]:
        """The installation's limits as they count now."""
        month, day = self.month_began(), self.day_began()
        later = (month + timedelta(days=32)).replace(day=1)
        found = [SpendingWindow("month", self._limit, month, f"{month:%Y-%m}", later)]
        if self._day is not None:
            later = day + timedelta(days=1)
            found.append(SpendingWindow("day", self._day, day, f"{day:%Y-%m-%d}", later))
        return found

    def used(self, windows: Sequence[SpendingWindow], costs: Sequence[Cost]) -> list[Spending]:
        """What is used of each, with what all calls since its begin cost."""
        found = [one.used(cost) for one, cost in zip(windows, costs, strict=True)]
        self._shut = any(one.is_full for one in found)
        return found

    def person_cap(self) -> PersonCap | None:
        """What one person may use over all chats since the day's begin."""
        return None if self._person is None else PersonCap(self._person, stamp(self.day_began()))

    async def spent_microusd(self) -> int:
        """This month's cost so far, in micro-dollars."""
        return (await self._usage.cost_since(self.month_began())).spent

    def month_began(self) -> datetime:
        """When this month began, in the zone."""
        return self.day_began().replace(day=1)

    def day_began(self) -> datetime:
        """When this day began, in the zone."""
        return datetime.now(self._zone).replace(hour=0, minute=0, second=0, microsecond=0)

    @property
    def zone(self) -> tzinfo:
        """The installation's."""
        return self._zone

    @property
    def limit_microusd(self) -> int:
        """The month's limit in micro-dollars."""
        return self._limit


def usd(microusd: int) -> str:
    """Dollars as people read them: two decimals, and more only of what is less than a cent."""
    hidden = 0 < microusd < MICRO // 100
    decimals = (4 if microusd >= MICRO // 10_000 else 6) if hidden else 2
    return f"{microusd / MICRO:.{decimals}f}"
