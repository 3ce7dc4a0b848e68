"""Which images a refusal is about: `messages.3.content.1.image.source.base64: …` (Anthropic),
`messages[3].content[1].image_url` (OpenAI, in the words or as `param`), or more than so many."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from agent.errors import Refusal, RefusalKind

_PATH = re.compile(r"\bmessages((?:\.?\[\d+\]|\.\w+)+)")
_NUMBER = r"(?:\d{1,3}(?!\d)|one\b|a single\b)"
_PICTURES = r"(?:image|picture|photo)"
_LIMIT = (
    r"(?:at most|up to|only|more than|(?:maximum|max|limit|limited)(?: of| is| to)?|exceeds?|>)"
)
_MOST = re.compile(
    rf"{_LIMIT}:? ?(?P<before>{_NUMBER})(?: \w+)? ?{_PICTURES}"
    rf"|{_PICTURES}(?:s|\(s\))?\b.{{0,40}}?{_LIMIT}:? ?(?P<behind>{_NUMBER})"
    r"(?! ?(?:x\b|px|pixel|[kmg]i?b|byte|mp\b|megapixel|\.\d))"
)
_STEP = re.compile(r"\w+")


def naming(refusal: Refusal, body: Mapping[str, Any]) -> Refusal:
    """The refusal with the image of the request `body` that it is about, or how many it allows, where
    it says so."""
    if refusal.kind is not RefusalKind.MEDIA:
        return refusal
    places = (_image_at(body, found[1]) for found in _PATH.finditer(refusal.detail))
    image = next((data for data in places if data is not None), None)
    return replace(refusal, image=image, most_images=_most(refusal.detail.lower()))


def _most(words: str) -> int | None:
    found = _MOST.search(words)
    if found is None:
        return None
    number = found["before"] or found["behind"]
    return int(number) if number.isdecimal() else 1


def _image_at(body: Mapping[str, Any], path: str) -> bytes | None:
    node: object = body["messages"]
    for step in _STEP.findall(path):
        node = _inner(node, step)
        data = _data(node)
        if data is not None:
            return data
    return None


def _inner(node: object, step: str) -> object:
    """One step down. A step that is no key is the type of a block, which Anthropic's paths name."""
    match node:
        case list():
            items = cast("list[object]", node)
            return items[int(step)] if step.isdecimal() and int(step) < len(items) else None
        case dict():
            keys = cast("dict[str, object]", node)
            return keys.get(step, keys)
        case _:
            return None


def _data(block: object) -> bytes | None:
    match block:
        case {"type": "image", "source": {"data": str(data)}}:
            pass
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            data = url.partition(";base64,")[2]
        case _:
            return None
    try:
        return base64.b64decode(data)
    except binascii.Error:
        return None
