"""Notes as they stand in the day files, and as they are read there. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone, tzinfo
from itertools import groupby, takewhile

from memory.markdown.facts import one_line
from memory.markdown.headings import NOT_SAID, is_aside
from memory.notes.conversation_lines import ASSISTANT, Line
from memory.notes.items import Item
from memory.text.provenance import Heard, is_foreign
from memory.text.telling import telling, untold
from memory.tombstones import Forgotten

MOST_ASIDE = 10  # such lines in one entry, beside the notes on what the assistant said
MOST_ITEM = 400  # characters of one note

_ENTRY = re.compile(
    r"## ([0-9]{2}:[0-9]{2})–[0-9]{2}:[0-9]{2}(?: UTC([+-][0-9:]{5,15}|))?"
    r" · conversation ([0-9]{1,18}), messages ([0-9]{1,18})–([0-9]{1,18})"
)
_SAID = re.compile(r"- \*\*(.{1,200}?)\*\* (\S.*?)(?: \[([0-9, ]+)\])?")


@dataclass(frozen=True, slots=True)
class Entry:
    """What is appended to a day's file. `heading` is the line that it is known by."""

    day: date
    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """The messages that an entry stands for. `began`: the time of the first, as `14:05`, in the `zone`
    that was the chat's then; None: an earlier version wrote it, without a zone."""

    session: int
    first: int
    last: int
    began: str
    zone: tzinfo | None = None


def entries(
    lines: Sequence[Line], items: Sequence[Item], session: int, forgotten: Forgotten
) -> list[Entry]:
    """What goes into the files, the oldest day first: each note to the day of the first line that it
    rests on. What says something `forgotten` is left out; a day without notes has no entry."""
    made: list[Entry] = []
    for day, group in groupby(range(len(lines)), _days(lines).__getitem__):
        indexes = list(group)
        here = [item for item in items if item.lines[0] in indexes]
        here = [item for item in here if not forgotten.covers(item.text, _who(item, lines))]
        if here:
            made.append(_entry(day, lines, indexes, here, session, forgotten))
    return made


def _days(lines: Sequence[Line]) -> list[date]:
    """Each line's day; none is before that of an earlier message, whatever the clock did."""
    days: list[date] = []
    for line in lines:
        days.append(max(line.at.date(), days[-1]) if days else line.at.date())
    return days


def _entry(
    day: date,
    lines: Sequence[Line],
    indexes: Sequence[int],
    items: Sequence[Item],
    session: int,
    forgotten: Forgotten,
) -> Entry:
    first, last = lines[indexes[0]], lines[indexes[-1]]
    zone = timezone(first.at.utcoffset() or timedelta())
    heading = (
        f"## {first.at:%H:%M}–{last.at:%H:%M} {zone} · conversation {session},"
        f" messages {first.id}–{last.id}"
    )
    said = [item for item in items if _is_said(item, lines)]
    rows: list[str] = []
    for title, group in groupby(said, lambda item: _heading(item.title)):
        rows += ["", f"### {title}"] if title else [""]
        rows += [_said(item, lines) for item in group]
    aside = [(one_line(text)[:MOST_ITEM], lines[i].id) for i in indexes for text in lines[i].aside]
    noted = [f"- {ASSISTANT}: {_rests(item, lines)}" for item in items if item not in said]
    noted += [f"- {text} [{id_}]" for text, id_ in aside if not forgotten.covers(text)][:MOST_ASIDE]
    if noted:
        rows += ["", f"### {NOT_SAID}", *noted]
    return Entry(day, heading, "\n".join(("", heading, *rows, "")))


def _is_said(item: Item, lines: Sequence[Line]) -> bool:
    """Whether people said it, and not the assistant: a note that rests on its words as well counts only
    as far as those who are cited have said what it tells; one on their words alone has nothing from
    the answers to them."""
    cited = [lines[index] for index in item.lines]
    who = {line.who for line in cited if line.said}
    own = "\n".join(line.text for line in lines if line.said and line.who in who)
    name = " ".join(who)
    if not who:
        return False
    if not all(line.said for line in cited):
        return not is_foreign(item.text, Heard(own, tainted=True), name=name, together=True)
    answers = "\n".join(_answer(lines, index) for index in item.lines)
    return untold(item.text, (own, name)).isdisjoint(telling(answers))


def _answer(lines: Sequence[Line], index: int) -> str:
    """What the assistant said after that line, until somebody spoke; shown to the model or not."""
    after = takewhile(lambda line: not line.said, lines[index + 1 :])
    return "\n".join("\n".join((line.text, *line.aside)) for line in after)


def _said(item: Item, lines: Sequence[Line]) -> str:
    return f"- **{_who(item, lines) or '?'}** {_rests(item, lines)}"


def _who(item: Item, lines: Sequence[Line]) -> str:
    """Who has said it."""
    who = dict.fromkeys(lines[index].who for index in item.lines if lines[index].said)
    return one_line(", ".join(who))


def _rests(item: Item, lines: Sequence[Line]) -> str:
    """The note with its messages, with which it is found and goes."""
    ids = ", ".join(str(lines[index].id) for index in item.lines)
    return f"{one_line(item.text)[:MOST_ITEM]} [{ids}]"


def _heading(title: str) -> str:
    """A title that cannot be taken for the heading of what nobody said."""
    plain = one_line(title).strip("#* ")[:80]
    return "" if is_aside(plain) else plain


def spans(text: str) -> list[Span]:
    """The messages that the entries of a day file stand for."""
    found = (_ENTRY.fullmatch(line.rstrip()) for line in text.split("\n"))
    return [
        Span(int(m[3]), int(m[4]), int(m[5]), m[1], _zone(m[2])) for m in found if m is not None
    ]


def _zone(offset: str | None) -> tzinfo | None:
    """That of a heading, as the end of an ISO time."""
    if offset is None:
        return None
    try:
        return datetime.fromisoformat(f"2000-01-01T00:00{offset or 'Z'}").tzinfo
    except ValueError:  # a hand wrote it
        return None


# What the night reads -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Note:
    """A line of a day file that facts may come from. `who` said it, empty where a hand wrote it;
    `line` counts from 0; `messages`: the ids of those that it rests on."""

    day: date
    line: int
    who: str
    text: str
    messages: tuple[int, ...] = ()


def notes(text: str, day: date) -> list[Note]:
    """All of a day file's, without what nobody said."""
    found: list[Note] = []
    source = True
    for number, raw in enumerate(text.split("\n")):
        line = raw.strip()
        if line.startswith("#"):
            source = not is_aside(line)
        elif line and source:
            said = _SAID.fullmatch(line)
            who, words = (said[1], said[2]) if said else ("", line.lstrip("-*+ "))
            ids = re.findall("[0-9]{1,18}", said[3] or "") if said else []
            found.append(Note(day, number, who, words, tuple(map(int, ids))))
    return found
