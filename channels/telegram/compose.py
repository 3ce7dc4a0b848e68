"""A reply as the messages that Telegram takes, and as JSON by which another process knows them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from channels.base import Button, OutboundDocument, OutboundReply
from channels.chunking import Part, Span, split, units
from channels.parts import NUMBER_ROOM, numbered
from channels.telegram.render import render
from channels.text import is_visible, whole

MAX_UNITS = 4096  # core.telegram.org/bots/api#sendmessage


@dataclass(frozen=True, slots=True)
class Item:
    """One message: a text, or a file. The last one has the reply's buttons."""

    content: Part | OutboundDocument
    buttons: tuple[Button, ...] = ()
    silent: bool = False

    def noted(self, note: str) -> Item | None:
        """With a sentence above; None for a file, or a text that has no room for it."""
        if not isinstance(self.content, Part):
            return None
        above = f"{note}\n\n"
        text = above + self.content.text
        if units(text) > MAX_UNITS:
            return None
        spans = tuple(replace(s, offset=s.offset + units(above)) for s in self.content.spans)
        return replace(self, content=Part(text, spans))


def compose(reply: OutboundReply) -> list[Item]:
    """The reply's messages, in order. A text of several says which it is."""
    rendered = render(reply.markdown)
    texts = _visible(rendered, MAX_UNITS)
    if len(texts) > 1:
        texts = _visible(rendered, MAX_UNITS - NUMBER_ROOM)
    contents: list[Part | OutboundDocument] = [
        _numbered(part, number, len(texts)) for number, part in enumerate(texts)
    ]
    contents += reply.documents
    items = [Item(content, silent=reply.silent) for content in contents]
    if items:
        items[-1] = replace(items[-1], buttons=reply.buttons)
    return items


def _visible(rendered: Part, limit_units: int) -> list[Part]:
    parts = split(rendered.text, rendered.spans, limit_units=limit_units)
    return [part for part in parts if is_visible(part.text)]


def _numbered(part: Part, number: int, of: int) -> Part:
    """The number stands one blank line below, whatever a cut has left there."""
    if of == 1:
        return part
    text = part.text.rstrip()
    end = units(text)
    spans = [replace(s, length=min(s.end, end) - s.offset) for s in part.spans if s.offset < end]
    return Part(text + numbered(number, of), tuple(spans))


def dump(item: Item) -> str:
    """As JSON that can be stored: halves of characters are replaced."""
    body: dict[str, Any] = {}
    if isinstance(item.content, Part):
        body["text"] = item.content.text
        body["spans"] = [
            [s.type, s.offset, s.length, s.url, s.language] for s in item.content.spans
        ]
    else:
        body["document"] = [item.content.name, item.content.text]
    if item.buttons:
        body["buttons"] = [[b.label, b.action, b.value] for b in item.buttons]
    if item.silent:
        body["silent"] = True
    return whole(json.dumps(body, ensure_ascii=False))


def load(body: str) -> Item:
    """What `dump` made."""
    stored: dict[str, Any] = json.loads(body)
    buttons = tuple(Button(*button) for button in stored.get("buttons", ()))
    return Item(_content(stored), buttons, bool(stored.get("silent")))


def _content(stored: dict[str, Any]) -> Part | OutboundDocument:
    if "document" in stored:
        return OutboundDocument(*stored["document"])
    spans: Sequence[Sequence[Any]] = stored["spans"]
    return Part(stored["text"], tuple(Span(*span) for span in spans))
