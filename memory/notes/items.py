"""The notes that a model takes of a conversation's lines, and what stands for them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from memory.notes.conversation_lines import Line, cut

NOTHING: Final = "NOTHING"
DIGEST_CHARACTERS = 500  # of one message in a digest; the whole text stays in the database

_ITEM = re.compile(r"[-*•]\s*\[([0-9,;\s–-]+)\]\s*(\S.*)")
_TITLE = re.compile(r"#+\s+(\S.*)")


@dataclass(frozen=True, slots=True)
class Item:
    """A note: below which title, what, and on which lines it rests (their indexes in the batch)."""

    title: str
    text: str
    lines: tuple[int, ...]


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
        Item("", cut(line.text, DIGEST_CHARACTERS), (index,))
        for index, line in enumerate(lines)
        if line.said
    ]
