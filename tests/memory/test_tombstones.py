"""What was forgotten is known again in another order and other forms, and nothing else is taken
for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.database import Database
from memory.text.words import normalised
from memory.tombstones import Forgotten, Tombstones, bury

# No two of one stem, none that every text holds.
TELLING = ("gin", "Pablo", "Quibble77", "garden", "violin", "Tuesday", "9000", "cats", "river")
FILLING = ("the", "is", "called", "my", "of", "and", "in", "was")
telling = st.lists(st.sampled_from(TELLING), min_size=2, max_size=5, unique=True)
filling = st.lists(st.sampled_from(FILLING), max_size=4)


def forgotten(*sayings: str) -> Forgotten:
    return Forgotten(frozenset(map(normalised, sayings)))


@pytest.mark.parametrize(
    ("saying", "text"),
    [
        ("likes gin", "Ana likes gin"),
        ("likes gin", "gin is what Ana likes"),
        ("likes gin", "Ana loves her gin"),
        ("the cat is called Pablo", "Ana's cat is called Pablo"),
        ("the cat is called Pablo", "Ana's cats: Pablo"),
        ("the cat is called Pablo", "Pablo is the name of the cat"),
        ("prefers green tea", "green tea is what Ana prefers"),
        ("the gate code of the north house is Quibble77", "gate code: Quibble77, north"),
        ("喜欢喝咖啡", "用户喝咖啡，很喜欢"),
    ],
)
def test_a_saying_is_known_again_in_other_forms(saying: str, text: str) -> None:
    assert forgotten(saying).covers(text)


@pytest.mark.parametrize(
    ("saying", "text"),
    [
        ("likes gin", "likes tea"),
        ("the cat is called Pablo", "Pablo is a nice name for a street"),
        ("the cat is called Pablo", "the cat is called Mia"),
        ("the budget of 2026 is 500 euros", "the budget of 2026 is 700 euros"),
        ("tea", "likes tea"),
        ("喜欢喝咖啡", "喜欢喝牛奶"),
        ("likes gin", f"likes {'one and another ' * 20} gin"),
    ],
)
def test_another_fact_is_not_taken_for_it(saying: str, text: str) -> None:
    assert not forgotten(saying).covers(text)


@given(telling, filling, st.randoms())
def test_no_order_and_no_small_words_bring_a_saying_back(
    words: list[str], small: list[str], plan: object
) -> None:
    saying = " ".join(words)
    again = [*words, *small]
    plan.shuffle(again)  # type: ignore[attr-defined]
    assert forgotten(saying).covers(" ".join(again))


@given(telling, telling, filling)
def test_what_says_something_else_can_be_said(
    words: list[str], others: list[str], small: list[str]
) -> None:
    """As long as a word of the saying is missing, and another one is there."""
    if set(words) <= set(others) or set(others) <= set(words):
        return
    assert not forgotten(" ".join(words)).covers(" ".join([*others, *small]))


async def test_what_was_forgotten_for_good_is_no_less_so_by_an_undo(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "galata.db")
    try:
        await database.write(lambda c: bury(c, "s", ["likes tea"]))
        await database.write(lambda c: bury(c, "s", ["likes tea"], undone=True))
        assert (await Tombstones(database).of("s")).covers("likes tea")
    finally:
        await database.close()
