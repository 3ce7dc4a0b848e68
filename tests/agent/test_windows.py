"""The window of a model that the configuration says nothing about."""

from __future__ import annotations

import pytest

from agent.windows import CAUTIOUS, window_of


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-haiku-5-5", 200_000),
        ("anthropic/claude-sonnet-5-5", 200_000),
        ("gpt-4", 8_000),
        ("gpt-4o-mini", 128_000),
        ("Qwen3-Max", 128_000),
        ("my-own-model", CAUTIOUS),
        ("", CAUTIOUS),
    ],
)
def test_known_models_have_their_window_and_others_a_cautious_one(model: str, window: int) -> None:
    assert window_of(model) == window
