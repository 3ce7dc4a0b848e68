"""What of a conversation goes into the day files, and how it stands there. Pure.

Only people's own words, and the assistant's as long as nothing foreign is in its context, go to the
model that takes the notes: what tools, pages, pictures, files, quotes and forwards said cannot be
laundered into a fact by a model that has never read it. It is listed under a heading of its own.

    ## 14:05–16:20 · conversation 3, messages 12–48

    ### Trip to Rome
    - **Ana** prefers aisle seats [12]

    ### Not said by people
    - assistant: The train leaves at nine [13]
    - assistant: The page says … [14]

The heading names the messages, so that an entry is known again when a crash came before its mark.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, tzinfo
from itertools import groupby, takewhile
from typing import Final

from agent.messages import ImageBlock, Message, TextBlock, ToolResultBlock
from memory.facts import one_line
from memory.provenance import Heard, is_foreign
from memory.quoting import ATTACHED, QUOTE, QUOTED
from memory.telling import telling, untold
from memory.tombstones import Forgotten

NOT_SAID: Final = "Not said by people"
NOTHING: Final = "NOTHING"
ASSISTANT: Final = "assistant"
DIGEST_CHARACTERS = 500  # of one message in a digest; the whole text stays in the database
ASIDE_CHARACTERS = 200  # of what is no source of facts
MOST_ASIDE = 10  # such lines in one entry, beside the notes on what the assistant said
MOST_ITEM = 400  # characters of one note

_SPEAKER = re.compile(r"\[([^\[\]\n]{1,32})#[0-9]+\] ")
_ITEM = re.compile(r"[-*•]\s*\[([0-9,;\s–-]+)\]\s*(\S.*)")
_TITLE = re.compile(r"#+\s+(\S.*)")
_ENTRY = re.compile(
    r"## ([0-9]{2}:[0-9]{2})–[0-9]{2}:[0-9]{2}"
    r" · conversation ([0-9]{1,18}), messages ([0-9]{1,18})–([0-9]{1,18})"
)


@dataclass(frozen=True, slots=True)
class Unflushed:
    """A stored message that is in no day file yet. `conversation`: where its conversation begins (the
    row after the newest /new). `own_words`: false where somebody else wrote the question; `overheard`:
    its run was shown what others had said in the chat."""

    id: int
    conversation: int
    message: Message
    at: datetime
    own_words: bool = True
    overheard: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """What one message contributes. `text` goes to the model, and `aside` does not; `said`: a person
    wrote `text`."""

    id: int
    at: datetime
    who: str
    text: str = ""
    said: bool = False
    aside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines of a session, oldest first. `foreign`: the conversation that holds foreign words by its
    end, None for none."""

    lines: tuple[Line, ...]
    foreign: int | None

    @property
    def last(self) -> int:
        """The newest message's row id."""
        return self.lines[-1].id


@dataclass(frozen=True, slots=True)
class Item:
    """A note: below which title, what, and on which lines it rests (their indexes in the batch)."""

    title: str
    text: str
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """What is appended to a day's file. `heading` is the line that it is known by."""

    day: date
    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """The messages that an entry stands for. `began`: the time of the first, as `14:05`."""

    session: int
    first: int
    last: int
    began: str


def batch(
    messages: Sequence[Unflushed],
    person: str,
    zone: tzinfo,
    *,
    foreign: int | None = None,
    own_tools: Collection[str] = (),
) -> Batch:
    """The messages as lines. `person`: who speaks where no line says so (a private chat); `foreign`:
    the conversation that held foreign words before; `own_tools`: tools that tell nothing foreign."""
    lines: list[Line] = []
    calls: dict[str, str] = {}
    for stored in messages:
        tainted = stored.overheard or stored.conversation == foreign
        reader = _Reader(calls, own_tools, tainted)
        text = reader.read(stored)
        if reader.tainted:
            foreign = stored.conversation
        said = stored.message.role == "user"
        who, text = _spoken(text, person) if said else (ASSISTANT, text)
        at = stored.at.astimezone(zone)
        lines.append(Line(stored.id, at, who, text, said and bool(text), tuple(reader.aside)))
    return Batch(tuple(lines), foreign)


@dataclass(slots=True)
class _Reader:
    """Parts one message. `tainted`: foreign words are in the conversation."""

    calls: dict[str, str]
    own_tools: Collection[str]
    tainted: bool
    aside: list[str] = field(default_factory=list[str])

    def read(self, stored: Unflushed) -> str:
        message = stored.message
        self.calls.update({call.id: call.name for call in message.tool_uses})
        for block in message.blocks:
            match block:
                case ToolResultBlock():
                    self._result(block)
                case ImageBlock():
                    self._foreign("a picture was sent")
                case _:
                    pass
        words = [block.text for block in message.blocks if isinstance(block, TextBlock)]
        if message.role == "user":
            return "\n".join(filter(None, (self._own(text, stored.own_words) for text in words)))
        said = "\n".join(words).strip()
        if said and self.tainted:
            self.aside.append(f"{ASSISTANT}: {_cut(said, ASIDE_CHARACTERS)}")
            return ""
        return said

    def _result(self, result: ToolResultBlock) -> None:
        name = self.calls.get(result.tool_use_id, "?")
        if name not in self.own_tools:
            self._foreign(f"the tool `{one_line(name)}` was used")

    def _own(self, text: str, own_words: bool) -> str:
        if not own_words:
            self._foreign(f"passed on: {_cut(text, ASIDE_CHARACTERS)}")
            return ""
        if text.startswith(ATTACHED):
            self._foreign(f"file: {_cut(text, ASIDE_CHARACTERS)}")
            return ""
        for quote in QUOTE.findall(text):
            words = quote.removeprefix(QUOTED).replace("\n>", "\n")
            self._foreign(f"quoted: {_cut(words, ASIDE_CHARACTERS)}")
        return QUOTE.sub("", text).strip()

    def _foreign(self, what: str) -> None:
        self.tainted = True
        self.aside.append(what)


