"""What one run may use: asked before each of its model calls, which are reserved before they begin."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from agent.errors import LimitReached
from agent.model import ChatModel
from agent.provider import Usage
from bridge.limits.caps import caps_of, everywhere, reached, sentence
from bridge.limits.gate import MonthlyGate
from bridge.limits.policies import zone_of
from bridge.limits.policy import Policy
from bridge.texts import Say
from channels.base import Address
from memory.usage import PersonReached, Reached, Reservation, UsageRow


@dataclass(frozen=True, slots=True)
class Spender:
    """Who spends where, and under which policy."""

    session: int
    address: Address
    person: str
    policy: Policy


class RunBudget:
    """What one run may use. `installation`: its own limits, of which a person's goes over all chats."""

    def __init__(self, installation: MonthlyGate, spender: Spender, run_id: str, say: Say) -> None:
        self._installation = installation
        self._spender = spender
        self._run_id = run_id
        self._say = say

    def reservation(self, number: int, model: ChatModel, estimated: int) -> Reservation:
        """Of the run's `number`th call, which will read about `estimated` tokens."""
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
        caps = caps_of(spender.policy, private=spender.address.private)
        return Reservation(row, caps, self._installation.person_cap())

    def reached(self, met: Reached | PersonReached) -> LimitReached:
        """Why a call was not reserved, with its sentence."""
        spender = self._spender
        if isinstance(met, PersonReached):
            reach = everywhere(met.cost, met.cap, self._installation.zone)
        else:
            reach = reached(met.cap, met.used, datetime.now(UTC), zone_of(spender.policy))
        told = sentence(reach, spender.policy, self._say, spender.address)
        return LimitReached("reached", sentence=told)
