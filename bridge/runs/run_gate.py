"""What is asked before the steps and calls of a run: what the installation may spend; then, right
before each model call, whether the run's own limits leave room for it, and what it may not see any
more. These two are one transaction, the last before the request goes out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.model import ChatModel
from agent.working import Renewed
from bridge.limits.budget import RunBudget
from bridge.limits.gate import MonthlyGate, Spending
from bridge.runs.run_memory import RunMemory
from memory.runs import Runs, Visible

FRESH_S = 1.0  # what was looked at when the run began counts for its first step: a second at most


@dataclass(frozen=True, slots=True)
class AtBegin:
    """What was used of the installation's limits when a run began, at this time of the loop's."""

    spending: Sequence[Spending]
    time_s: float


@dataclass(frozen=True, slots=True)
class RunGate:
    """Of one run. `system`: its prompt, with this as what it remembers; `scope`: of its memory."""

    runs: Runs
    installation: MonthlyGate
    began: AtBegin
    budget: RunBudget
    memory: RunMemory
    system: Callable[[str], str]
    session: int
    scope: str

    async def check(self, step: int) -> None:
        """Raises `LimitReached` as `MonthlyGate.check`. Before the first step nothing is read again,
        unless the context had to be made shorter first, which takes a while."""
        now_s = asyncio.get_running_loop().time()
        if step == 1 and now_s - self.began.time_s < FRESH_S:
            self.installation.judge(self.began.spending)
        else:
            await self.installation.check()

    async def reserve(self, number: int, model: ChatModel, tokens: int) -> Renewed | None:
        """The run's `number`th call begins, and will read about `tokens`. Raises `LimitReached`: then
        it does not."""
        asked = self.budget.reservation(number, model, tokens)
        met, visible = await self.runs.reserve(asked, self.scope)
        if met is not None:
            raise self.budget.reached(met)
        return await self._renewed(visible)

    async def renew(self) -> Renewed | None:
        """The same without a call of the run's own."""
        return await self._renewed(await self.runs.visible(self.session, self.scope))

    async def _renewed(self, visible: Visible) -> Renewed | None:
        """What was forgotten while the run is under way is not sent with its later steps."""
        renewed = await self.memory.renewed(visible)
        return None if renewed is None else Renewed(self.system(renewed[0]), renewed[1])
