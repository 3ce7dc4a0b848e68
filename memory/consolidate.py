"""The night: a model proposes, and this decides what of it is done to `MEMORY.md`. Pure.

The gate trusts no word of the model. Nothing goes that is not said by what stays: an entry is dropped
only when another one says the same of the same people, or when it was about a date to come that is
past; entries are merged only into a text that holds the words of each in their order; a correction
keeps half of the entry's words, and the text before it beside the new one, as far as there is room.
What is added, corrected or merged has no word that tells something, and no denial, beyond a person's
notes that it cites and the entries that it replaces, and says nothing that was to be forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final, Literal

from memory.markdown.facts import (
    MOST_TEXT,
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
from memory.night.alike import current, holds, is_over, saying, says_all, tell_the_same
from memory.night.proposal import Change, ProposalRefused
from memory.notes.flush import Note
from memory.text.relative import is_relative
from memory.text.telling import telling, turned, untold
from memory.tombstones import Forgotten

SHORTEST_EARLIER: Final = 20  # characters of what an entry said before that are worth keeping

Fault = Literal[
    "no_source",  # it cites no note that was shown
    "unfounded",  # it says more than the notes that it cites, or denies what they state
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
        if night.forgotten.covers(change.reason):
            change = replace(change, reason="")  # it is told among the night's changes
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
    whos = [entry.who for entry in night.shown if entry.number in change.numbers]
    whos += [night.notes[index].who for index in change.sources]
    if night.forgotten.covers(change.text, ", ".join(whos) if all(whos) else ""):
        raise _Faulty("forgotten")
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
    _sound(change.text)
    who = ", ".join(dict.fromkeys(note.who for note in cited if note.who))
    _refuse_known(lines, change.text, who)
    _founded(change.text, _said(cited, change.text))
    made, new = added(lines, max(note.day for note in cited), who, change.text)
    return made, Done(change, (), new)


def _correct(lines: Lines, change: Change, night: Night) -> tuple[Lines, Done]:
    cited = _cited(change, night)
    _sound(change.text)
    (old,) = _entries(lines, change, night, least=1, most=1)
    if not _speakers(cited) <= {old.who, *old.who.split(", ")}:
        raise _Faulty("unfounded")  # somebody else has said it, maybe of themselves
    now = telling(change.text) - telling(old.who)
    before = telling(current(old.text)) - telling(old.who)
    said = _said(cited, change.text)
    if not now & before or 2 * len(now & before) < len(before):
        raise _Faulty("unfounded")  # it is about something else
    if not (now - before) & frozenset[str]().union(*map(telling, said)) and not (
        turned(change.text, [old.text])
        # Who says no more than that it is not so says it of nobody else.
        and any(not untold(note.text, [change.text, old.who]) for note in cited)
    ):
        raise _Faulty("unfounded")
    _founded(change.text, said, [current(old.text), old.who])
    day = max(note.day for note in cited)
    who = ", ".join(dict.fromkeys(note.who for note in cited if note.who)) or old.who
    _refuse_known(lines, change.text, who)
    text = _with_earlier(change.text, old.text, day)
    made, new, _ = corrected(lines, old.number, day, who, text)
    return made, Done(change, (old,), new)


def _with_earlier(text: str, old: str, day: date) -> str:
    """The text with what it said until that day: one earlier text, as much of it as an entry holds. All
    of it stays in the earlier version and in the night's changes."""
    earlier = current(old)
    room = MOST_TEXT - len(f"{text} (before {day.isoformat()}: )")
    if room < len(earlier):
        earlier = f"{earlier[: room - 1].rstrip()}…" if room >= SHORTEST_EARLIER else ""
    return f"{text} (before {day.isoformat()}: {earlier})" if earlier else text


def _merge(lines: Lines, change: Change, night: Night) -> tuple[Lines, Done]:
    _sound(change.text)
    olds = _entries(lines, change, night, least=2, most=len(night.shown))
    if not all(holds(change.text, old.text) for old in olds):
        raise _Faulty("loses_words")
    if len({old.who for old in olds}) > 1:
        raise _Faulty("loses_words")  # who has said which
    cited = [night.notes[index] for index in change.sources]
    entries = [each for old in olds for each in (old.text, old.who)]
    _founded(change.text, [*entries, *_said(cited, change.text)])
    first = min(olds, key=lambda old: old.number)
    rest = [old for old in olds if old is not first]
    who = first.who
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
    held = any(says_all(entry, old) for entry in others)
    if not held and not is_over(old, night.day):
        raise _Faulty("loses_words")
    made, _ = removed(lines, [old.number])
    return made, Done(change, (old,), None)


# What is asked of a change --------------------------------------------------------------------------


def _cited(change: Change, night: Night) -> list[Note]:
    if not change.sources:
        raise _Faulty("no_source")
    return [night.notes[index] for index in change.sources]


def _speakers(cited: Iterable[Note]) -> set[str]:
    return {who for note in cited if note.who for who in (note.who, *note.who.split(", "))}


def _sound(text: str) -> None:
    if is_relative(text):
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


def _refuse_known(lines: Sequence[Line], text: str, who: str) -> None:
    said = saying(text, who)
    for each in facts(lines):
        known = current(each.text)
        theirs = not {*each.who.split(", ")}.isdisjoint(who.split(", "))
        if saying(known, each.who) == said or (theirs and tell_the_same(known, text, who)):
            raise _Faulty("known")


def _founded(text: str, said: Sequence[str], known: Sequence[str] = ()) -> None:
    """`said`: the notes that it rests on; `known`: what an entry has said before."""
    if untold(text, [*said, *known]) or turned(text, said):
        raise _Faulty("unfounded")


def _said(cited: Iterable[Note], text: str) -> list[str]:
    """What the notes say and who says it; raises `_Faulty` when they share no word with the text."""
    notes = list(cited)
    if notes and not telling(text) & frozenset[str]().union(*(telling(n.text) for n in notes)):
        raise _Faulty("unfounded")
    return [each for note in notes for each in (note.text, note.who)]


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
