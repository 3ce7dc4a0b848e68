"""The night: a model proposes, and this decides what of it is done to `MEMORY.md`. Pure.

The gate trusts no word of the model. Nothing goes that is not said by what stays: an entry is dropped
only when another one holds all its words in their order, or when it was about a date to come that is
past; entries are merged only into a text that holds each of them like that; a correction keeps the
earlier text beside the new one. What is added or corrected rests on a person's words that were shown,
and says nothing that was to be forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final, Literal

from memory.facts import (
    Fact,
    FactsRefused,
    Line,
    Lines,
    added,
    corrected,
    fact,
    facts,
    removed,
)
from memory.flush import Note
from memory.proposal import Change, ProposalRefused
from memory.tombstones import Forgotten
from memory.words import words

OVER_AFTER: Final = timedelta(days=7)  # that the last date of an entry is past
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EARLIER = re.compile(r" \(before [0-9]{4}-[0-9]{2}-[0-9]{2}: .*\)$")
# What rots: an entry is read on other days.
_RELATIVE = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|heute|morgen|gestern)\b|今天|今晚|明天|昨天",
    re.IGNORECASE,
)

Fault = Literal[
    "no_source",  # it cites no note that was shown
    "unfounded",  # its words stand in none of the notes that it cites
    "known",  # an entry says it already: no fault of the proposal's
    "forgotten",  # it says what was to be forgotten
    "changed",  # the entry is not as it was shown
    "loses_words",  # what would go says more than what stays
    "relative_date",
    "empty",
    "too_long",
    "full",
]


@dataclass(frozen=True, slots=True)
class Night:
    """What a proposal is judged by. `shown`: the entries, `notes`: the notes that the model was shown;
    `most_lost`: entries that may go in this night, those that are gone already taken off."""

    day: date
    shown: Sequence[Fact]
    notes: Sequence[Note]
    forgotten: Forgotten
    most_lost: int


@dataclass(frozen=True, slots=True)
class Done:
    """A change that was made: entries before it, and the entry after it."""

    change: Change
    before: tuple[Fact, ...]
    after: Fact | None


@dataclass(frozen=True, slots=True)
class NotDone:
    """A change that was not made, and why."""

    change: Change
    fault: Fault


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of a proposal."""

    done: tuple[Done, ...] = ()
    not_done: tuple[NotDone, ...] = ()

    def count(self, kind: str) -> int:
        """How many changes of that kind were made."""
        return sum(done.change.kind == kind for done in self.done)

    @property
    def lost(self) -> int:
        """Entries that are gone."""
        return sum(len(done.before) - (done.after is not None) for done in self.done if done.before)


