"""A change names its keys; all else of a file stays as somebody has written it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bridge.limits.editing import differences, edited, passes
from bridge.limits.keys import BY_NAME, KEYS
from bridge.limits.kinds import Known
from bridge.limits.reading import read
from tests.bridge.limits.values import ceilings, layers

NAMES = st.sets(st.sampled_from([key.name for key in KEYS]))


def values(text: str) -> dict[str, Any]:
    reading = read(text.encode(), Known())
    assert not reading.faults, (text, reading.faults)
    return dict(reading.values)


@given(layers, layers, NAMES)
def test_only_what_is_named_changes(
    before: dict[str, Any], change: dict[str, Any], removed: set[str]
) -> None:
    removed -= set(change)
    text = edited("", before, ())
    after = values(edited(text, change, removed))
    expected = {k: v for k, v in (before | change).items() if k not in removed}
    assert after == expected
    named = {name for name, _, _ in differences(before, after)}
    assert named <= set(change) | removed


def test_comments_order_and_long_values_stay() -> None:
    text = (
        "# Ours\nPaused: no   # for now\n\nblocked:\n  - 42\n  - 43\ninstructions: |\n  One.\n\n"
        "  Two.\ntokens_per_day: 50k\n"
    )
    assert edited(text, {"paused": True}, ()) == text.replace("Paused: no", "paused: yes")
    assert edited(text, {}, ["blocked"]) == text.replace("blocked:\n  - 42\n  - 43\n", "")
    assert edited(text, {"instructions": "Three."}, ()) == text.replace(
        "instructions: |\n  One.\n\n  Two.\n", "instructions: Three.\n"
    )
    assert edited("paused: no\n", {}, ["paused"]) == ""


@given(layers, ceilings)
def test_what_passes_no_ceiling_is_taken(wished: dict[str, Any], top: dict[str, Any]) -> None:
    refused = {name for name, value in wished.items() if passes(BY_NAME[name], value, top)}
    assert refused <= set(wished) & set(top)
    assert not any(passes(BY_NAME[name], top[name], top) for name in refused)
