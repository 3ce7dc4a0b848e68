"""Whose words a fact is made of: what a page, a tool, a quote or a forward said is not taken for what a
person said. Pure.

Once foreign words are in a conversation, until the next /new, nobody can tell by a fact's words
alone whether a page has had it put so: then a fact is only what the person themselves has said in
these words.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from agent.messages import ImageBlock, Message, TextBlock, ToolResultBlock
from memory.quoting import ATTACHED, QUOTE
from memory.telling import telling, turned, untold

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
                        own.append(" ; ".join(said.splitlines()))
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
    the fact says: each word that tells something, denied where they deny it. Not `together`: in one
    message, since words of several may be put together to what nobody has said. Where only other
    people have spoken too: whether a word of it is theirs and not the person's."""
    sources = [*heard.own.split("\n"), name]
    missing = untold(fact, sources)
    if not heard.tainted:
        return bool(missing & telling(heard.people))
    if missing or turned(fact, sources):
        return True
    return not together and all(
        untold(fact, [line, name]) or turned(fact, [line, name]) for line in sources[:-1]
    )
