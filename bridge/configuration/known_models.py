"""Models that Galata knows prices for, so that a key alone is enough to start.

Windows are set below the length from which a provider charges its higher price for long prompts
(100,000 tokens: claude-haiku-5-5; 272,000: gpt-6), so that the prices hold for every request.
Sources: platform.claude.com/docs/en/about-claude/pricing and developers.openai.com/api/docs/pricing,
as read in November 2026.
"""

from __future__ import annotations

from datetime import date

from agent.settings import ModelSettings, PriceSettings
from agent.windows import window_of

AS_OF = date(2026, 11, 5)
ANTHROPIC_URL = "https://api.anthropic.com"
OPENAI_URL = "https://api.openai.com/v1"
DEFAULTS = {"anthropic": "claude-haiku-5-5", "openai": "gpt-6-luna"}
"""The model for a key and nothing else, by the provider's kind: each provider's small one."""

# (kind, window, then USD per million tokens: input, output, cache read, cache write for 5 minutes)
KNOWN = {
    "claude-haiku-5-5": ("anthropic", 100_000, 0.10, 0.50, 0.01, 0.125),
    "claude-sonnet-5-5": ("anthropic", 200_000, 2.0, 10.0, 0.10, 2.50),
    "claude-opus-5-5": ("anthropic", 200_000, 4.0, 20.0, 0.20, 5.0),
    "gpt-6-luna": ("openai", 200_000, 0.10, 0.50, 0.01, 0.125),
    "gpt-6-sol": ("openai", 200_000, 2.0, 10.0, 0.20, 2.50),
}


def model_settings(kind: str, provider: str, model_id: str) -> ModelSettings:
    """The settings of the model `model_id` at `provider`; without a price when it is not known."""
    row = KNOWN.get(model_id)
    if row is None or row[0] != kind:
        return ModelSettings(provider=provider, id=model_id, context_tokens=window_of(model_id))
    _, window, given, made, read, write = row
    price = PriceSettings(input=given, output=made, cache_read=read, cache_write=write, as_of=AS_OF)
    return ModelSettings(provider=provider, id=model_id, context_tokens=window, price=price)
