"""What is asked right before each model call of a run: whether its limits leave room for it, and what
it may not see any more. Both are one transaction, the last before the request goes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent.model import ChatModel
from agent.working import Renewed
from bridge.limits.budget import RunBudget
from bridge.runs.run_memory import RunMemory
from memory.runs import Runs, Visible


@dataclass(frozen=True, slots=True)
class RunGate:
    """Of one run. `system`: its prompt, with this as what it remembers; `scope`: of its memory."""

    runs: Runs
    budget: RunBudget
    memory: RunMemory
    system: Callable[[str], str]
    session: int
    scope: str

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
