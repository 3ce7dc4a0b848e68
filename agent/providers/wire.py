"""What both APIs need on the wire: ids, names, arguments and text that they take."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from agent import tool_args
from agent.messages import (
    ImageBlock,
    JsonObject,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)

NO_IMAGES = "[image left out: this model cannot see images]"
NO_CONTENT = "(no content)"  # where a text may not be left out; blank text is refused everywhere
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
MOST_NAME = 64  # characters of a tool's name (OpenAI; Anthropic takes more)


MOST_TOKENS = 100_000_000  # no request is that long: what is above is no report but a mistake


def clean(text: str) -> str:
    """Text that is valid Unicode: halves of a surrogate pair that came apart are joined, and one
    that stands alone becomes U+FFFD. Neither JSON nor the database takes them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class Pairs:
    """Joins the halves of a surrogate pair that come in two pieces of a stream."""

    def __init__(self) -> None:
        self._half = ""

    def clean(self, piece: str) -> str:
        """The piece as `clean` gives it, with what was held back of the one before and without a first
        half at its end."""
        text = self._half + piece
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return clean(text.removesuffix(self._half)) if self._half else clean(text)


def tokens(reported: object) -> int | None:
    """A number of tokens as a provider reports it; None for what can be none."""
    if isinstance(reported, bool) or not isinstance(reported, int | float):
        return None
    return int(reported) if 0 <= reported <= MOST_TOKENS else None


def arguments_text(arguments: JsonObject) -> str:
    """A call's arguments as JSON."""
    return clean(json.dumps(arguments, ensure_ascii=False))


def arguments_object(arguments: JsonObject) -> JsonObject:
    """A call's arguments, valid Unicode throughout."""
    return cast("JsonObject", json.loads(arguments_text(arguments)))


def wire_name(name: str) -> str:
    """A tool's name as it may be sent; models also call tools that no provider would accept."""
    return _NOT_IN_NAMES.sub("_", name)[:MOST_NAME] or "unknown"


def call_as_text(call: ToolUseBlock) -> str:
    """An old call, for a model that is not offered tools."""
    return f"[called the tool {wire_name(call.name)} with {arguments_text(call.arguments)}]"


def result_as_text(result: ToolResultBlock) -> str:
    """The text of an old result, for a model that is not offered tools."""
    what = "failed" if result.is_error else "answered"
    return f"[the tool {what}: {result_text(result)}]"


def result_text(result: ToolResultBlock) -> str:
    """The text of a result; says so when there is none, or only images."""
    texts = [part.text for part in result.content if isinstance(part, TextBlock)]
    said = clean("\n\n".join(text for text in texts if text.strip()))
    if said:
        return said
    pictures = any(isinstance(part, ImageBlock) for part in result.content)
    return "(see the image that follows)" if pictures else NO_CONTENT


def arguments_piece(given: object) -> str:
    """A piece of a call's arguments as text. The APIs say text, or an object without anything at the
    beginning; servers that only resemble them send the whole object, or the text for the object."""
    if isinstance(given, str):
        return given
    return "" if given is None or given == {} else json.dumps(given)


def word(given: object) -> str:
    """An id or a name; some servers count their calls in numbers, or send null."""
    return given if isinstance(given, str) else "" if given is None else str(given)


def parse_arguments(text: str) -> tuple[JsonObject, str | None]:
    """Streamed arguments as (object, None), or ({}, the text) when they are not a JSON object.
    No text at all means no arguments."""
    if not text.strip():
        return {}, None
    try:
        value = tool_args.parse(text)
        if isinstance(value, dict):
            return arguments_object(value), None
    except (ValueError, RecursionError):
        pass
    return {}, clean(text)


def unique_calls(calls: Iterable[ToolUseBlock], earlier: Iterable[Message]) -> list[ToolUseBlock]:
    """Calls of one answer as they can be stored, with ids that are there and that no call before
    has."""
    seen = {call.id for message in earlier for call in message.tool_uses}
    result: list[ToolUseBlock] = []
    for call in calls:
        wanted = clean(call.id) or "call"
        fresh, number = wanted, 1
        while fresh in seen:
            number += 1
            fresh = f"{wanted}_{number}"
        seen.add(fresh)
        result.append(replace(call, id=fresh, name=clean(call.name)))
    return result


class WireIds:
    """Tool ids as a provider takes them: deterministic, the same for a call and its result, and
    different for different ids. Stored ids stay as they are.

    `pattern` is what the provider takes; other ids become `prefix` and `digits` of a digest.
    """

    def __init__(
        self,
        messages: Iterable[Message],
        pattern: re.Pattern[str],
        *,
        prefix: str = "call_",
        digits: int = 24,
    ) -> None:
        self._pattern, self._prefix, self._digits = pattern, prefix, digits
        ids = {call.id for message in messages for call in message.tool_uses}
        self._taken = {id_ for id_ in ids if pattern.fullmatch(id_)}
        self._made: dict[str, str] = {}
        for id_ in sorted(ids - self._taken):
            self._make(id_)

    def __call__(self, id_: str) -> str:
        """The id on the wire."""
        if self._pattern.fullmatch(id_):
            return id_
        return self._made.get(id_) or self._make(id_)

    def _make(self, id_: str) -> str:
        seed = id_
        while True:
            digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()
            wire = self._prefix + digest[: self._digits]
            if wire not in self._taken:
                break
            seed = digest
        self._taken.add(wire)
        self._made[id_] = wire
        return wire
