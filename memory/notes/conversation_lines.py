"""Messages of a conversation as the lines that notes are taken of: what people said, and what has to
stand aside. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import Final

from agent.messages import ImageBlock, Message, TextBlock, ToolResultBlock
from memory.markdown.facts import one_line
from memory.text.quoting import ATTACHED, QUOTE, QUOTED, SPEAKER

ASSISTANT: Final = "assistant"
ASIDE_CHARACTERS = 200  # of what is no source of facts


@dataclass(frozen=True, slots=True)
class Unflushed:
    """A stored message that is in no day file yet. `conversation`: where its conversation begins (the
    row after the newest /new). `own_words`: false where somebody else wrote the question; `overheard`:
    its run was shown what others had said in the chat; `at`: when it was said."""

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
            self.aside.append(f"{ASSISTANT}: {cut(said, ASIDE_CHARACTERS)}")
            return ""
        return said

    def _result(self, result: ToolResultBlock) -> None:
        name = self.calls.get(result.tool_use_id, "?")
        if name not in self.own_tools:
            self._foreign(f"the tool `{one_line(name)}` was used")

    def _own(self, text: str, own_words: bool) -> str:
        if not own_words:
            self._foreign(f"passed on: {cut(text, ASIDE_CHARACTERS)}")
            return ""
        if text.startswith(ATTACHED):
            self._foreign(f"file: {cut(text, ASIDE_CHARACTERS)}")
            return ""
        for quote in QUOTE.findall(text):
            words = quote.removeprefix(QUOTED).replace("\n>", "\n")
            self._foreign(f"quoted: {cut(words, ASIDE_CHARACTERS)}")
        return QUOTE.sub("", text).strip()

    def _foreign(self, what: str) -> None:
        self.tainted = True
        self.aside.append(what)


def _spoken(text: str, person: str) -> tuple[str, str]:
    """Who says what: in a group each question begins with its speaker."""
    found = SPEAKER.match(text)
    return (found[1], text[found.end() :].strip()) if found else (person, text)


def without(line: Line) -> Line:
    """The line as the night's search for forgotten words leaves it: nothing for a model to read."""
    return replace(line, text="", said=False, aside=())


def cut(text: str, most: int) -> str:
    """As one line of at most `most` characters and a sign that it was cut."""
    words = one_line(text)
    return words if len(words) <= most else words[:most] + " …"
