"""A conversation as Markdown for people: speaker, time, text. No ids, and no secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import tzinfo

from agent.messages import ImageBlock, Message, TextBlock
from bridge.texts import Say
from channels.base import OutboundDocument
from memory.text.quoting import SPEAKER
from memory.transcripts import Said

MOST_CHARACTERS = 250_000  # of one document: a megabyte at most, whatever the script


@dataclass(frozen=True, slots=True)
class Words:
    """What stands in an export beside what was said. `asker`: whose questions those without a name
    are; `clean` takes secrets out."""

    say: Say
    asker: str
    zone: tzinfo
    clean: Callable[[str], str]


def documents(said: Iterable[Said], words: Words) -> tuple[OutboundDocument, ...]:
    """The conversation, of a long one several; none where nothing was said."""
    names = _Names()
    pieces = [piece for one in said if (piece := _piece(one, words, names))]
    if not pieces:
        return ()
    texts, room = [""], MOST_CHARACTERS
    for piece in pieces:
        for start in range(0, len(piece), MOST_CHARACTERS):
            part = piece[start : start + MOST_CHARACTERS]
            if len(part) > room:
                texts.append("")
                room = MOST_CHARACTERS
            texts[-1] += part
            room -= len(part)
    if len(texts) == 1:
        return (OutboundDocument("conversation.md", texts[0]),)
    return tuple(OutboundDocument(f"conversation-{n}.md", text) for n, text in enumerate(texts, 1))


class _Names:
    """Names without the numbers of the conversation. A second person of the same name is told apart."""

    def __init__(self) -> None:
        self._numbers: dict[str, list[str]] = {}

    def of(self, name: str, number: str) -> str:
        numbers = self._numbers.setdefault(name, [])
        if number not in numbers:
            numbers.append(number)
        place = numbers.index(number) + 1
        return name if place == 1 else f"{name} ({place})"


def _piece(said: Said, words: Words, names: _Names) -> str:
    """One message; what tools were asked and gave is nobody's saying."""
    message, say = said.message, words.say
    speaker = say("export_bot") if message.role == "assistant" else words.asker
    texts: list[str] = []
    for block in message.blocks:
        if isinstance(block, ImageBlock):
            texts.append(say("export_picture"))
        elif isinstance(block, TextBlock):
            texts.append(block.text)
    if message.role == "user" and (named := _named(message, names)):
        speaker, texts[-1] = named
    text = words.clean("\n\n".join(text.strip() for text in texts if text.strip()))
    at = f"{said.at.astimezone(words.zone):%Y-%m-%d %H:%M}"
    return f"**{words.clean(speaker)}**, {at}\n\n{text}\n\n" if text else ""


def _named(message: Message, names: _Names) -> tuple[str, str] | None:
    """In groups a question begins with its speaker: their name, and the question."""
    last = message.blocks[-1] if message.blocks else None
    found = SPEAKER.match(last.text) if isinstance(last, TextBlock) else None
    if found is None or not isinstance(last, TextBlock):
        return None
    return names.of(found[1], found[2]), last.text[found.end() :]
