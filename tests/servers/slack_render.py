"""Text and blocks as a person reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

_MARKUP = re.compile(r"(<(?:[@#!][^<>]+|(?:https?|mailto|slack|tel):[^<>]+)>)")
_URL = re.compile(r"(https?://[^\s<>|]+)")


@dataclass(frozen=True)
class Button:
    """A button as a person sees it, and what its press carries."""

    text: str
    action_id: str
    value: str
    block_id: str
    style: str = ""
    url: str = ""


def escaped(text: str) -> str:
    """As Slack stores a text: `&`, `<` and `>` as entities, except those of its own markup."""
    pieces = _MARKUP.split(text)
    for at in range(0, len(pieces), 2):
        plain = re.sub(r"&(?!amp;|lt;|gt;)", "&amp;", pieces[at])
        pieces[at] = plain.replace("<", "&lt;").replace(">", "&gt;")
    return "".join(pieces)


def typed(text: str) -> str:
    """What becomes of a text that a person types: bare addresses are links too."""
    pieces = _MARKUP.split(text)
    for at in range(0, len(pieces), 2):
        pieces[at] = _URL.sub(r"<\1>", pieces[at])
    return escaped("".join(pieces))


def unescaped(text: str) -> str:
    """The reverse of `escaped`, as a person reads it."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def rich_text(text: str, block_id: str) -> Json:
    """The block that Slack's client makes of a stored text."""
    parts: list[Json] = []
    for piece in _MARKUP.split(text):
        if piece.startswith("<@"):
            parts.append({"type": "user", "user_id": piece[2:-1]})
        elif piece.startswith("<http"):
            parts.append({"type": "link", "url": piece[1:-1].partition("|")[0]})
        elif piece:
            parts.append({"type": "text", "text": unescaped(piece)})
    section = {"type": "rich_text_section", "elements": parts}
    return {"type": "rich_text", "block_id": block_id, "elements": [section]}


def elements_of(block: Json) -> Iterator[Json]:
    """The interactive and other elements of a block."""
    for element in block.get("elements") or []:
        if isinstance(element, dict):
            yield element
    for single in ("accessory", "element"):
        if isinstance(block.get(single), dict):
            yield block[single]


def buttons(blocks: list[Json]) -> list[Button]:
    """All buttons, in order."""
    return [
        Button(
            element["text"]["text"],
            element.get("action_id", ""),
            element.get("value", ""),
            block.get("block_id", ""),
            element.get("style", ""),
            element.get("url", ""),
        )
        for block in blocks
        for element in elements_of(block)
        if element.get("type") == "button"
    ]


def render(blocks: list[Json]) -> str:
    """The blocks as text, a line each; buttons as `[text]`."""
    return "\n".join(line for block in blocks if (line := _render_block(block)))


def _render_block(block: Json) -> str:
    kind = block["type"]
    if kind == "markdown":
        return str(block["text"])
    if kind == "divider":
        return "---"
    if kind == "rich_text":
        return "".join(_leaves(block["elements"]))
    texts = [block.get("text"), block.get("label"), *block.get("fields", [])]
    parts = [_plain(text) for text in texts if isinstance(text, dict)]
    for element in elements_of(block):
        if element.get("type") == "button":
            parts.append(f"[{element['text']['text']}]")
        elif isinstance(element.get("text"), str):
            parts.append(_plain(element))
    return " ".join(parts)


def _plain(text: Json) -> str:
    """A text object; entities count only in mrkdwn."""
    raw = str(text["text"])
    return unescaped(raw) if text["type"] == "mrkdwn" else raw


def _leaves(elements: list[Json]) -> Iterator[str]:
    for element in elements:
        if element.get("elements"):
            yield from _leaves(element["elements"])
        elif element.get("type") == "user":
            yield f"<@{element['user_id']}>"
        elif element.get("type") == "emoji":
            yield f":{element['name']}:"
        else:
            yield str(element.get("text") or element.get("url", ""))