def _spoken(text: str, person: str) -> tuple[str, str]:
    """Who says what: in a group each question begins with its speaker."""
    found = _SPEAKER.match(text)
    return (found[1], text[found.end() :].strip()) if found else (person, text)


# What the model writes ------------------------------------------------------------------------------


def read_items(answer: str, count: int) -> list[Item] | None:
    """The notes of a model that was shown `count` lines, numbered from 1; those without a line to rest
    on are left out. None for what is no list of notes."""
    if answer.strip().strip("`*.\"' \n").upper() == NOTHING:
        return []
    items: list[Item] = []
    title = ""
    for raw in answer.splitlines():
        if (heading := _TITLE.fullmatch(raw.strip())) is not None:
            title = heading[1]
        elif (found := _ITEM.fullmatch(raw.strip())) is not None:
            cited = tuple(n - 1 for n in _numbers(found[1]) if 1 <= n <= count)
            if cited:
                items.append(Item(title, found[2], cited))
    return items or None


def _numbers(text: str) -> Iterator[int]:
    for part in re.split(r"[,;\s]+", text):
        ends = [int(end) for end in re.split("[–-]", part) if end and len(end) < 7]
        if len(ends) == 2 and ends[0] <= ends[1] < ends[0] + 100:
            yield from range(ends[0], ends[1] + 1)
        else:
            yield from ends


def digest(lines: Sequence[Line]) -> list[Item]:
    """What stands for a model's notes: people's own words, one by one."""
    return [
        Item("", _cut(line.text, DIGEST_CHARACTERS), (index,))
        for index, line in enumerate(lines)
        if line.said
    ]


# Entries --------------------------------------------------------------------------------------------


def entries(
    lines: Sequence[Line], items: Sequence[Item], session: int, forgotten: Forgotten
) -> list[Entry]:
    """What goes into the files, the oldest day first: each note to the day of the first line that it
    rests on. What says something `forgotten` is left out; a day without notes has no entry."""
    made: list[Entry] = []
    for day, group in groupby(range(len(lines)), _days(lines).__getitem__):
        indexes = list(group)
        here = [item for item in items if item.lines[0] in indexes]
        here = [item for item in here if not forgotten.covers(item.text)]
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
    heading = (
        f"## {first.at:%H:%M}–{last.at:%H:%M} · conversation {session},"
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
        return not is_foreign(item.text, Heard(own, tainted=True), name=name)
    answers = "\n".join(_answer(lines, index) for index in item.lines)
    return untold(item.text, (own, name)).isdisjoint(telling(answers))


def _answer(lines: Sequence[Line], index: int) -> str:
    """What the assistant said after that line, until somebody spoke; shown to the model or not."""
    after = takewhile(lambda line: not line.said, lines[index + 1 :])
    return "\n".join("\n".join((line.text, *line.aside)) for line in after)


def _said(item: Item, lines: Sequence[Line]) -> str:
    who = dict.fromkeys(lines[index].who for index in item.lines if lines[index].said)
    return f"- **{one_line(', '.join(who)) or '?'}** {_rests(item, lines)}"


def _rests(item: Item, lines: Sequence[Line]) -> str:
    """The note with its messages, with which it is found and goes."""
    ids = ", ".join(str(lines[index].id) for index in item.lines)
    return f"{one_line(item.text)[:MOST_ITEM]} [{ids}]"


def _heading(title: str) -> str:
    """A title that cannot be taken for the heading of what nobody said."""
    plain = one_line(title).strip("#* ")[:80]
    return "" if plain.casefold() == NOT_SAID.casefold() else plain


def spans(text: str) -> list[Span]:
    """The messages that the entries of a day file stand for."""
    found = (_ENTRY.fullmatch(line.rstrip()) for line in text.split("\n"))
    return [Span(int(m[2]), int(m[3]), int(m[4]), m[1]) for m in found if m is not None]


# What the night reads -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Note:
    """A line of a day file that facts may come from. `who` said it, empty where a hand wrote it;
    `line` counts from 0."""

    day: date
    line: int
    who: str
    text: str


_SAID = re.compile(r"- \*\*(.{1,200}?)\*\* (\S.*?)(?: \[[0-9, ]+\])?")


def notes(text: str, day: date) -> list[Note]:
    """All of a day file's, without what nobody said."""
    found: list[Note] = []
    source = True
    for number, raw in enumerate(text.split("\n")):
        line = raw.strip()
        if line.startswith("#"):
            source = line.strip("# ").casefold() != NOT_SAID.casefold()
        elif line and source:
            said = _SAID.fullmatch(line)
            who, words = (said[1], said[2]) if said else ("", line.lstrip("-*+ "))
            found.append(Note(day, number, who, words))
    return found


def without(line: Line) -> Line:
    """The line as the night's search for forgotten words leaves it: nothing for a model to read."""
    return replace(line, text="", said=False, aside=())


def _cut(text: str, most: int) -> str:
    words = one_line(text)
    return words if len(words) <= most else words[:most] + " …"
