"""What entries of `MEMORY.md` said before they were corrected or merged, by its earlier versions. Pure.

A number is given again when the last entry was removed. So the text that stood there is that of the
same entry where it is known to have been corrected (`corrects`), or where both share a word that tells
something.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from memory.markdown.facts import Fact
from memory.text.telling import telling
from memory.text.words import normalised


def earlier(
    now: Sequence[Fact],
    versions: Iterable[Sequence[Fact]],
    numbers: Collection[int],
    corrects: Callable[[Fact], bool],
) -> list[Fact]:
    """What the entries of these numbers said before and none says `now`. `versions`: the newest first.
    `corrects`: whether an entry is known to have got its text by a correction."""
    followed = [fact for fact in now if fact.number in numbers]
    newer, found = now, dict[Fact, None]()
    for version in versions:
        left = {fact.number for fact in newer}
        before = list[Fact]()
        for fact in followed:
            before += _before(fact, version, left, corrects)
        found |= dict.fromkeys(before)
        followed, newer = before, version
    texts = {normalised(fact.text) for fact in now}
    return [fact for fact in found if normalised(fact.text) not in texts]


def _before(
    fact: Fact, version: Sequence[Fact], left: Collection[int], corrects: Callable[[Fact], bool]
) -> list[Fact]:
    """The same entry in the version before; and those that were merged into it: they are not `left`
    after it, and it tells all that they told."""
    found = list[Fact]()
    told = telling(fact.text)
    for old in version:
        if old.number == fact.number:
            same = normalised(old.text) == normalised(fact.text)
            shared = (told & telling(old.text)) - telling(old.who) - telling(fact.who)
            if same or shared or corrects(fact):
                found.append(old)
        elif old.number not in left and telling(old.text) and telling(old.text) <= told:
            found.append(old)
    return found
