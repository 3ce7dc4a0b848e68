"""Whether texts say the same, as the gate of the night asks (`memory.consolidate`). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final

from memory.markdown.facts import EARLIER, Fact
from memory.text.telling import denies, sequence, stem, telling
from memory.text.words import words

FEW: Final = 2  # words that tell the same in whatever order they stand
_OBJECTS: Final = frozenset({"me", "us", "mich", "mir", "uns"})
OVER_AFTER: Final = timedelta(days=7)  # that the last date of an entry is past
_SELF: Final = (["i"], ["ich"], ["我"])
_ARTICLES: Final = frozenset(("a", "an", "the"))
_GOING_ON: Final = tuple(
    [stem(word)]
    for word in words(
        "and with in on at since from for because every und mit seit bei auf weil et avec depuis chez"
        " y con en desde 和 与 跟"
    )
)
_PART = re.compile(r"[.;,:。；，：、]+|\b(?:and|but|und|aber|et|mais|y|pero)\b", re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def is_over(entry: Fact, today: date) -> bool:
    """Whether it was about dates to come when it was noted, and all of them are past."""
    dates = [found for text in _DATE.findall(entry.text) if (found := _date(text)) is not None]
    past = bool(dates) and min(dates) >= entry.day and max(dates) < today - OVER_AFTER
    # A part without a date may hold for longer.
    return past and all(_DATE.search(part) for part in _PART.split(entry.text) if telling(part))


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def tell_the_same(text: str, other: str, who: str) -> bool:
    """Whether two texts tell the same words in the same order, and deny both or none; of two words at
    most in any order, unless it is about whom something is done to. The name of `who` said them does
    not count at their begin."""
    told, others = _told(text, who), _told(other, who)
    if not told or denies(text) != denies(other) or set(told) != set(others):
        return False
    either = len(told) <= FEW and not _OBJECTS & {*words(text), *words(other)}
    return told == others or either


def _told(text: str, who: str) -> list[str]:
    told, subject = sequence(text), sequence(who)
    return told[len(subject) :] if subject and told[: len(subject)] == subject else told


def saying(text: str, who: str) -> list[str]:
    """The words, without the name of who said them at their begin."""
    found = words(text)
    for subject in (words(who), ["the", "user"], ["user"]):
        if subject and found[: len(subject)] == subject:
            return found[len(subject) :]
    return found


def current(text: str) -> str:
    """An entry without what it said before it was corrected."""
    return EARLIER.sub("", text)


def loses_words(entry: str, text: str) -> bool:
    """Whether `text` in its place leaves out words of what it says, or of what it said before."""
    found = EARLIER.search(entry)
    said = telling(current(entry)) | telling(found[1] if found else "")
    return not said <= telling(text)


def goes_on(text: str, known: str, who: str) -> bool:
    """Whether a text says all that a known one says, in its words, and then goes on with more of the
    same: `likes tea`, `likes tea in the morning`. Not `has a dog`, `has a dog allergy`."""
    said, first = _stems(text, who), _stems(known, who)
    return (
        bool(telling(known) - telling(who))
        and said[: len(first)] == first
        and said[len(first) :][:1] in _GOING_ON
        and denies(text) == denies(known)
    )


def _stems(text: str, who: str) -> list[str]:
    """The words as said by `who`, by their stems, without articles."""
    said = saying(text, who)
    said = said[1:] if said[:1] in _SELF else said
    return [stem(word) for word in said if word not in _ARTICLES]


def holds(text: str, other: str) -> bool:
    """Whether `text` has the words of `other` in their order, others between them or not."""
    left = iter(words(text))
    return all(word in left for word in words(other))


def says_all(entry: Fact, old: Fact) -> bool:
    """Whether an entry says what another one says, of the same people: its words in their order, hardly
    parted, and denied only where it denies."""
    text = current(entry.text)
    if text == old.text:
        return telling(old.who) <= telling(f"{entry.who} {entry.text}")
    wanted = sequence(old.text)
    return (
        bool(wanted)
        and holds(text, old.text)
        and denies(text) == denies(old.text)
        and telling(old.who) <= telling(f"{entry.who} {entry.text}")
        and _hardly_parted(sequence(text), wanted)
    )


def _hardly_parted(text: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether the stems stand in their order with one other among them at most."""
    for start in range(len(text)):
        left = iter(text[start : start + len(wanted) + 1])
        if all(stem in left for stem in wanted):
            return True
    return False
