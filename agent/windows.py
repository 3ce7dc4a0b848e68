"""How many tokens a model takes, where the configuration does not say.

Rounded down, by family, and not checked against the providers' pages of today: what the configuration
says counts first, and a window that turns out smaller is met by the overflow ladder. A model that is
not here gets a cautious one: too small a budget forgets sooner, too large a one is refused.
"""

from __future__ import annotations

import re

CAUTIOUS = 32_000

# The first pattern that matches the beginning of the id, without a "vendor/" before it, counts.
_WINDOWS = tuple(
    (re.compile(pattern), window)
    for pattern, window in (
        (r"claude-", 200_000),
        (r"gpt-6", 272_000),
        (r"gpt-5", 272_000),
        (r"gpt-4\.1", 1_000_000),
        (r"gpt-4o|gpt-4-turbo", 128_000),
        (r"gpt-4-32k", 32_000),
        (r"gpt-4", 8_000),
        (r"gpt-3\.5", 16_000),
        (r"o[134](?:-|$)", 128_000),
        (r"gemini-", 1_000_000),
        (r"deepseek-", 64_000),
        (r"qwen3-(?:max|coder|plus)|qwen-(?:plus|turbo|long)", 128_000),
        (r"kimi-k2", 128_000),
        (r"minimax-m", 190_000),
        (r"glm-4", 128_000),
        (r"mistral-(?:large|medium|small)", 128_000),
        (r"grok-", 128_000),
        (r"gpt-oss", 128_000),
    )
)


def window_of(model_id: str) -> int:
    """The window in tokens."""
    return _found(model_id) or CAUTIOUS


def is_known(model_id: str) -> bool:
    """Whether the table has the model; else its window is a guess."""
    return _found(model_id) is not None


def _found(model_id: str) -> int | None:
    name = model_id.lower().rsplit("/", 1)[-1]
    return next((window for pattern, window in _WINDOWS if pattern.match(name)), None)