class _Faulty(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault: Fault = fault


def apply(lines: Lines, proposal: Sequence[Change], night: Night) -> tuple[Lines, Applied]:
    """The lines after what of the proposal passes the gate, in its order; the same for the same input.
    Raises `ProposalRefused`: then nothing is done."""
    asked = sum(_loses(change) for change in proposal)
    if asked > night.most_lost:
        raise ProposalRefused("loses_too_much")
    done: list[Done] = []
    not_done: list[NotDone] = []
    for change in proposal:
        if change.kind == "keep":
            continue
        try:
            lines, made = _carried_out(lines, change, night, [d.change for d in done])
            done.append(made)
        except _Faulty as error:
            not_done.append(NotDone(change, error.fault))
        except FactsRefused as error:
            not_done.append(NotDone(change, _FAULTS[error.why]))
    faulty = [each for each in not_done if each.fault not in _NO_BLAME]
    if len(faulty) > len(done) + len(not_done) - len(faulty):
        raise ProposalRefused("unfounded")
    return lines, Applied(tuple(done), tuple(not_done))


_FAULTS: dict[str, Fault] = {
    "empty": "empty",
    "too_long": "too_long",
    "full": "full",
    "known": "known",
    "no_entry": "changed",
}
_NO_BLAME = frozenset({"known", "full", "changed"})


def _loses(change: Change) -> int:
    """Entries that would go."""
    if change.kind == "drop":
        return len(change.numbers)
    return max(0, len(change.numbers) - 1) if change.kind == "merge" else 0


def _carried_out(
    lines: Lines, change: Change, night: Night, before: Sequence[Change]
) -> tuple[Lines, Done]:
    match change.kind:
        case "add":
            return _add(lines, change, night)
        case "correct":
            return _correct(lines, change, night)
        case "merge":
            return _merge(lines, change, night)
        case _:
            return _drop(lines, change, night, before)


def _add(lines: Lines, change: Change, night: Night) -> tuple[Lines, Done]:
    cited = _cited(change, night)
    _sound(change.text, night)
    who = ", ".join(dict.fromkeys(note.who for note in cited if note.who))
    _refuse_known(lines, change.text, who)
    if not _weighty(change.text) & _said(cited):
        raise _Faulty("unfounded")
    made, new = added(lines, max(note.day for note in cited), who, change.text)
    return made, Done(change, (), new)


def _correct(lines: Lines, change: Change, night: Night) -> tuple[Lines, Done]:
    cited = _cited(change, night)
    _sound(change.text, night)
    (old,) = _entries(lines, change, night, least=1, most=1)
    new_words = _weighty(change.text) - _weighty(_current(old.text))
    said = _said(cited)
    if not new_words & said or not _weighty(old.text) & (_weighty(change.text) | said):
        raise _Faulty("unfounded")
    day = max(note.day for note in cited)
    who = ", ".join(dict.fromkeys(note.who for note in cited if note.who)) or old.who
    _refuse_known(lines, change.text, who)
    text = f"{change.text} (before {day.isoformat()}: {old.text})"
    made, new, _ = corrected(lines, old.number, day, who, text)
    return made, Done(change, (old,), new)


def _merge(lines: Lines, change: Change, night: Night) -> tuple[Lines, Done]:
    _sound(change.text, night)
    olds = _entries(lines, change, night, least=2, most=len(night.shown))
    if not all(_holds(change.text, old.text) for old in olds):
        raise _Faulty("loses_words")
    first = min(olds, key=lambda old: old.number)
    rest = [old for old in olds if old is not first]
    who = ", ".join(dict.fromkeys(old.who for old in olds))
    fewer, _ = removed(lines, [old.number for old in rest])
    merged = fact(first.number, max(old.day for old in olds), who, change.text)
    _refuse_known([line for line in fewer if line.fact != first], merged.text, who)
    made = tuple(Line(merged.line(), merged) if line.fact == first else line for line in fewer)
    return made, Done(change, tuple(olds), merged)


def _drop(
    lines: Lines, change: Change, night: Night, before: Sequence[Change]
) -> tuple[Lines, Done]:
    (old,) = _entries(lines, change, night, least=1, most=1)
    others = [entry for entry in facts(lines) if entry.number != old.number]
    held = any(_holds(_current(entry.text), old.text) for entry in others)
    if not held and not _is_over(old, night.day):
        raise _Faulty("loses_words")
    made, _ = removed(lines, [old.number])
    return made, Done(change, (old,), None)


# What is asked of a change --------------------------------------------------------------------------


def _cited(change: Change, night: Night) -> list[Note]:
    if not change.sources:
        raise _Faulty("no_source")
    return [night.notes[index] for index in change.sources]


def _sound(text: str, night: Night) -> None:
    if night.forgotten.covers(text):
        raise _Faulty("forgotten")
    if _RELATIVE.search(text):
        raise _Faulty("relative_date")


def _entries(lines: Lines, change: Change, night: Night, *, least: int, most: int) -> list[Fact]:
    """The entries that it is about, as the model was shown them."""
    if not least <= len(change.numbers) <= most:
        raise _Faulty("changed")
    now = {entry.number: entry for entry in facts(lines)}
    shown = {entry.number: entry for entry in night.shown}
    found = [now.get(number) for number in change.numbers]
    olds = [old for old in found if old is not None and shown.get(old.number) == old]
    if len(olds) < len(change.numbers):
        raise _Faulty("changed")
    return olds


def _is_over(entry: Fact, today: date) -> bool:
    """Whether it was about dates to come when it was noted, and all of them are past."""
    dates = [found for text in _DATE.findall(entry.text) if (found := _date(text)) is not None]
    return bool(dates) and min(dates) >= entry.day and max(dates) < today - OVER_AFTER


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _refuse_known(lines: Sequence[Line], text: str, who: str) -> None:
    said = _saying(text, who)
    if any(_saying(_current(each.text), each.who) == said for each in facts(lines)):
        raise _Faulty("known")


def _saying(text: str, who: str) -> list[str]:
    """The words, without the name of who said them at their begin."""
    found = words(text)
    for subject in (words(who), ["the", "user"], ["user"]):
        if subject and found[: len(subject)] == subject:
            return found[len(subject) :]
    return found


def _current(text: str) -> str:
    """An entry without what it said before it was corrected."""
    return _EARLIER.sub("", text)


def _holds(text: str, other: str) -> bool:
    """Whether `text` has the words of `other` in their order, others between them or not."""
    left = iter(words(text))
    return all(word in left for word in words(other))


def _weighty(text: str) -> frozenset[str]:
    """Words that tell what a text is about: no short ones of alphabets."""
    return frozenset(
        word
        for word in words(text)
        if len(word) > 2 or not word.isascii() or any(map(str.isdigit, word))
    )


def _said(cited: Iterable[Note]) -> frozenset[str]:
    return frozenset[str]().union(*(_weighty(note.text) for note in cited))


# What the night tells -------------------------------------------------------------------------------


def report(applied: Applied, notes: Sequence[Note]) -> list[str]:
    """What was changed and why, a line each: for `changes/YYYY-MM-DD.md`."""
    rows = [_row(done, notes) for done in applied.done]
    rows += [
        f"- not done ({each.fault.replace('_', ' ')}): {each.change.kind}"
        f" {_numbers(each.change.numbers)}{each.change.text}"
        for each in applied.not_done
        if each.fault != "forgotten"  # it is not to be written down again
    ]
    return rows


def _row(done: Done, notes: Sequence[Note]) -> str:
    change = done.change
    parts: list[str] = []
    if done.after is not None:
        parts.append(f"**{done.after.number}** {done.after.text}")
    if done.before:
        parts.append("; ".join(f"was **{old.number}** {old.text}" for old in done.before))
    if change.reason:
        parts.append(f"because: {change.reason}")
    if change.sources:
        days = dict.fromkeys(notes[index].day.isoformat() for index in change.sources)
        parts.append(f"from: {', '.join(days)}")
    return f"- {change.kind}: {' · '.join(parts)}"


def _numbers(numbers: Sequence[int]) -> str:
    return "".join(f"**{number}** " for number in numbers)
