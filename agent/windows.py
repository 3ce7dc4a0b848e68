"""How many tokens a model takes, where the configuration does not say.

The least that a family's models have by default (no beta header, no larger plan), rounded down; what
the configuration says counts first, and a window that turns out smaller is met by the overflow ladder.
A model that is not here gets a cautious one: too small a budget forgets sooner, too large a one is
refused, or cut silently.

Sources, as stored copies of November 2026 have them: the providers' own pages at
developers.openai.com/api/docs/models (compare), ai.google.dev/gemini-api/docs/models,
support.claude.com (articles 8606395) and api-docs.deepseek.com; for the others the model pages of
vercel.com/ai-gateway/models, docs.together.ai, docs.venice.ai and promptfoo.dev/docs/providers.
"""

from __future__ import annotations

import re

CAUTIOUS = 32_000

# The first pattern that matches the beginning of the id, without a vendor before it, counts.
_WINDOWS = tuple(
    (re.compile(pattern), window)
    for pattern, window in (
        (r"claude-", 200_000),  # 1,000,000 for some
        (r"gpt-5[.\d]*-chat", 128_000),
        # 1,050,000 since gpt-5.5 and 400,000 with the answer before: this is the input of the older
        # ones, and from here on the newer ones cost more.
        (r"gpt-[56]", 272_000),
        (r"gpt-4\.1", 1_000_000),
        (r"gpt-4o|chatgpt-4o|gpt-4-(?:turbo|1106|0125|vision)", 128_000),
        (r"gpt-4-32k", 32_000),
        (r"gpt-4", 8_000),
        (r"gpt-3\.5", 16_000),
        (r"gpt-oss", 128_000),
        (r"o1-(?:mini|preview)", 128_000),
        (r"o[134](?:-|$)", 200_000),
        (r"gemini-(?!1\.0|pro|.*(?:image|banana|audio|live|tts))", 1_000_000),
        (r"deepseek-(?:v4|flash|pro)", 1_000_000),
        (r"deepseek-", 64_000),  # 128,000 for some
        (r"qwen3\.\d-(?:max|plus)", 990_000),
        (r"qwen3-(?:max|coder)", 256_000),
        (r"qwen-(?:plus|turbo|long)", 128_000),
        (r"kimi-k2(?:\.\d|-thinking|.*0905)", 256_000),
        (r"kimi-k2", 128_000),
        (r"moonshot-v1-8k", 8_000),
        (r"moonshot-v1-32k", 32_000),
        (r"moonshot-v1-128k", 128_000),
        (r"minimax-m", 200_000),
        (r"glm-5\.[2-9]", 1_000_000),
        (r"glm-(?:4\.[67]|5)", 200_000),
        (r"glm-4", 128_000),
        (r"mistral-(?:large|medium|small)", 128_000),
        (r"grok-4", 256_000),
        (r"grok-", 128_000),
    )
)
_VENDOR = re.compile(r"^(?:.*/)?(?:[a-z]+\.)*")  # `openai/`, and `us.anthropic.` as Bedrock has it


def window_of(model_id: str) -> int:
    """The window in tokens."""
    return _found(model_id) or CAUTIOUS


def is_known(model_id: str) -> bool:
    """Whether the table has the model; else its window is a guess."""
    return _found(model_id) is not None


def _found(model_id: str) -> int | None:
    name = _VENDOR.sub("", model_id.lower())
    return next((window for pattern, window in _WINDOWS if pattern.match(name)), None)
