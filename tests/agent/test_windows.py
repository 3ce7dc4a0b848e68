"""The window of a model that the configuration says nothing about."""

from __future__ import annotations

import pytest

from agent.windows import CAUTIOUS, is_known, window_of


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-haiku-5-5", 200_000),
        ("anthropic/claude-sonnet-5-5", 200_000),
        ("us.anthropic.claude-opus-4-6-v1:0", 200_000),
        ("gpt-6-luna", 272_000),
        ("gpt-5.1-chat-latest", 128_000),
        ("gpt-5.6-sol", 272_000),
        ("gpt-4.1-mini", 1_000_000),
        ("gpt-4", 8_000),
        ("gpt-4-0613", 8_000),
        ("gpt-4-1106-preview", 128_000),
        ("gpt-4o-mini", 128_000),
        ("openai/gpt-oss-120b", 128_000),
        ("o1-mini", 128_000),
        ("o3", 200_000),
        ("o4-mini", 200_000),
        ("gemini-3.8-flash", 1_000_000),
        ("gemini-3-pro-image", CAUTIOUS),
        ("deepseek-v4-pro", 1_000_000),
        ("deepseek-chat", 64_000),
        ("Qwen3-Max", 256_000),
        ("qwen3.7-max", 990_000),
        ("kimi-k2-0711-preview", 128_000),
        ("moonshotai/Kimi-K2-Instruct-0905", 256_000),
        ("kimi-k2.6", 256_000),
        ("moonshot-v1-8k", 8_000),
        ("MiniMax-M2.5", 200_000),
        ("zai-org/GLM-4.5", 128_000),
        ("zai-org/GLM-4.6", 200_000),
        ("glm-5.3", 1_000_000),
        ("grok-4-fast", 256_000),
        ("grok-3-mini", 128_000),
        ("my-own-model", CAUTIOUS),
        ("", CAUTIOUS),
    ],
)
def test_known_models_have_their_window_and_others_a_cautious_one(model: str, window: int) -> None:
    assert window_of(model) == window
    assert is_known(model) == (window != CAUTIOUS)
