"""Escapes that keep a Markdown converter from swallowing characters of an answer.

telegramify-markdown drops raw HTML (`<script>` vanishes, `a<b and c>d` becomes `ad`), reads `$…$`
as mathematics, `||…||` as a hidden text and `~…~` as struck out; CommonMark drops link definitions,
and cells of a table that has no column for them. An answer means all of them as text. Only
backslashes are inserted (and in a table's empty cell a space).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pyromark

# What telegramify-markdown parses with, but no mathematics: then `$` is plain text for us.
OPTIONS = (
    pyromark.Options.ENABLE_TABLES
    | pyromark.Options.ENABLE_STRIKETHROUGH
    | pyromark.Options.ENABLE_TASKLISTS
)

Event = tuple[Any, Any]
Region = tuple[int, int]

_MAX_PASSES = 8  # an escape can uncover more to escape; deeper than this everything is escaped
_LINE_OPENS_BRACKET = re.compile(rb"^[ \t>*+\-0-9.)]*\[", re.MULTILINE)
_SIGNS = re.compile(r"\\[\s\S]|\$|\|{2,}")
_BARS = re.compile(rb"\\[\s\S]|\|")
_OPENERS = re.compile(r"\\[\s\S]|[<\[~]")


def literal(markdown: str) -> str:
    """The same text, in which HTML, mathematics, spoilers and unused definitions are plain text."""
    if not any(sign in markdown for sign in "<[$|~"):
        return markdown
    text = markdown
    events = _parse(text)
    for _ in range(_MAX_PASSES):
        offsets = {
            *_html(text, events),
            *_tildes(text, events),
            *_definitions(text, events),
            *_cells(text, events),
        }
        if not offsets:
            break
        text = _insert_backslashes(text, offsets)
        events = _parse(text)
    else:
        text = _OPENERS.sub(lambda match: _escaped(match.group()), text)
        events = _parse(text)
    return _escape_signs(text, events)


def _parse(text: str) -> tuple[Event, ...]:
    return tuple(pyromark.events_with_range(text, options=OPTIONS))


def _html(text: str, events: Iterable[Event]) -> Iterable[int]:
    """Byte offsets of the `<` that open raw HTML; of a block of HTML the first one only, since
    the rest of it may mean something else afterwards."""
    source = text.encode()
    for payload, place in events:
        start, end = place["start"], place["end"]
        if payload == {"Start": "HtmlBlock"} or "InlineHtml" in payload:
            yield source.index(b"<", start)
        elif _is_autolink(payload) and b"||" in source[start:end]:
            yield start


def _tildes(text: str, events: Iterable[Event]) -> Iterable[int]:
    """Byte offsets of single `~` that would strike out: they mean "about"."""
    source = text.encode()
    for payload, place in events:
        start, end = place["start"], place["end"]
        if payload == {"Start": "Strikethrough"} and source[start + 1 : start + 2] != b"~":
            yield from (start, end - 1)


def _is_autolink(payload: Any) -> bool:
    match payload:
        case {"Start": {"Link": {"link_type": "Autolink" | "Email"}}}:
            return True
        case _:
            return False


def _definitions(text: str, events: Iterable[Event]) -> Iterable[int]:
    """Byte offsets of the `[` that open a link definition which no link uses."""
    source = text.encode()
    opens = [match.end() - 1 for match in _LINE_OPENS_BRACKET.finditer(source)]
    if not opens:
        return
    shown = _merged(_shown(events))
    starts = [start for start, _ in shown]
    hidden = [at for at in opens if not _inside(at, starts, shown)]
    if not hidden:
        return
    used = set(_used_labels(events))
    found = pyromark.reference_definitions(text, options=OPTIONS).items()
    kept = {one["span"]["start"] for label, one in found if _label(label) in used}
    yield from (at for at in hidden if at not in kept)


def _cells(text: str, events: Iterable[Event]) -> Iterable[int]:
    """Byte offsets of the `|` after the last column of a row that has more cells than columns."""
    source = text.encode()
    cell_end = 0
    for payload, place in events:
        if payload == {"Start": "TableCell"}:
            cell_end = place["end"]
        elif payload == {"End": "TableRow"}:
            rest = source[cell_end : place["end"]].rstrip()
            if rest.strip(b" \t|"):
                closing = len(rest) - 1  # a bar that ends the row stays one
                signs = (match for match in _BARS.finditer(rest) if match.group() == b"|")
                yield from (cell_end + sign.start() for sign in signs if sign.start() < closing)


def _shown(events: Iterable[Event]) -> Iterable[Region]:
    """Where something of the source becomes visible."""
    for payload, place in events:
        match payload:
            case (
                {"Text": _}
                | {"Code": _}
                | {"Html": _}
                | {"InlineHtml": _}
                | {"TaskListMarker": _}
                | {"Start": {"Link": _} | {"Image": _} | {"CodeBlock": _} | {"Table": _}}
            ):
                yield place["start"], place["end"]
            case _:
                pass


def _merged(regions: Iterable[Region]) -> list[Region]:
    """Sorted and without overlaps."""
    merged: list[Region] = []
    for start, end in sorted(regions):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def _inside(at: int, starts: list[int], regions: list[Region]) -> bool:
    index = bisect_right(starts, at) - 1
    return index >= 0 and at < regions[index][1]


def _used_labels(events: Iterable[Event]) -> Iterable[str]:
    for payload, _ in events:
        match payload:
            case {"Start": {"Link": {"id": str(label)}} | {"Image": {"id": str(label)}}} if label:
                yield _label(label)
            case _:
                pass


def _label(label: str) -> str:
    return " ".join(label.casefold().split())


def _insert_backslashes(text: str, offsets: Iterable[int]) -> str:
    source = text.encode()
    bounds = [0, *sorted(offsets), len(source)]
    return b"\\".join(source[a:b] for a, b in pairwise(bounds)).decode()


def _escape_signs(text: str, events: Iterable[Event]) -> str:
    """Escape `$` and `||` wherever they are neither code nor part of a link in angle brackets."""
    source = text.encode()
    parts: list[str] = []
    done = 0
    for start, end, in_table in _regions(events, len(source)):
        if start > done:
            parts.append(_signs_as_text(source[done:start].decode(), in_table=in_table))
        parts.append(source[max(done, start) : end].decode())
        done = max(done, end)
    return "".join(parts)


def _regions(events: Iterable[Event], size: int) -> Iterable[tuple[int, int, bool]]:
    """Regions to leave alone, and empty ones where a table begins or ends: (start, end, whether
    what comes before lies in a table)."""
    table_end = 0
    for payload, place in events:
        start, end = place["start"], place["end"]
        if table_end and start >= table_end:
            yield table_end, table_end, True
            table_end = 0
        match payload:
            case {"Start": {"Table": _}}:
                yield start, start, False
                table_end = end
            case {"Code": _} | {"Start": {"CodeBlock": _}}:
                yield start, end, bool(table_end)
            case _ if _is_autolink(payload):
                yield start, end, bool(table_end)
            case _:
                pass
    if table_end:
        yield table_end, table_end, True
    yield size, size, False


def _signs_as_text(text: str, *, in_table: bool) -> str:
    def replace(match: re.Match[str]) -> str:
        found = match.group()
        if in_table and found.startswith("|"):
            return " ".join(found)  # empty cells
        return _escaped(found)

    return _SIGNS.sub(replace, text)


def _escaped(found: str) -> str:
    if found.startswith("\\"):
        return found
    return "".join(f"\\{sign}" for sign in found)
