"""What an entry said before is found by earlier versions, and not what only had its number."""

from __future__ import annotations

from datetime import date

from memory.markdown.earlier import earlier
from memory.markdown.facts import Fact

DAY = date(2026, 12, 1)


def entries(*texts: str) -> list[Fact]:
    """Numbered from 1; an empty text is a number that is not there."""
    return [Fact(n, DAY, "Ana", text) for n, text in enumerate(texts, 1) if text]


def before(now: list[Fact], *versions: list[Fact], corrected: str = "") -> list[str]:
    found = earlier(now, versions, {1}, lambda fact: fact.text == corrected)
    return [fact.text for fact in found]


def test_each_text_that_an_entry_had_is_found() -> None:
    now = entries("her PIN is 3", "tea")
    older = (entries("her PIN is 2", "tea"), entries("her PIN is 2"), entries("her PIN is 1"))
    assert before(now, *older) == ["her PIN is 2", "her PIN is 1"]


def test_another_entry_that_had_the_number_is_none_of_its_texts() -> None:
    assert before(entries("tea"), entries(""), entries("a boat")) == []
    assert before(entries("tea"), entries("a boat"), entries("tea, and a boat")) == []
    assert before(entries("lives in Ulm"), entries("moved to Rome"), corrected="lives in Ulm") == [
        "moved to Rome"
    ]


def test_what_was_merged_into_it_was_its_text() -> None:
    now, older = entries("likes tea and jazz"), entries("likes tea", "likes jazz", "has a boat")
    assert before(now, older) == ["likes tea", "likes jazz"]


def test_what_another_entry_says_now_stays() -> None:
    assert before(entries("likes tea", "likes jazz"), entries("likes jazz")) == []
