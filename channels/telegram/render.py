"""Markdown to text and spans: nothing can fail to parse, and nothing is left out."""

from __future__ import annotations

import logging
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from telegramify_markdown import convert
from telegramify_markdown.config import RenderConfig
from telegramify_markdown.entity import MessageEntity

from channels.chunking import Part, Span, units
from channels.telegram.escape import literal
from channels.text import is_visible, printable, spelled_out, whole

log = logging.getLogger(__name__)

_CODE = frozenset({"code", "pre"})
_QUOTES = frozenset({"blockquote", "expandable_blockquote"})
_STYLES = frozenset({"bold", "italic", "underline", "strikethrough"})
_NOT_IN_A_URL = re.compile(r"[\s\x00-\x1f]")


def _config() -> RenderConfig:
    """The library's defaults without pictures in front of headings."""
    config = RenderConfig.isolated()
    symbols = config.markdown_symbol
    symbols.heading_level_1 = symbols.heading_level_2 = ""
    symbols.heading_level_3 = symbols.heading_level_4 = ""
    symbols.unordered_list_item = "•"
    symbols.task_completed, symbols.task_uncompleted = "☑", "☐"
    return config


def render(markdown: str) -> Part:
    """The text as Telegram shows it, and its spans, valid by Telegram's rules. Never raises.

    No visible character is lost; links that Telegram would refuse are written out. What renders to
    nothing (a link without a text) is shown as it was written, and what nobody would see is spelled
    out. Only white space alone gives a blank text.
    """
    source = _clean(markdown)
    if not is_visible(source):
        return Part(spelled_out(whole(markdown)))
    try:
        text, entities = convert(literal(source), latex_escape=False, config=_config())
    except Exception as error:  # noqa: BLE001 - whatever a parser does, the answer goes out
        log.warning("Markdown of %d characters is sent as it is: %s", len(source), type(error))
        return Part(source.rstrip())
    if not is_visible(text):
        return Part(source.rstrip())
    part = _write_out_links(text, entities)
    text = part.text.rstrip()
    return Part(text, _valid(part.spans, units(text)))


def _clean(markdown: str) -> str:
    """Line ends as `\\n`, no other control characters than tabs, pairs of surrogates joined, lone
    ones replaced."""
    return whole(printable(markdown.replace("\r\n", "\n").replace("\r", "\n")))


def _write_out_links(text: str, entities: Iterable[MessageEntity]) -> Part:
    """Put the address behind the text of each link that Telegram would refuse."""
    spans: list[Span] = []
    refused: list[Span] = []
    for entity in entities:
        span = Span(entity.type, entity.offset, entity.length, entity.url, entity.language)
        if span.type != "text_link" or _is_usable(span.url):
            spans.append(span)
        elif span.url:
            refused.append(span)
    raw = text.encode("utf-16-le")
    for span in sorted(refused, key=lambda span: span.end, reverse=True):
        shown = raw[2 * span.offset : 2 * span.end].decode("utf-16-le")
        if span.url is None or span.url.removeprefix("mailto:") in shown:
            continue
        note = f" ({span.url})"
        raw = raw[: 2 * span.end] + note.encode("utf-16-le") + raw[2 * span.end :]
        spans = [_moved(other, span.end, units(note)) for other in spans]
    return Part(raw.decode("utf-16-le"), tuple(spans))


def _moved(span: Span, at: int, by: int) -> Span:
    """The span after `by` units were put in at the unit `at`."""
    if span.offset >= at:
        return replace(span, offset=span.offset + by)
    return replace(span, length=span.length + by) if span.end > at else span


def _is_usable(url: str | None) -> bool:
    """Whether Telegram takes it as a link: http or https, and a host with a dot in it."""
    if not url or _NOT_IN_A_URL.search(url):
        return False
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and "." in host.strip(".")


def _valid(spans: Sequence[Span], size: int) -> tuple[Span, ...]:
    """Spans by the rules of core.telegram.org/bots/api#formatting-options: within the text, code
    and links without anything of that kind in them, no quote in a quote, no style in code."""
    inside = [replace(s, length=min(s.end, size) - s.offset) for s in spans if s.offset < size]
    inside = [span for span in inside if span.length > 0]
    fixed = _first_of_each([span for span in inside if span.type in {*_CODE, "text_link"}])
    quotes = _first_of_each([span for span in inside if span.type in _QUOTES])
    code = [span for span in fixed if span.type in _CODE]
    ends = [span.end for span in code]
    styles: list[Span] = []
    for kind in sorted(_STYLES):
        outermost = _first_of_each([span for span in inside if span.type == kind])
        styles += [piece for span in outermost for piece in _without(span, code, ends)]
    return tuple(sorted([*fixed, *quotes, *styles], key=_outer_first))


def _outer_first(span: Span) -> tuple[int, int, bool]:
    return span.offset, -span.length, span.type in _CODE


def _first_of_each(spans: Iterable[Span]) -> list[Span]:
    """Of spans that overlap, the one that begins first; of those, the longest."""
    kept: list[Span] = []
    for span in sorted(spans, key=_outer_first):
        if not kept or span.offset >= kept[-1].end:
            kept.append(span)
    return kept


def _without(span: Span, holes: Sequence[Span], ends: Sequence[int]) -> Iterable[Span]:
    """What is left of a span outside of `holes`, which are sorted, do not overlap and end at
    `ends`."""
    start = span.offset
    for index in range(bisect_right(ends, start), len(holes)):
        hole = holes[index]
        if hole.offset >= span.end:
            break
        if hole.offset > start:
            yield replace(span, offset=start, length=hole.offset - start)
        start = hole.end
    if start < span.end:
        yield replace(span, offset=start, length=span.end - start)
