"""The gate of the night: whether one proposed change is made, and what the entries are then. Pure.

It trusts no word of the model. Nothing goes that is not said by what stays: an entry is dropped only
when another one says the same of the same people, or when it was about a date to come that is past;
entries are merged only into a text that holds the words of each in their order. A correction must be
against the entry (`memory.night.against`) and by the same person, and has the text before it beside the
new one; what else they say of the same is added, and what goes on with an entry takes its place. What
is added, corrected or merged has no word that tells something, and no denial, beyond a person's notes
that it cites and the entries that it replaces, and says nothing that was to be forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from typing import Final

from memory.markdown.facts import (
    MOST_TEXT,
    Fact,
    Line,
    Lines,
    added,
    corrected,
    fact,
    facts,
    removed,
)
from memory.night.against import stands_against, tells_of_one
from memory.night.alike import (
    current,
    goes_on,
    holds,
    is_over,
    loses_words,
    saying,
    says_all,
    tell_the_same,
)
from memory.night.judged import Done, Faulty, Night
from memory.night.proposal import Change
from memory.notes.flush import Note
from memory.text.relative import is_relative
from memory.text.telling import telling, turned, untold

SHORTEST_EARLIER: Final = 20  # characters of what an entry said before that are worth keeping


def carried_out(lines: Lines, change: Change, night: Night) -> tuple[Lines, Done]:
    """The lines after the change. Raises `Faulty`, `FactsRefused`."""
    whos = [entry.who for entry in night.shown if entry.number in change.numbers]
    whos += [night.notes[index].who for index in change.sources]
    if night.forgotten.covers(change.text, ", ".join(whos) if all(whos) else ""):
        raise Faulty("forgotten")
    match change.kind:
        case "add":
            return _add(lines, change, night)
        case "correct":
            return _correct(lines, change, night)
        case "merge":
            return _merge(lines, change, night)
        case _:
            return _drop(lines, change, night)


def _add(
    lines: Lines, change: Change, night: Night, known: Sequence[str] = ()
) -> tuple[Lines, Done]:
    """`known`: what they have said before of the same."""
    cited = _cited(change, night)
    _sound(change.text)
    who = ", ".join(dict.fromkeys(note.who for note in cited if note.who))
    _refuse_known(lines, change.text, who)
    _founded(change.text, _said(cited, change.text), known)
    day = max(note.day for note in cited)
    if (old := _gone_on(lines, change, night, who)) is not None:
        text = change.text + old.text[len(current(old.text)) :]
        made, new, _ = corrected(lines, old.number, day, who, text)
        return made, Done(replace(change, kind="merge", numbers=(old.number,)), (old,), new)
    made, new = added(lines, day, who, change.text)
    return made, Done(replace(change, kind="add", numbers=()), (), new)


def _gone_on(lines: Lines, change: Change, night: Night, who: str) -> Fact | None:
    """The entry of the same person that the text says, and then goes on."""
    for old in facts(lines):
        first = current(old.text)
        if (
            old.who == who
            and old in night.shown
            and goes_on(change.text, first, who)
            and len(change.text) + len(old.text) - len(first) <= MOST_TEXT
            and not _are_strangers(old, change, night)
        ):
            return old
    return None


def _correct(lines: Lines, change: Change, night: Night) -> tuple[Lines, Done]:
    cited = _cited(change, night)
    _sound(change.text)
    (old,) = _entries(lines, change, night, least=1, most=1)
    said = _said(cited, change.text)
    _same_matter(change, old, cited, said)
    if _are_strangers(old, change, night):
        return _add(lines, change, night)
    day = max(note.day for note in cited)
    text = _with_earlier(change.text, old.text, day)
    known = [current(old.text), old.who]
    against = stands_against(change.text, known[0], old.who, [note.text for note in cited])
    against = against and not goes_on(change.text, known[0], old.who)
    if not against or (night.most_lost < 1 and loses_words(old.text, text)):
        return _add(lines, change, night, known)
    _founded(change.text, said, known)
    who = ", ".join(dict.fromkeys(note.who for note in cited if note.who)) or old.who
    _refuse_known(lines, change.text, who)
    made, new, _ = corrected(lines, old.number, day, who, text)
    return made, Done(change, (old,), new)


def _same_matter(change: Change, old: Fact, cited: Sequence[Note], said: Sequence[str]) -> None:
    """Raises `Faulty` unless those who have said the entry speak of the same again, and say more."""
    if not _speakers(cited) <= {old.who, *old.who.split(", ")}:
        raise Faulty("unfounded")  # somebody else has said it, maybe of themselves
    now = telling(change.text) - telling(old.who)
    before = telling(current(old.text)) - telling(old.who)
    same = tells_of_one(change.text, current(old.text), old.who)
    if not now & before or (2 * len(now & before) < len(before) and not same):
        raise Faulty("unfounded")  # it is about something else
    if not (now - before) & frozenset[str]().union(*map(telling, said)) and not (
        turned(change.text, [old.text])
        # Who says no more than that it is not so says it of nobody else.
        and any(not untold(note.text, [change.text, old.who]) for note in cited)
    ):
        raise Faulty("unfounded")


def _with_earlier(text: str, old: str, day: date) -> str:
    """The text with what it said until that day: one earlier text, as much of it as an entry holds. All
    of it stays in the earlier version and in the night's changes."""
    before = current(old)
    room = MOST_TEXT - len(f"{text} (before {day.isoformat()}: )")
    if room < len(before):
        before = f"{before[: room - 1].rstrip()}…" if room >= SHORTEST_EARLIER else ""
    return f"{text} (before {day.isoformat()}: {before})" if before else text


