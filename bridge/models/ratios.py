"""Token estimates that learn from what the models' providers report, per model."""

from __future__ import annotations

from dataclasses import replace

from agent.calls import ModelCall
from agent.estimate import Correction
from agent.model import ChatModel
from memory.costs.token_ratios import TokenRatios

WORTH_STORING = 0.01  # a change of the ratio; less is learnt again soon after a restart


class Ratios:
    """The corrections of all models; `load` them once."""

    def __init__(self, store: TokenRatios) -> None:
        self._store = store
        self._known: dict[str, Correction] = {}
        self._stored: dict[str, Correction] = {}

    async def load(self) -> None:
        """Take up what was learnt before the start."""
        self._stored = await self._store.load()
        self._known = dict(self._stored)

    def corrected(self, model: ChatModel) -> ChatModel:
        """The model with estimates as they are known to be now; fixed for one run."""
        ratio = self._known.get(model.name, Correction()).ratio
        return replace(model, sizes=replace(model.sizes, ratio=ratio))

    async def learn(self, call: ModelCall) -> None:
        """From a call that its provider has counted."""
        if call.outcome != "completed" or call.usage.estimated:
            return
        name = call.model.name
        before = self._known.get(name, Correction())
        plain = round(call.estimated_tokens / call.model.sizes.ratio)
        after = before.observed(plain, call.usage.read_tokens)
        self._known[name] = after
        stored = self._stored.get(name)
        if stored is None or abs(after.ratio - stored.ratio) >= WORTH_STORING:
            self._stored[name] = after
            await self._store.keep(name, after)
