"""Whose words a fact is made of: what a page, a tool, a quote or a forward said is not taken for what a
person said. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memory.words import looser, phrases, words

LONG = 5  # letters: shorter words are in every text
MOST_FOREIGN = 0.5  # of a fact's words that only others have said


@dataclass(frozen=True, slots=True)
class Heard:
    """What a person said in a conversation, and what others did: tools, files, quotes, forwards."""

    own: str = ""
    others: str = ""


Hear = Callable[[], Heard]


def is_foreign(fact: str, heard: Heard) -> bool:
    """Whether most of what the fact says was said by others and not by the person."""
    said = _marks(fact)
    borrowed = said & _marks(heard.others) - _marks(heard.own)
    return bool(said) and len(borrowed) > MOST_FOREIGN * len(said)


def _marks(text: str) -> frozenset[tuple[str, ...]]:
    """What tells a text from others: its long words, and pairs of characters without spaces."""
    every = {phrase.words for phrase in looser(phrases(text.replace('"', " ")))}
    long = {found for found in every if len(found) > 1 or len("".join(found)) >= LONG}
    return frozenset(long or ((word,) for word in words(text)))