def _merge(lines: Lines, change: Change, night: Night) -> tuple[Lines, Done]:
    _sound(change.text)
    olds = _entries(lines, change, night, least=2, most=len(night.shown))
    if not all(holds(change.text, old.text) for old in olds):
        raise Faulty("loses_words")
    if len({old.who for old in olds}) > 1:
        raise Faulty("loses_words")  # who has said which
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


def _drop(lines: Lines, change: Change, night: Night) -> tuple[Lines, Done]:
    (old,) = _entries(lines, change, night, least=1, most=1)
    others = [entry for entry in facts(lines) if entry.number != old.number]
    held = any(says_all(entry, old) for entry in others)
    if not held and not is_over(old, night.day):
        raise Faulty("loses_words")
    made, _ = removed(lines, [old.number])
    return made, Done(change, (old,), None)


# What is asked of a change --------------------------------------------------------------------------


def _cited(change: Change, night: Night) -> list[Note]:
    if not change.sources:
        raise Faulty("no_source")
    return [night.notes[index] for index in change.sources]


def _are_strangers(old: Fact, change: Change, night: Night) -> bool:
    """Whether a note that is cited may be somebody else's than the entry."""
    return any((old.number, index) in night.strangers for index in change.sources)


def _speakers(cited: Iterable[Note]) -> set[str]:
    return {who for note in cited if note.who for who in (note.who, *note.who.split(", "))}


def _sound(text: str) -> None:
    if is_relative(text):
        raise Faulty("relative_date")


def _entries(lines: Lines, change: Change, night: Night, *, least: int, most: int) -> list[Fact]:
    """The entries that it is about, as the model was shown them."""
    if not least <= len(change.numbers) <= most:
        raise Faulty("changed")
    now = {entry.number: entry for entry in facts(lines)}
    shown = {entry.number: entry for entry in night.shown}
    found = [now.get(number) for number in change.numbers]
    olds = [old for old in found if old is not None and shown.get(old.number) == old]
    if len(olds) < len(change.numbers):
        raise Faulty("changed")
    return olds


def _refuse_known(lines: Sequence[Line], text: str, who: str) -> None:
    said = saying(text, who)
    for each in facts(lines):
        known = current(each.text)
        theirs = not {*each.who.split(", ")}.isdisjoint(who.split(", "))
        same = tell_the_same(known, text, who) or goes_on(known, text, who)
        if saying(known, each.who) == said or (theirs and same):
            raise Faulty("known")


def _founded(text: str, said: Sequence[str], known: Sequence[str] = ()) -> None:
    """`said`: the notes that it rests on; `known`: what an entry has said before."""
    if untold(text, [*said, *known]) or turned(text, said):
        raise Faulty("unfounded")


def _said(cited: Iterable[Note], text: str) -> list[str]:
    """What the notes say and who says it; raises `Faulty` when they share no word with the text."""
    notes = list(cited)
    if notes and not telling(text) & frozenset[str]().union(*(telling(n.text) for n in notes)):
        raise Faulty("unfounded")
    return [each for note in notes for each in (note.text, note.who)]
