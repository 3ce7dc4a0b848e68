"""What one run may use: asked before each of its model calls, which are reserved before they begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from agent.errors import LimitReached
from agent.model import ChatModel
from agent.provider import Usage
from bridge.limits.caps import Reach, caps_of, everywhere, reached, sentence
from bridge.limits.gate import MonthlyGate
from bridge.limits.policies import zone_of
from bridge.limits.policy import Policy
from bridge.texts import Say
from channels.base import Address
from memory.days import Cap, Used, first_met
from memory.usage import Cost, PersonCap, Reached, UsageRow, UsageStore


@dataclass(frozen=True, slots=True)
class Spender:
    """Who spends where, and under which policy."""

    session: int
    address: Address
    person: str
    policy: Policy


class RunBudget:
    """The gate of one run. `installation`: its own limits, which come first."""

    def __init__(
        self, usage: UsageStore, installation: MonthlyGate, spender: Spender, run_id: str, say: Say
    ) -> None:
        self._usage = usage
        self._installation = installation
        self._spender = spender
        self._run_id = run_id
        self._say = say

    async def check(self, step: int) -> None:
        """Raises `LimitReached`: `month`, `day`, or `reached` with its sentence."""
        await self._installation.check(step)
        spender, caps = self._spender, self._caps()
        address, person = spender.address, self._installation.person_cap()
        if person is not None:
            spent = await self._usage.of_person(address.channel, spender.person, person.since)
            if spent.counted >= person.limit:
                raise self._everywhere(spent, person)
        if not caps:
            return
        place = (address.channel, address.account, address.chat)
        used = await self._usage.used(place, spender.person, zone_of(spender.policy))
        met = first_met(caps, used)
        if met is not None:
            raise self._reached(met, used)

    async def reserve(self, number: int, model: ChatModel, estimated: int) -> None:
        """A call begins, the run's `number`th, that will read about `estimated` tokens. Raises
        `LimitReached`: then it does not."""
        spender = self._spender
        usage = Usage(estimated, 0, estimated=True)
        row = UsageRow(
            self._run_id,
            number,
            spender.session,
            spender.person,
            model.name,
            "answer",
            "reserved",
            usage,
            model.cost_microusd(usage),
            zone_of(spender.policy),
        )
        person = self._installation.person_cap()
        met = await self._usage.reserve(row, self._caps(), person)
        if isinstance(met, Cost) and person is not None:
            raise self._everywhere(met, person)
        if isinstance(met, Reached):
            raise self._reached(met.cap, met.used)

    def _everywhere(self, spent: Cost, person: PersonCap) -> LimitReached:
        reach = everywhere(spent, person, self._installation.zone)
        return LimitReached("reached", sentence=self._told(reach))

    def _caps(self) -> Sequence[Cap]:
        return caps_of(self._spender.policy, private=self._spender.address.private)

    def _reached(self, cap: Cap, used: Used) -> LimitReached:
        spender = self._spender
        reach = reached(cap, used, datetime.now(UTC), zone_of(spender.policy))
        return LimitReached("reached", sentence=self._told(reach))

    def _told(self, reach: Reach) -> str:
        private = self._spender.address.private
        return sentence(reach, self._spender.policy, self._say, private=private)
