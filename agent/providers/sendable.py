"""What a conversation may hold and no provider takes: numbers that are no JSON, nesting without end,
and images that cannot be read, are too large or too many. One of them would brick a chat for good."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from agent.estimate_images import image_size
from agent.messages import JsonObject, JsonValue, Message

MOST_DEPTH = 100  # levels of a call's arguments; JSON parsers end at 128 (serde) to 1,000
TOO_DEEP = "(left out: nested too deeply)"
_MAGIC = {  # https://en.wikipedia.org/wiki/List_of_file_signatures
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def sendable(arguments: JsonObject) -> JsonObject:
    """A call's arguments as any JSON parser takes them; the same object when they are."""
    if _fits(arguments, MOST_DEPTH):
        return arguments
    return cast("JsonObject", _fitted(arguments, MOST_DEPTH))


def _fits(value: JsonValue, depth: int) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return depth > 0 and all(_fits(item, depth - 1) for item in value.values())
    if isinstance(value, list):
        return depth > 0 and all(_fits(item, depth - 1) for item in value)
    return True


def _fitted(value: JsonValue, depth: int) -> JsonValue:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {k: _fitted(v, depth - 1) for k, v in value.items()} if depth > 0 else TOO_DEEP
    if isinstance(value, list):
        return [_fitted(item, depth - 1) for item in value] if depth > 0 else TOO_DEEP
    return value


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """What a provider takes: pixels of a side (None: any), bytes of one image and of all of a
    request (as base64), and how many of them."""

    side: int | None
    each: int
    together: int
    count: int


def media_type(data: bytes) -> str | None:
    """The media type by the first bytes, None for what is no PNG, JPEG, GIF or WebP."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), None)


def images_left_out(messages: Iterable[Message], limits: ImageLimits) -> dict[int, str]:
    """Images that may not be sent, by `id(block)`, with the words that stand in for each.

    Of too many the newest stay; the others leave by tens, so that a prefix stays the same for some
    more images and prompt caching holds.
    """
    blocks = [block for message in messages for block in message.images]
    notes = {id(block): note for block in blocks if (note := unfit(block.data, limits))}
    times = Counter(id(block) for block in blocks)
    fit = list({id(block): block for block in reversed(blocks) if id(block) not in notes}.values())
    excess = len(fit) - limits.count
    most = len(fit) - math.ceil(excess / 10) * 10 if excess > 0 else len(fit)
    room = limits.together
    for place, block in enumerate(fit):
        room -= _encoded(block.data) * times[id(block)]
        if place >= most or room < 0:
            notes[id(block)] = "[image left out: newer images took its place]"
    return notes


def unfit(data: bytes, limits: ImageLimits) -> str | None:
    """Why an image may not be sent, by itself, as the words that stand in for it."""
    if media_type(data) is None:
        return "[image left out: it is no PNG, JPEG, GIF or WebP image]"
    if _encoded(data) > limits.each:
        most = limits.each * 3 / 4 / 1_000_000
        return f"[image left out: {len(data) / 1_000_000:.1f} MB, and {most:.1f} MB is the most]"
    width, height = image_size(data) or (1, 1)
    if limits.side is not None and max(width, height) > limits.side:
        return f"[image left out: {width} x {height} pixels, and {limits.side} is the most]"
    return None


def _encoded(data: bytes) -> int:
    """Bytes as base64."""
    return (len(data) + 2) // 3 * 4
