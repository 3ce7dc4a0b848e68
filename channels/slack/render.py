"""Markdown to Slack messages: cut below each limit, as markdown blocks with a plain text beside.

Slack renders the Markdown itself. Limits: 12,000 characters for all markdown blocks of a message
(docs.slack.dev/reference/block-kit/blocks/markdown-block); an update takes 4,000 of `text`, counted
as UTF-8 bytes after escaping (openclaw/openclaw#115027).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyromark

from channels.base import Button, OutboundDocument, StopControl
from channels.chunking import split, units
from channels.parts import NUMBER_ROOM, numbered
from channels.slack.buttons import Block, button_blocks, labels, stop_block
from channels.slack.markup import escaped
from channels.text import whole

POST_UNITS: Final = 11_900
UPDATE_UNITS: Final = 3_900
TEXT_BYTES: Final = 3_900
NOTHING_YET: Final = "…"

_FENCE = re.compile(r"^[ \t]*(`{3,40}|~{3,40})[ \t]*([^\n`]*)$")
_FENCE_ROOM = 130  # units that closing a code block in one part and opening it in the next take
# What would call people; a word joiner behind the bracket makes it text.
_CALLS = re.compile(r"<(?=@[UWS]|!(?:here|channel|everyone|subteam|date)|#C)")
_OPTIONS = (
    pyromark.Options.ENABLE_TABLES
    | pyromark.Options.ENABLE_STRIKETHROUGH
    | pyromark.Options.ENABLE_TASKLISTS
)
_ENDS_LINE = frozenset(
    {"Paragraph", "Heading", "CodeBlock", "Item", "TableHead", "TableRow", "HtmlBlock"}
)


@dataclass(frozen=True, slots=True)
class Content:
    """One message: `text` for notifications and screen readers, escaped; `blocks` are shown."""

    text: str
    blocks: tuple[Block, ...] = ()

    def stoppable(self, stop: StopControl | None) -> Content:
        """The same with a Stop button."""
        return self if stop is None else self._above(stop_block(stop))

    def with_buttons(self, buttons: Sequence[Button]) -> Content:
        """The same with a reply's buttons."""
        return self._above(*button_blocks(buttons))

    def _above(self, *blocks: Block) -> Content:
        return replace(self, blocks=(*self.blocks, *blocks))

    def noted(self, note: str) -> Content:
        """The same under a sentence."""
        above: Block = {"type": "context", "elements": [{"type": "plain_text", "text": note}]}
        text = f"{escaped(note)}\n{self.text}"
        if len(text.encode()) > TEXT_BYTES:
            text = escaped(note)
        return Content(text, (above, *self.blocks))

    @property
    def plain(self) -> Content:
        """The same without blocks, for when Slack refuses them: its Markdown as typed."""
        source = "\n".join(words for block in self.blocks for words in _words(block))
        return Content(escaped(source) or self.text)


def _words(block: Block) -> list[str]:
    """What a block of text or a note says."""
    if block["type"] == "markdown":
        return [block["text"]]
    return [one["text"] for one in block["elements"]] if block["type"] == "context" else []


def dump(item: Content | OutboundDocument) -> str:
    """A message or document as JSON that can be stored: halves of characters are replaced."""
    if isinstance(item, OutboundDocument):
        return _json({"document": [item.name, item.text]})
    return _json({"text": item.text, "blocks": item.blocks})


def _json(body: dict[str, Any]) -> str:
    return whole(json.dumps(body, ensure_ascii=False))


def load(body: str) -> Content | OutboundDocument:
    """What `dump` made."""
    stored: dict[str, Any] = json.loads(body)
    if "document" in stored:
        return OutboundDocument(*stored["document"])
    return Content(stored["text"], tuple(stored["blocks"]))


