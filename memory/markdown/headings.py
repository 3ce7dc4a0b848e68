"""Headings of a day's file, and which of them have nothing below them any more. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

NOT_SAID: Final = "Not said by people"
_HEADING = re.compile(r"(#{2,6})\s")  # a title of the whole file is somebody's own, and stays


def is_aside(heading: str) -> bool:
    """Whether what stands below it was not said by people."""
    return heading.strip("# ").casefold() == NOT_SAID.casefold()


def is_title(line: str) -> bool:
    """Whether it names an event (`memory.notes.flush`): what it says a note may say too."""
    return line.startswith("###") and not is_aside(line)


@dataclass(slots=True)
class _Part:
    """Below a heading of that level, which is the line `at` of those that are kept."""

    level: int
    at: int
    lost: bool = False
    holds: bool = False


def without(lines: Sequence[str], gone: Collection[int]) -> list[int]:
    """The numbers, from 0, of a file's lines but those that are `gone`, and but headings below which
    nothing is left of what there was, with the empty lines that follow them."""
    kept: list[int] = []
    parts = [_Part(0, 0)]

    def close(level: int) -> None:
        while parts[-1].level >= level:
            part = parts.pop()
            emptied = part.lost and not part.holds
            if emptied:
                del kept[part.at :]
            parts[-1].lost |= emptied
            parts[-1].holds |= part.holds

    for number, line in enumerate(lines):
        found = _HEADING.match(line)
        if found is not None:
            close(len(found[1]))
        if number in gone:
            parts[-1].lost = True
        elif found is not None:
            parts.append(_Part(len(found[1]), len(kept)))
            kept.append(number)
        else:
            parts[-1].holds |= bool(line.strip())
            kept.append(number)
    close(1)
    return kept
