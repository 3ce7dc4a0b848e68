"""Cutting long answers into the messages that a platform takes.

Parts joined give the source again: nothing is dropped at a cut. A cut lies at a paragraph, else a
line, else a word, as long as the part is at least half full; else between two characters as a
person sees them (never inside an emoji sequence, a flag, a keycap or a letter with its marks).
Both functions take time linear in the length of the text.
"""

from __future__ import annotations

import unicodedata
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

_ZERO_WIDTH_JOINER = "\u200d"
_LEAST_FILL = 2  # a cut at a paragraph, line or word leaves the part at least 1/2 full


@dataclass(frozen=True, slots=True)
class Span:
    """A formatted stretch of a text; `offset` and `length` count UTF-16 code units.

    `type` is the platform's word. `url` belongs to links, `language` to code blocks.
    """

    type: str
    offset: int
    length: int
    url: str | None = None
    language: str | None = None

    @property
    def end(self) -> int:
        """The unit behind the last one."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class Part:
    """One message: a text, and the spans in it with offsets of their own."""

    text: str
    spans: tuple[Span, ...] = ()


def units(text: str) -> int:
    """The length in UTF-16 code units, which is what Telegram counts."""
    if text.isascii():
        return len(text)
    return len(text) + sum(character > "\uffff" for character in text)


def split(
    text: str, spans: Sequence[Span], *, limit_units: int = 4096, max_spans: int = 100
) -> list[Part]:
    """Cut into parts of at most `limit_units` UTF-16 units and `max_spans` spans.

    A span that is cut goes on in the next part with its url and language. Only if more than
    `max_spans` spans cover one character are the innermost left out. `limit_units` is at least 2;
    an empty text gives no part. A part may be blank when the text has that much white space.
    """
    waiting = deque(sorted(spans, key=lambda span: (span.offset, -span.length)))
    open_spans: list[Span] = []
    parts: list[Part] = []
    start, start_unit = 0, 0
    while start < len(text):
        most = min(limit_units, _room_for_spans(open_spans, waiting, start_unit, max_spans))
        end = _cut(text, start, _reach(text, start, most))
        piece = text[start:end]
        end_unit = start_unit + units(piece)
        while waiting and waiting[0].offset < end_unit:
            open_spans.append(waiting.popleft())
        inside = tuple(_clip(span, start_unit, end_unit) for span in open_spans[:max_spans])
        parts.append(Part(piece, tuple(span for span in inside if span.length > 0)))
        open_spans = [span for span in open_spans if span.end > end_unit]
        start, start_unit = end, end_unit
    return parts


def _room_for_spans(
    open_spans: Sequence[Span], waiting: deque[Span], start_unit: int, max_spans: int
) -> int:
    """How many units a part that begins at `start_unit` may have before it has too many spans."""
    index = max_spans - len(open_spans)
    if 0 <= index < len(waiting):
        distance = waiting[index].offset - start_unit
        if distance > 0:
            return distance
        return 2  # more spans than allowed on one character
    return 1 << 62


def _reach(text: str, start: int, most_units: int) -> int:
    """The furthest index so that the text from `start` has at most `most_units` units."""
    window = text[start : start + most_units]
    if window.isascii():
        return start + len(window)
    used = 0
    for index, character in enumerate(window):
        used += 2 if character > "\uffff" else 1
        if used > most_units:
            return start + max(index, 1)
    return start + len(window)


def _cut(text: str, start: int, reach: int) -> int:
    """Where the part that begins at `start` ends: at `reach` at the latest."""
    if reach >= len(text):
        return len(text)
    least = start + max(1, (reach - start) // _LEAST_FILL)
    for separator in ("\n\n", "\n"):
        found = text.rfind(separator, least - 1, reach)
        if found >= 0 and _between_characters(text, found + len(separator), start):
            return found + len(separator)
    for index in range(reach, least - 1, -1):
        if text[index - 1].isspace() and _between_characters(text, index, start):
            return index
    for index in range(reach, least - 1, -1):
        if _between_characters(text, index, start):
            return index
    return reach


def _between_characters(text: str, index: int, start: int) -> bool:
    """Whether a person sees the end of a character just before `index`; `start` is the last cut."""
    before, after = text[index - 1], text[index]
    if after < "\u0300":  # plain letters and signs; only a line break can belong together here
        return before != _ZERO_WIDTH_JOINER and not (before == "\r" and after == "\n")
    if before == _ZERO_WIDTH_JOINER or _continues(after):
        return False
    if _is_regional(after) and _is_regional(before):
        return _regional_run(text, index, start) % 2 == 0
    return True


def _continues(character: str) -> bool:
    """Marks, variation selectors, joiners, skin tones, keycaps and the tags of regional flags."""
    return (
        character == _ZERO_WIDTH_JOINER
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or "\U000e0020" <= character <= "\U000e007f"
        or unicodedata.category(character).startswith("M")
    )


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _regional_run(text: str, index: int, start: int) -> int:
    """How many regional indicators stand directly before `index`, which tells how they pair."""
    first = index
    while first > start and _is_regional(text[first - 1]):
        first -= 1
    return index - first


def _clip(span: Span, start_unit: int, end_unit: int) -> Span:
    offset = max(span.offset, start_unit)
    length = min(span.end, end_unit) - offset
    return replace(span, offset=offset - start_unit, length=length)
