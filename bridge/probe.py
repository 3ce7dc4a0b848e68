"""A real, small call to a model, to see whether its key, address and id work."""

from __future__ import annotations

from agent.messages import user_text
from agent.provider import ModelRequest
from agent.providers import build_provider
from agent.settings import ModelSettings, ProviderSettings

# The least that the models' settings allow, and what some reasoning models need to answer at all.
TOKENS = 16


async def probe_model(provider: ProviderSettings, model: ModelSettings) -> None:
    """Ask the model for one word. Raises `ProviderError`, and `KeyMissing`."""
    endpoint = build_provider(model.provider, provider)
    request = ModelRequest(
        model=model.id,
        system="",
        messages=(user_text("Say OK."),),
        tools=(),
        max_output_tokens=TOKENS,
        traits=model.traits,
    )
    try:
        async with endpoint.stream(request) as events:
            async for _ in events:
                pass
    finally:
        await endpoint.aclose()
