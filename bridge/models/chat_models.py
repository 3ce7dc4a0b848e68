"""The models that answer, as the configuration names them."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from agent.estimate import Estimator, family_of
from agent.model import ChatModel
from agent.provider import Provider
from agent.providers import build_provider
from agent.settings import PriceSettings
from bridge.config import Config
from bridge.log import Redactor

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """`usual`: the model that answers, and its fallbacks. `others`: all that a chat may choose, by
    name, the usual ones among them. `notes`: the one that takes the memory's notes, None for the one
    that answers. `prices` may change while they are used."""

    usual: tuple[ChatModel, ...]
    others: Mapping[str, ChatModel] = field(default_factory=dict[str, ChatModel])
    notes: ChatModel | None = None
    prices: dict[str, PriceSettings] = field(default_factory=dict[str, PriceSettings])

    def named(self, name: str) -> tuple[ChatModel, ...]:
        """The model of that name with the usual fallbacks; the usual ones where there is none."""
        chosen = self.others.get(name)
        if chosen is None or chosen == self.usual[0]:
            return self.usual
        return (chosen, *(model for model in self.usual[1:] if model != chosen))


@asynccontextmanager
async def chat_models(config: Config, redactor: Redactor) -> AsyncGenerator[ModelChoice]:
    """The configured models; without any provider the embedded one, started here."""
    async with AsyncExitStack() as stack:
        if config.local_model:
            from bridge.models.local_model import local_chat_model

            yield ModelChoice((await stack.enter_async_context(local_chat_model(redactor)),))
            return
        usual = tuple(dict.fromkeys((config.model, *config.fallback_models)))
        names = tuple(dict.fromkeys((*usual, *config.models_for_chats)))
        for_notes = config.memory.notes_model
        every = (*names, for_notes) if for_notes is not None else names
        providers: dict[str, Provider] = {}
        for name in {config.models[model].provider: None for model in every}:
            providers[name] = build_provider(name, config.providers[name])
            stack.push_async_callback(providers[name].aclose)
        entries = {name: config.models[name].price for name in every}
        prices = {name: price for name, price in entries.items() if price is not None}
        models = {name: _chat_model(config, name, providers, prices) for name in names}
        notes = None if for_notes is None else models.get(for_notes)
        if for_notes is not None and notes is None:
            notes = _chat_model(config, for_notes, providers, prices)
        yield ModelChoice(tuple(models[name] for name in usual), models, notes, prices)


def _chat_model(
    config: Config,
    name: str,
    providers: Mapping[str, Provider],
    prices: Mapping[str, PriceSettings],
) -> ChatModel:
    entry = config.models[name]
    kind = config.providers[entry.provider].kind
    budget = config.context.budget_tokens
    if budget is not None and budget > entry.window:
        log.warning(
            "context.budget_tokens (%d) is larger than the window of %s (%d), which counts",
            budget,
            name,
            entry.window,
        )
    return ChatModel(
        name=name,
        id=entry.id,
        provider=providers[entry.provider],
        max_output_tokens=entry.max_output_tokens,
        traits=entry.traits,
        context_tokens=entry.window,
        sizes=Estimator(family_of(entry.id, kind)),
        price=(lambda usage: prices[name].cost_microusd(usage)) if name in prices else None,
    )