def pieces(
    markdown: str,
    buttons: Sequence[Button] = (),
    *,
    first_units: int = POST_UNITS,
    units_each: int = POST_UNITS,
) -> list[Content]:
    """An answer as messages, in order, the buttons under the last; none of them is blank, and a
    blank answer without buttons gives none. One of several says which it is.

    `first_units` limits the first, which may be an update, `units_each` the others. A code block
    that is cut is closed, and opened again in the next message with its language.
    """
    source = clean(markdown)
    cut = _visible(_cut(source, first_units, units_each))
    if len(cut) > 1:
        cut = _visible(_cut(source, first_units - NUMBER_ROOM, units_each - NUMBER_ROOM))
    contents = [content(_numbered(part, n, len(cut))) for n, part in enumerate(cut)]
    if buttons:
        last = (
            contents.pop()
            if contents
            else Content(_short(whole(labels(buttons)).strip()) or NOTHING_YET)
        )
        contents.append(last.with_buttons(buttons))
    return contents


def _numbered(part: str, number: int, of: int) -> str:
    """The number stands one blank line below, whatever a cut has left there."""
    return part.rstrip() + numbered(number, of) if of > 1 else part


def _visible(parts: Iterable[str]) -> list[str]:
    return [part for part in parts if part.strip()]


def content(markdown: str) -> Content:
    """One message of Markdown of at most 12,000 characters."""
    block: Block = {"type": "markdown", "text": markdown}
    return Content(_short(plain_text(markdown)) or NOTHING_YET, (block,))


def preview(text_so_far: str) -> Content:
    """The answer so far, as far as an update has room for it."""
    parts = split(clean(text_so_far), (), limit_units=UPDATE_UNITS)
    shown = parts[0].text if parts and parts[0].text.strip() else NOTHING_YET
    return content(shown)


def clean(text: str) -> str:
    """Halves of characters replaced, and what would call people made plain text."""
    return _CALLS.sub("<\u2060", whole(text))


def plain_text(markdown: str) -> str:
    """The words of Markdown without its signs; links with their address."""
    words: list[str] = []
    links: list[str] = []
    for event in pyromark.events(markdown, options=_OPTIONS):
        match event:
            case "SoftBreak" | "HardBreak":
                words.append("\n")
            case {"Text": str(text)} | {"Code": str(text)} | {"Html": str(text)}:
                words.append(text)
            case {"InlineHtml": str(text)}:
                words.append(text)
            case {"Start": {"Link": {"dest_url": str(url)}}}:
                links.append(url)
            case {"End": "Link"} if links:
                words.append(f" ({links.pop()})")
            case {"End": "TableCell"}:
                words.append("  ")
            case {"End": str(what)} if what in _ENDS_LINE:
                words.append("\n")
            case {"End": {"Heading": _}}:
                words.append("\n")
            case _:
                pass
    return "".join(words).strip()


def _short(text: str) -> str:
    """Escaped, and cut so that an update takes it."""
    short = escaped(text)
    if len(short.encode()) <= TEXT_BYTES:
        return short
    parts = split(text, (), limit_units=TEXT_BYTES // 5)  # no unit takes more than five bytes
    return escaped(parts[0].text.rstrip() + "…")


def _cut(markdown: str, first_units: int, units_each: int) -> Iterable[str]:
    rest, opening, limit = markdown, "", first_units
    while rest:
        if units(opening) + units(rest[: limit + 1]) <= limit:
            yield opening + rest
            return
        part = split(rest[:limit], (), limit_units=limit - _FENCE_ROOM)[0].text
        rest = rest[len(part) :]
        shown = opening + part
        fence = _open_fence(shown)
        if fence is not None:
            closing = fence[0]
            yield shown.rstrip("\n") + "\n" + closing
            opening = f"{closing}{fence[1]}\n"
        else:
            yield shown
            opening = ""
        limit = units_each


def _open_fence(markdown: str) -> tuple[str, str] | None:
    """The signs and the language of a code block that is open at the end."""
    fence: tuple[str, str] | None = None
    for line in markdown.split("\n"):
        found = _FENCE.match(line)
        if found is None:
            continue
        signs, language = found.groups()
        if fence is None:
            fence = (signs, language.strip()[:40])
        elif signs.startswith(fence[0]) and not language.strip():
            fence = None
    return fence
