"""What the readers of message lists share: a history that was read, and how a reader complains.

A reader keeps every fault of order (orphans, duplicates, missing ids), which `agent.history` finds
and mends. What it cannot keep is a fault (a block that the API does not take), a note (a key that a
repaired list will not have), or an error where no message can be made out at all.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from agent.messages import ImageBlock, JsonObject, Message, TextBlock
from agent.provider import ModelRequest
from agent.providers.wire import clean
from agent.tools import ToolSpec

READER = "history"  # the model that thinking blocks are read and written for
# Attachments that are no bytes here (an address, a PDF) travel as images of these: too short to say
# how large they are.
_STAND_IN = b"\x89PNG\r\n\x1a\n attachment "
_NUMBERED = re.compile(re.escape(_STAND_IN) + rb"(\d+)")


class HistoryFormatError(ValueError):
    """A list cannot be read; the text names the message and the block."""


@dataclass(frozen=True, slots=True)
class SystemRow:
    """A row of the system's or a developer's (`agent.providers.system_rows`), as it is written back.
    `blocks_before`: how many blocks were read before it."""

    row: JsonObject
    blocks_before: int


@dataclass(slots=True)
class ReadHistory:
    """A list as it was read.

    `rows`: for each message, the first row of the list that it came from. `faults`: what this API
    refuses and messages cannot express, as `message ROW: what`. `notes`: what a repaired list will
    not hold. `system`: OpenAI's rows of the system's, which are no messages.
    """

    messages: list[Message] = field(default_factory=list[Message])
    rows: list[int] = field(default_factory=list[int])
    faults: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    system: list[SystemRow] = field(default_factory=list[SystemRow])
    attachments: list[JsonObject] = field(default_factory=list[JsonObject])
    # A text that stands in for a block can be told by it from what anybody has said.
    mark: str = field(default_factory=lambda: secrets.token_hex(16))

    def add(self, message: Message, row: int) -> None:
        """A message that begins in this row."""
        self.messages.append(message)
        self.rows.append(row)

    def attach(self, block: JsonObject) -> ImageBlock:
        """An image that stands in for a block; `restored` puts the block back."""
        self.attachments.append(block)
        number = len(self.attachments) - 1
        return ImageBlock("image/png", _STAND_IN + str(number).encode())

    def restored(self, data: str) -> JsonObject | None:
        """The block that an image of these bytes, in base64, stands in for."""
        found = _NUMBERED.fullmatch(base64.b64decode(data))
        return None if found is None else self.attachments[int(found[1])]

    def attach_said(self, block: JsonObject) -> TextBlock:
        """A text that stands in for a block of the assistant's; `restored_said` puts it back."""
        self.attachments.append(block)
        return TextBlock(f"{self.mark} {len(self.attachments) - 1}")

    def restored_said(self, text: str) -> JsonObject | None:
        """The block that a text stands in for."""
        mark, _, number = text.rpartition(" ")
        return self.attachments[int(number)] if mark == self.mark else None

    def fault(self, where: str, what: str) -> None:
        """What the API refuses at a place such as `messages.3.content.0`."""
        row, _, rest = where.removeprefix("messages.").partition(".")
        self.faults.append(f"message {row}: {rest + ': ' if rest else ''}{what}")

    def refused(self, where: str, kind: object, *taken: str) -> None:
        """A block of a kind that the API does not take there; a repaired list is without it."""
        self.fault(
            where,
            f"unknown block {kind!r}: this API takes {', '.join(taken)} here; write it as one of "
            "these, or leave it out",
        )

    def whole(self, where: str, row: dict[str, Any]) -> dict[str, Any]:
        """The row in valid Unicode: half of a surrogate pair is no JSON text (RFC 8259, 8.2)."""
        text = json.dumps(row, ensure_ascii=False)
        try:
            text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            self.fault(where, "half of a surrogate pair, which is no text that an API takes")
            return cast("dict[str, Any]", json.loads(clean(text)))
        return row

    def known(self, where: str, found: Mapping[str, Any], *keys: str) -> None:
        """Note what else an object holds."""
        for key, value in found.items():
            if key not in keys and value is not None:
                self.notes.append(f"{where}: {key!r} is left out of a repaired list")


def object_at(where: str, value: object) -> dict[str, Any]:
    """A JSON object. Raises `HistoryFormatError`."""
    if not isinstance(value, dict):
        raise HistoryFormatError(f"{where}: an object is expected here, not {kind_of(value)}")
    return cast("dict[str, Any]", value)


def role_at(where: str, row: Mapping[str, Any]) -> str:
    """The role of a row. Raises `HistoryFormatError`."""
    role = row.get("role")
    if not isinstance(role, str):
        raise HistoryFormatError(f"{where}: a message has a role, and this has {kind_of(role)}")
    return role


def list_at(where: str, value: object) -> list[object]:
    """A JSON list; null is an empty one. Raises `HistoryFormatError`."""
    if value is None:
        return []
    if isinstance(value, list):
        return cast("list[object]", value)
    raise HistoryFormatError(f"{where}: a list is expected here, not {kind_of(value)}")


def text_at(where: str, value: object) -> str:
    """A JSON string; null is an empty one. Raises `HistoryFormatError`."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise HistoryFormatError(f"{where}: a string is expected here, not {kind_of(value)}")
    return value


def kind_of(value: object) -> str:
    """What a JSON value is, for a sentence."""
    names = {"dict": "an object", "list": "a list", "str": "a string", "NoneType": "null"}
    return names.get(type(value).__name__) or repr(value)


def request_of(messages: Iterable[Message]) -> ModelRequest:
    """A request of these messages, for a renderer: it offers each tool that they call."""
    kept = tuple(messages)
    names = dict.fromkeys(call.name for message in kept for call in message.tool_uses)
    answered = any(message.tool_results for message in kept)
    tools = tuple(ToolSpec(name, "", {}) for name in names or (["any"] if answered else []))
    return ModelRequest(READER, "", kept, tools, max_output_tokens=1)
