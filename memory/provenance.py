"""Whose words a fact is made of: what a page, a tool, a quote or a forward said is not taken for what a
person said. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from agent.messages import Message, TextBlock, ToolResultBlock
from memory.flush import ATTACHED, QUOTED
from memory.words import marks

_QUOTE = re.compile(rf"{re.escape(QUOTED)}\n(?:>[^\n]*(?:\n|$))*")

MOST_FOREIGN = 0.5  # of a fact's words that only others have said


@dataclass(frozen=True, slots=True)
class Heard:
    """What a person said in a conversation, and what others did: tools, files, quotes, forwards."""

    own: str = ""
    others: str = ""


Hear = Callable[[], Heard]


def heard(messages: Iterable[tuple[Message, bool]], own_tools: Collection[str]) -> Heard:
    """What was said in messages, each with whether its question is somebody's own words. `own_tools`:
    tools that tell nothing that others have said. What the assistant said is neither's."""
    own: list[str] = []
    others: list[str] = []
    calls: dict[str, str] = {}
    for message, own_words in messages:
        calls |= {call.id: call.name for call in message.tool_uses}
        for block in message.blocks:
            match block:
                case TextBlock(text) if message.role == "user":
                    if not own_words or text.startswith(ATTACHED):
                        others.append(text)
                        continue
                    own.append(_QUOTE.sub(" ", text))
                    others += _QUOTE.findall(text)
                case ToolResultBlock() if calls.get(block.tool_use_id) not in own_tools:
                    others += [part.text for part in block.content if isinstance(part, TextBlock)]
                case _:
                    pass
    return Heard("\n".join(own), "\n".join(others))


def is_foreign(fact: str, heard: Heard) -> bool:
    """Whether most of what the fact says was said by others and not by the person."""
    said = marks(fact)
    borrowed = said & marks(heard.others) - marks(heard.own)
    return bool(said) and len(borrowed) > MOST_FOREIGN * len(said)
