"""The model calls of the memory: booked to their chat under a purpose of their own and to no person,
within their share of the month's budget and of the chat's own."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Literal

from agent.calls import CallOutcome
from agent.errors import LimitReached, ProviderError, Refusal
from agent.messages import user_text
from agent.model import ChatModel
from agent.provider import Completed, ModelRequest, Usage
from bridge.limits.gate import MonthlyGate
from memory.costs.days import Cap, Place
from memory.usage import UsageRow, UsageStore

Purpose = Literal["flush", "consolidation", "summary"]
PURPOSES: tuple[Purpose, ...] = ("flush", "consolidation", "summary")
WAIT_S = 120.0  # for one call that nobody waits for
ROOM = 0.5  # of the model's window that what is read may fill
_CUT = frozenset({"length", "window", "refusal", "filter", "pause"})


class PutOff(Exception):
    """The share of the budget is used up, or the month's limit: it is done later."""


class CallFailed(Exception):
    """There is no answer, or only a part of one; the text says why, and `refusal` what the provider
    said, if it did."""

    def __init__(self, text: str, refusal: Refusal | None = None) -> None:
        super().__init__(text)
        self.refusal = refusal


class CutOff(CallFailed):
    """Only a part of the answer has come: of less there may be all."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a chat may use; `zone`: where its days begin."""

    place: Place
    zone: tzinfo
    caps: Sequence[Cap]


AllowanceOf = Callable[[int], Awaitable[Allowance | None]]
"""That of a session's chat, None where nothing is known of it."""
NOBODY = ""  # the person that these calls are booked to


@dataclass(frozen=True, slots=True)
class Ask:
    """One call. `session`: whose chat pays for it; `most_tokens`: cap of the answer."""

    session: int
    purpose: Purpose
    instructions: str
    text: str
    most_tokens: int
    zone: tzinfo = UTC


class MemoryCalls:
    """`model` gives the model that is asked now; `share` of the budgets is theirs."""

    def __init__(
        self,
        model: Callable[[], ChatModel],
        usage: UsageStore,
        gate: MonthlyGate,
        share: float,
        allowance: AllowanceOf | None = None,
    ) -> None:
        self._model = model
        self._usage = usage
        self._gate = gate
        self._share = share
        self._allowance = allowance

    def by(self, model: ChatModel) -> MemoryCalls:
        """The same calls, of another model."""
        return MemoryCalls(lambda: model, self._usage, self._gate, self._share, self._allowance)

    @property
    def model(self) -> ChatModel:
        """The model that is asked."""
        return self._model()

    @property
    def room(self) -> int:
        """Tokens that a call may read beside its instructions."""
        return round(self.model.context_tokens * ROOM)

    async def admit(self, session: int) -> Allowance | None:
        """What this session's chat may use. Raises `PutOff` when no call may be made now for it."""
        try:
            await self._gate.check()
        except LimitReached as error:
            raise PutOff("the month's limit is reached") from error
        spent = await self._usage.cost_since(self._gate.month_began(), PURPOSES)
        if spent.counted >= self._gate.limit_microusd * self._share:
            raise PutOff("the memory's share of the month's budget is used up")
        allowance = None if self._allowance is None else await self._allowance(session)
        if allowance is not None:
            await self._admit_in_chat(allowance)
        return allowance

    async def _admit_in_chat(self, allowance: Allowance) -> None:
        """What is booked to nobody is what the memory has used."""
        used = await self._usage.used(allowance.place, NOBODY, allowance.zone)
        own = {
            "chat_cost": used.person_cost,
            "chat_tokens": used.person_tokens,
            "month_cost": used.person_month_cost,
        }
        for cap in allowance.caps:
            if cap.measure in ("person_cost", "person_tokens"):
                continue
            theirs = own.get(cap.measure)
            if cap.used(used) >= cap.limit or (
                theirs is not None and theirs >= cap.limit * self._share
            ):
                raise PutOff(f"the memory's share of the chat's {cap.key} is used up")

    async def ask(self, ask: Ask, wait_s: float = WAIT_S) -> str:
        """The answer. Raises `PutOff`, `CallFailed`."""
        allowance = await self.admit(ask.session)
        completed: Completed | None = None
        outcome: CallOutcome = "cancelled"
        request = self._request(ask)
        try:
            async with asyncio.timeout(wait_s):
                completed = await self._stream(request)
            outcome = "completed"
        except (ProviderError, TimeoutError) as error:
            outcome = "failed"
            refusal = error.refusal if isinstance(error, ProviderError) else None
            raise CallFailed(f"{type(error).__name__}: {error}", refusal) from error
        finally:
            # The days of a shared memory are not those of the chat that pays.
            zone = ask.zone if allowance is None else allowance.zone
            await self._book(replace(ask, zone=zone), request, completed, outcome)
        if completed is None or completed.stop_reason in _CUT:
            raise CutOff("the answer was cut off")
        return completed.message.text.strip()

    async def _stream(self, request: ModelRequest) -> Completed | None:
        completed: Completed | None = None
        async with self.model.provider.stream(request) as events:
            async for event in events:
                if isinstance(event, Completed):
                    completed = event
        return completed

    def _request(self, ask: Ask) -> ModelRequest:
        model = self.model
        system, text = ask.instructions, ask.text
        if not model.traits.system_prompt:
            system, text = "", f"{system}\n\n{text}"
        return ModelRequest(
            model=model.id,
            system=system,
            messages=(user_text(text),),
            tools=(),
            max_output_tokens=min(ask.most_tokens, model.max_output_tokens),
            traits=model.traits,
        )

    async def _book(
        self, ask: Ask, request: ModelRequest, completed: Completed | None, outcome: CallOutcome
    ) -> None:
        """Also a call that failed or was stopped: it was made, and may cost."""
        model = self.model
        written = model.sizes.text(completed.message.text) if completed is not None else 0
        usage = completed.usage if completed is not None else None
        usage = usage or Usage(model.sizes.request(request), written, estimated=True)
        row = UsageRow(
            f"{ask.purpose}:{secrets.token_hex(8)}",
            1,
            ask.session,
            NOBODY,
            model.name,
            ask.purpose,
            outcome,
            usage,
            model.cost_microusd(usage),
            ask.zone,
        )
        await self._usage.book([row])
