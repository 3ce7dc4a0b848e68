"""The models that answer, as the configuration names them."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from agent.estimate import Estimator, family_of
from agent.model import ChatModel
from agent.provider import Provider
from agent.providers import build_provider
from bridge.config import Config
from bridge.log import Redactor

log = logging.getLogger(__name__)


@asynccontextmanager
async def chat_models(config: Config, redactor: Redactor) -> AsyncGenerator[tuple[ChatModel, ...]]:
    """The configured model and its fallbacks; without any provider the embedded one, started here."""
    async with AsyncExitStack() as stack:
        if config.local_model:
            from bridge.local_model import local_chat_model

            yield (await stack.enter_async_context(local_chat_model(redactor)),)
            return
        names = tuple(dict.fromkeys((config.model, *config.fallback_models)))
        providers: dict[str, Provider] = {}
        for name in {config.models[model].provider: None for model in names}:
            providers[name] = build_provider(name, config.providers[name])
            stack.push_async_callback(providers[name].aclose)
        yield tuple(_chat_model(config, name, providers) for name in names)


def _chat_model(config: Config, name: str, providers: Mapping[str, Provider]) -> ChatModel:
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
        price=entry.price.cost_microusd if entry.price else None,
    )
