"""What one run may use: asked before each of its model calls, which are reserved before they begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from agent.errors import LimitReached
from agent.loop import Gate
from agent.model import ChatModel
from agent.provider import Usage
from bridge.limits.caps import caps_of, reached, sentence
from bridge.limits.policies import zone_of
from bridge.limits.policy import Policy
from bridge.texts import Say
from channels.base import Address
from memory.days import Cap, Used, first_met
from memory.usage import UsageRow, UsageStore


@dataclass(frozen=True, slots=True)
class Spender:
    """Who spends where, and under which policy."""

    session: int
    address: Address
    person: str
    policy: Policy


class RunBudget:
    """The gate of one run. `month`: the installation's own limit, which comes first."""

    def __init__(
        self, usage: UsageStore, month: Gate, spender: Spender, run_id: str, say: Say
    ) -> None:
        self._usage = usage
        self._month = month
        self._spender = spender
        self._run_id = run_id
        self._say = say

    async def check(self, step: int) -> None:
        """Raises `LimitReached`: `month`, or `reached` with its sentence."""
        await self._month.check(step)
        spender, caps = self._spender, self._caps()
        if not caps:
            return
        address = spender.address
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
        met = await self._usage.reserve(row, self._caps())
        if met is not None:
            raise self._reached(met.cap, met.used)

    def _caps(self) -> Sequence[Cap]:
        return caps_of(self._spender.policy, private=self._spender.address.private)

    def _reached(self, cap: Cap, used: Used) -> LimitReached:
        spender = self._spender
        reach = reached(cap, used, datetime.now(UTC), zone_of(spender.policy))
        private = spender.address.private
        told = sentence(reach, spender.policy, self._say, private=private)
        return LimitReached("reached", sentence=told)
