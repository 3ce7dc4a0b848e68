"""Texts in pieces that are found by themselves: an entry of a day file, lines of a message. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory.markdown.facts import parse
from memory.text.words import Phrase, searched

MOST_PIECE = 1_500  # characters, unless one line is longer
WINDOW = 240  # characters of a text that are looked at together for an excerpt


@dataclass(frozen=True, slots=True)
class Piece:
    """`lines` lines of a text from `line`, counted from 0, and their words (`searched`)."""

    line: int
    lines: int
    text: str
    words: str


def pieces(lines: Sequence[str], first: int = 0) -> Iterator[Piece]:
    """The lines in pieces: a heading begins one, and so does a line that would make one too long.
    `first`: the number of the first line. Blank lines around a piece and pieces without words are
    left out."""
    start, size = 0, 0
    for index, line in enumerate(lines):
        if index > start and (line.startswith("#") or size + len(line) > MOST_PIECE):
            yield from _piece(lines, start, index, first)
            start, size = index, 0
        size += len(line) + 1
    yield from _piece(lines, start, len(lines), first)


def entry_pieces(text: str) -> Iterator[Piece]:
    """`MEMORY.md`: each line by itself, of an entry what it says."""
    for index, line in enumerate(parse(text)):
        said = line.fact.text if line.fact is not None else line.raw
        found = searched(said)
        if found:
            yield Piece(index, 1, said, found)


def excerpt(text: str, phrases: Sequence[Phrase], most: int) -> str:
    """At most about `most` characters of the text, around the first of the phrases."""
    if len(text) <= most:
        return text
    at = next(
        (
            start
            for start in range(0, len(text), WINDOW // 2)
            if any(phrase.stands_in(searched(text[start : start + WINDOW])) for phrase in phrases)
        ),
        0,
    )
    start = max(0, min(at - (most - WINDOW) // 2, len(text) - most))
    cut = text[start : start + most].strip()
    return f"{'… ' if start else ''}{cut}{' …' if start + most < len(text) else ''}"


def _piece(lines: Sequence[str], start: int, end: int, first: int) -> Iterator[Piece]:
    while start < end and not lines[start].strip():
        start += 1
    while start < end and not lines[end - 1].strip():
        end -= 1
    text = "\n".join(lines[start:end])
    found = searched(text)
    if found:
        yield Piece(first + start, end - start, text, found)
