"""Whose words a fact is made of: what a page, a tool, a quote or a forward said is not taken for what a
person said. Pure.

Once foreign words are in a conversation, until the next /new, nobody can tell by a fact's words
alone whether a page has had it put so: then a fact is only what the person themselves has said in
these words.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from agent.messages import ImageBlock, Message, TextBlock, ToolResultBlock
from memory.text.quoting import ATTACHED, QUOTE
from memory.text.telling import telling, turned, untold

_END = re.compile(
    r"(?<=[.!?;])(?<!\b\w\.)(?<!\b\w\w\.)[\s\"'»”)]+|(?<=[。！？；])"
)  # no end: Dr. Koch
_ITEM = re.compile(r"\s*(?:[-*•]|[0-9]{1,2}[.)])\s")
_OWNER = re.compile(r"(\w+)['’]s\s+(\w+)")
_ASKS = re.compile(r"[?？][\s\"'»”]*$")
_TO_KEEP = re.compile(
    r"\b(?:remember|memori[sz]e|not(?:e|ier)|save|store|keep|merk|speicher|behalt|retien|souvien"
    r"|enregistr|recuerd|guard|anot|ricord|salv)|[记記]|保存|覚え",
    re.IGNORECASE,
)

Whose = Literal["own", "people", "foreign"]
"""Of a question: the person's own words, another person's, or passed on."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a person said in a conversation, one message a line. `tainted`: tools, files, pictures,
    quotes or forwards are in it too. `people`: what others said in it."""

    own: str = ""
    tainted: bool = False
    people: str = ""


Hear = Callable[[], Awaitable[Heard]]


def heard(messages: Iterable[tuple[Message, Whose]], own_tools: Collection[str]) -> Heard:
    """What was said in messages, each with whose its question is. `own_tools`: tools that tell nothing
    that others have said. What the assistant said is nobody's."""
    own: list[str] = []
    people: list[str] = []
    tainted = False
    calls: dict[str, str] = {}
    for message, whose in messages:
        calls |= {call.id: call.name for call in message.tool_uses}
        for block in message.blocks:
            match block:
                case TextBlock(text) if message.role == "user":
                    said = "" if text.startswith(ATTACHED) else QUOTE.sub(" ", text)
                    tainted = tainted or whose == "foreign" or said != text
                    if whose == "own":
                        own.append(_in_one_line(said))
                    elif whose == "people":
                        people.append(said)
                case ToolResultBlock() if calls.get(block.tool_use_id) not in own_tools:
                    tainted = True
                case ImageBlock():
                    tainted = True
                case _:
                    pass
    return Heard("\n".join(own), tainted, "\n".join(people))


def is_foreign(fact: str, heard: Heard, *, name: str = "", together: bool = False) -> bool:
    """Whether foreign words are in the conversation and the person, called `name`, has not said what
    the fact says: each word that tells something, denied where they deny it. Not `together`: each
    sentence of it in one of theirs that is no question, since words of several may be put together to
    what nobody has said; all in one message.
    Where only other people have spoken too: whether a word of it is theirs and not the person's."""
    sources = [*heard.own.split("\n"), name]
    missing = untold(fact, sources)
    if not heard.tainted:
        return bool(missing & telling(heard.people))
    if missing or turned(fact, sources):
        return True
    parts = [part for part in sentences(fact) if telling(part)]
    return not together and all(
        any(_is_unsaid(part, _stated(message), name) for part in parts) for message in sources[:-1]
    )


def _is_unsaid(fact: str, sentences: Iterable[str], name: str) -> bool:
    return all(
        untold(fact, [each, name]) or turned(fact, [each, name]) or _of_another(fact, each, name)
        for each in sentences
    )


def _of_another(fact: str, line: str, name: str) -> bool:
    """Whether the line says of what somebody else has (`Eve's account`) what the fact says without
    naming them."""
    told = telling(fact)
    return any(
        telling(found[2]) & told and telling(found[1]) - told - telling(name)
        for found in _OWNER.finditer(line)
    )


def _stated(message: str) -> list[str]:
    """Its sentences without the questions: who asks whether something is so does not say that it is. A
    question that asks to keep something says what."""
    parts = sentences(message)
    return [part for part in parts if not _ASKS.search(part) or _TO_KEEP.search(part)]


def sentences(text: str) -> list[str]:
    """Its sentences, with what ends them."""
    return [part for part in _END.split(text) if part]


def _in_one_line(message: str) -> str:
    """Each line a sentence of its own, but for those of a list, which go on with what stands before."""
    joined = ""
    for line in message.splitlines():
        goes_on = not joined or _ITEM.match(line) or joined.endswith((":", "："))
        joined += f"{'' if goes_on else ' ;'} {line.strip()}"
    return joined.strip()
