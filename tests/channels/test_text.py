"""What a platform sends can be stored, and what nobody would see is known as such."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.chunking import units
from channels.text import is_visible, spelled_out, whole, whole_strings

texts = st.text(st.characters(categories=("L", "P", "Cs", "So")))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)


@given(texts)
def test_a_whole_text_can_be_encoded_and_keeps_its_length(text: str) -> None:
    clean = whole(text)
    assert clean.encode().decode() == clean
    assert units(clean) == units(text)
    assert whole(clean) == clean


@given(st.text())
def test_a_text_without_halves_stays_as_it_is(text: str) -> None:
    assert whole(text) == text


def test_two_halves_make_a_character() -> None:
    assert whole("\ud83d\ude00") == "\U0001f600"
    assert whole("\ude00\ud83d!") == "\ufffd\ufffd!"


@given(json_values)
def test_every_string_in_a_value_is_made_whole(value: object) -> None:
    assert json.dumps(whole_strings(value), ensure_ascii=False).encode()


@given(st.recursive(st.text() | st.floats(allow_nan=False), st.lists, max_leaves=20))
def test_a_value_without_halves_stays_as_it_is(value: object) -> None:
    assert whole_strings(value) == value


@pytest.mark.parametrize(
    "text",
    ["", " \n\t", "\u200b", "\u2063\u200d", "\ufeff", "\u3164", "\u2800", "\xad", "\x00", "\ufe0f"],
)
def test_what_nobody_sees_is_not_visible(text: str) -> None:
    assert not is_visible(text)
    assert is_visible(f"{text}.")


@pytest.mark.parametrize("text", ["a", "。", "👩\u200d👧", "\u0301", "\ufffd", "\ue000"])
def test_everything_else_is_visible(text: str) -> None:
    assert is_visible(text)


@given(st.text())
def test_a_text_spelled_out_is_visible_unless_it_is_white_space(text: str) -> None:
    assert is_visible(spelled_out(text)) == bool(text.strip())
    assert len(spelled_out(text)) < 200
