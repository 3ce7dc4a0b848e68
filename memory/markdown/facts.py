"""`MEMORY.md`: what a scope knows for good, one entry a line, which people may edit.

    - **3** (2026-11-30, Ana) prefers metric units

A line that is no entry stays where it is, to the byte. An entry keeps its number until it is
removed. The file is bounded, so that all of it can stand before a model.

FactsRefused: a change that is not made
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import count
from typing import Literal

from memory.text.words import normalised

MOST_ENTRIES = 200
MOST_CHARACTERS = 16_000  # of the whole file: about 4,000 tokens of English, 12,000 of Chinese
MOST_TEXT = 300  # characters of one entry
MOST_WHO = 40
_HIGHEST = 999_999
_ENTRY = re.compile(
    r"\s*[-*+]\s+\*\*\s*([0-9]{1,6})\.?\s*\*\*\s+"
    r"\(\s*([0-9]{4}-[0-9]{2}-[0-9]{2})\s*,\s*([^()]*?)\s*\)\s+(\S.*?)\s*"
)
_NOBODY = "?"
EARLIER = re.compile(r" \(before [0-9]{4}-[0-9]{2}-[0-9]{2}: (.*)\)$")
"""What an entry said before a night has corrected it, at its end."""

Why = Literal[
    "empty",
    "too_long",
    "full",
    "known",
    "no_entry",
    "changed",
    "changed_since",
    "nothing_to_undo",
    "forgotten",
    "not_yours",
]


class FactsRefused(Exception):
    """A change that is not made. `why`: nothing is said; it is longer than an entry or the file may
    be; the same stands there already (as `number`); there is no entry `number`; somebody goes on
    changing the file; it was changed again after that; no earlier version is kept; a person had it
    forgotten; it (the entry `number`) is somebody else's to change."""

    def __init__(self, why: Why, number: int = 0) -> None:
        super().__init__(why if not number else f"{why}: {number}")
        self.why = why
        self.number = number


@dataclass(frozen=True, slots=True)
class Fact:
    """An entry: what is known, since when, and who said it (a name, never an id)."""

    number: int
    day: date
    who: str
    text: str

    def line(self) -> str:
        """As it stands in the file."""
        return f"- **{self.number}** ({self.day.isoformat()}, {self.who}) {self.text}"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the file without its line break, and the entry that it is, if any."""

    raw: str
    fact: Fact | None = None


Lines = tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Size:
    """What the file takes of its bounds."""

    entries: int
    characters: int


def fact(number: int, day: date, who: str, text: str) -> Fact:
    """An entry of one line. Raises `FactsRefused`."""
    said = one_line(text)
    if not normalised(said):
        raise FactsRefused("empty")
    if len(said) > MOST_TEXT:
        raise FactsRefused("too_long")
    name = one_line(re.sub(r"[()]", " ", who))[:MOST_WHO].strip()
    return Fact(number, day, name or _NOBODY, said)


def one_line(text: str) -> str:
    """The text without line breaks, control characters and halves of characters."""
    printable = (c if c.isprintable() else " " for c in text)
    return " ".join("".join(printable).split())


def parse(text: str) -> Lines:
    """The file's lines; `render` gives the same text. Of entries with one number the later ones get
    the next that are free."""
    taken: set[int] = set()
    lines: list[Line] = []
    doubled: list[tuple[int, Fact]] = []
    for raw in text.split("\n"):
        found = _entry(raw)
        if found is not None and found.number in taken:
            doubled.append((len(lines), found))
        elif found is not None:
            taken.add(found.number)
        lines.append(Line(raw, found))
    for index, again in doubled:
        number = _free(taken)
        taken.add(number)
        lines[index] = Line(lines[index].raw, replace(again, number=number))
    return tuple(lines)


def _free(taken: Collection[int]) -> int:
    """The number after the highest; where a hand has used the highest there is, the lowest free."""
    after = max(taken, default=0) + 1
    if after <= _HIGHEST:
        return after
    return next(number for number in count(1) if number not in taken)


def render(lines: Sequence[Line]) -> str:
    """The file's text."""
    return "\n".join(line.raw for line in lines)


def facts(lines: Sequence[Line]) -> list[Fact]:
    """The entries in their order."""
    return [line.fact for line in lines if line.fact is not None]


def find(lines: Sequence[Line], number: int) -> Fact:
    """The entry of that number. Raises `FactsRefused`."""
    for each in facts(lines):
        if each.number == number:
            return each
    raise FactsRefused("no_entry", number)


def size(lines: Sequence[Line]) -> Size:
    """How much the file takes."""
    return Size(len(facts(lines)), len(render(lines)))


# Changes: each gives the new lines, or raises `FactsRefused` ----------------------------------------


def added(lines: Lines, day: date, who: str, text: str) -> tuple[Lines, Fact]:
    """One more entry, after the last one, and that entry."""
    lines = numbered(lines)
    number = _free({each.number for each in facts(lines)})
    new = fact(number, day, who, text)
    _refuse_known(lines, new)
    entry = Line(new.line(), new)
    behind = [index for index, line in enumerate(lines) if line.fact is not None]
    if behind:
        at = behind[-1] + 1
        made = (*lines[:at], entry, *lines[at:])
    else:
        before = lines if lines[-1].raw else lines[:-1]
        made = (*before, entry, Line(""))
    if made[-1].raw:  # the last line ends like all others
        made = (*made, Line(""))
    return _fitting(made, lines), new


def corrected(
    lines: Lines, number: int, day: date, who: str, text: str
) -> tuple[Lines, Fact, Fact]:
    """Another text for an entry, which keeps its number and place; the new entry and the old one."""
    lines = numbered(lines)
    old = find(lines, number)
    new = fact(number, day, who, text)
    _refuse_known([line for line in lines if line.fact != old], new)
    made = tuple(Line(new.line(), new) if line.fact == old else line for line in lines)
    return _fitting(made, lines), new, old


def removed(lines: Lines, numbers: Sequence[int]) -> tuple[Lines, list[Fact]]:
    """Without these entries, and those."""
    lines = numbered(lines)
    gone = [find(lines, number) for number in dict.fromkeys(numbers)]
    return tuple(line for line in lines if line.fact not in gone), gone


def _refuse_known(lines: Sequence[Line], new: Fact) -> None:
    said = normalised(new.text)
    for each in facts(lines):
        if normalised(each.text) == said:
            raise FactsRefused("known", each.number)


def _fitting(made: Lines, before: Lines) -> Lines:
    """What a person has made too large by hand may become smaller, and no larger."""
    now, earlier = size(made), size(before)
    if now.entries > max(MOST_ENTRIES, earlier.entries):
        raise FactsRefused("full")
    if now.characters > max(MOST_CHARACTERS, earlier.characters):
        raise FactsRefused("full")
    return made


def numbered(lines: Lines) -> Lines:
    """Entries that `parse` has given another number carry it."""
    return tuple(_renumbered(line) for line in lines)


def _renumbered(line: Line) -> Line:
    printed = _entry(line.raw)
    if line.fact is None or printed == line.fact:
        return line
    return Line(line.fact.line(), line.fact)


def _entry(raw: str) -> Fact | None:
    found = _ENTRY.fullmatch(raw)
    if found is None:
        return None
    try:
        day = date.fromisoformat(found[2])
    except ValueError:
        return None
    return Fact(int(found[1]), day, found[3] or _NOBODY, found[4])
