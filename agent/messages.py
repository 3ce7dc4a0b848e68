"""Conversation messages, in one shape for every provider.

A message is a role and a tuple of frozen blocks. Providers render it to their own shape; the store
keeps it as JSON (`encode`, `decode`). Terms are Anthropic's: a `tool_use` is a model's call, a
`tool_result` its answer, sent in the user message that directly follows.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
JsonObject = dict[str, JsonValue]
Role = Literal["user", "assistant"]
Outcome = Literal["known", "unknown", "not_run"]


class MessageFormatError(ValueError):
    """A stored message cannot be decoded; the text says which part."""


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Plain text or Markdown."""

    text: str


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """An image as bytes; `media_type` is `image/png`, `image/jpeg`, `image/webp` or `image/gif`."""

    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """A model's reasoning. It may go back to the provider that made it, byte-identical, or nowhere.

    `signature` is the provider's seal; `redacted` holds opaque data where the text is withheld;
    `model` names the model that produced it (`provider/model-id`).
    """

    text: str
    model: str
    signature: str | None = None
    redacted: str | None = None


@dataclass(frozen=True, slots=True)
class ToolUseBlock:
    """A model's call of a tool.

    `arguments` is always an object. `raw` holds the text as it was streamed when that text was not
    a JSON object; such a call is repaired or refused by `agent.tool_args` before it is stored.
    """

    id: str
    name: str
    arguments: JsonObject
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResultBlock:
    """The answer to the call `tool_use_id`. `outcome` is for us and goes to no model: whether it is
    known what the call did, or that it never ran."""

    tool_use_id: str
    content: tuple[TextBlock | ImageBlock, ...]
    is_error: bool = False
    outcome: Outcome = "known"


Block = TextBlock | ImageBlock | ThinkingBlock | ToolUseBlock | ToolResultBlock


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Role
    blocks: tuple[Block, ...]

    @property
    def text(self) -> str:
        """The text blocks, joined by blank lines."""
        return "\n\n".join(block.text for block in self.blocks if isinstance(block, TextBlock))

    @property
    def tool_uses(self) -> tuple[ToolUseBlock, ...]:
        """The calls in this message, in order."""
        return tuple(block for block in self.blocks if isinstance(block, ToolUseBlock))

    @property
    def images(self) -> tuple[ImageBlock, ...]:
        """Its own images and those of its tool results, in order."""
        return tuple(_images(self.blocks))

    @property
    def tool_results(self) -> tuple[ToolResultBlock, ...]:
        """The tool results in this message, in order."""
        return tuple(block for block in self.blocks if isinstance(block, ToolResultBlock))


def _images(blocks: Iterable[Block]) -> Iterator[ImageBlock]:
    for block in blocks:
        if isinstance(block, ImageBlock):
            yield block
        elif isinstance(block, ToolResultBlock):
            yield from _images(block.content)


def user_text(text: str) -> Message:
    """A user message of one text block."""
    return Message("user", (TextBlock(text),))


def assistant_text(text: str) -> Message:
    """An assistant message of one text block."""
    return Message("assistant", (TextBlock(text),))


def begins_turn(message: Message) -> bool:
    """Whether a turn starts here: a user message that is more than tool results."""
    return message.role == "user" and any(
        isinstance(block, TextBlock | ImageBlock) for block in message.blocks
    )


def encode(message: Message) -> str:
    """The message as one line of JSON; `decode(encode(m)) == m`."""
    document = {"role": message.role, "blocks": [_encode_block(block) for block in message.blocks]}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def decode(text: str) -> Message:
    """The message that `encode` wrote. Raises `MessageFormatError`."""
    try:
        document = json.loads(text)
        role = document["role"]
        if role not in ("user", "assistant"):
            raise MessageFormatError(f"role {role!r} is neither user nor assistant")
        return Message(role, tuple(_decode_block(block) for block in document["blocks"]))
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, MessageFormatError):
            raise
        raise MessageFormatError(f"not a stored message: {error!r}") from error


def _encode_block(block: Block) -> JsonObject:
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ImageBlock():
            data = base64.b64encode(block.data).decode("ascii")
            return {"type": "image", "media_type": block.media_type, "data": data}
        case ThinkingBlock():
            return {
                "type": "thinking",
                "text": block.text,
                "model": block.model,
                "signature": block.signature,
                "redacted": block.redacted,
            }
        case ToolUseBlock():
            return {
                "type": "tool_use",
                "id": block.id,
                "name": block.name,
                "arguments": block.arguments,
                "raw": block.raw,
            }
        case ToolResultBlock():
            return {
                "type": "tool_result",
                "tool_use_id": block.tool_use_id,
                "content": [_encode_block(part) for part in block.content],
                "is_error": block.is_error,
                **({} if block.outcome == "known" else {"outcome": block.outcome}),
            }


def _decode_block(block: Mapping[str, Any]) -> Block:
    match block:
        case {"type": "text", "text": str(text)}:
            return TextBlock(text)
        case {"type": "image", "media_type": str(media_type), "data": str(data)}:
            return ImageBlock(media_type, base64.b64decode(data))
        case {"type": "thinking", "text": str(text), "model": str(model)}:
            signature, redacted = block.get("signature"), block.get("redacted")
            return ThinkingBlock(
                text,
                model,
                signature if isinstance(signature, str) else None,
                redacted if isinstance(redacted, str) else None,
            )
        case {"type": "tool_use", "id": str(id_), "name": str(name)}:
            raw = block.get("raw")
            arguments: JsonObject = dict(block["arguments"])
            return ToolUseBlock(id_, name, arguments, raw if isinstance(raw, str) else None)
        case {"type": "tool_result", "tool_use_id": str(id_)}:
            content = _decode_content(block["content"])
            is_error = block.get("is_error") is True
            match block.get("outcome"):
                case "unknown" | "not_run" as outcome:
                    return ToolResultBlock(id_, content, is_error, outcome)
                case _:
                    return ToolResultBlock(id_, content, is_error)
        case _:
            raise MessageFormatError(f"unknown block {block.get('type')!r}")


def _decode_content(content: Iterable[Mapping[str, Any]]) -> tuple[TextBlock | ImageBlock, ...]:
    parts: list[TextBlock | ImageBlock] = []
    for item in content:
        part = _decode_block(item)
        if not isinstance(part, TextBlock | ImageBlock):
            raise MessageFormatError("a tool result holds text and images only")
        parts.append(part)
    return tuple(parts)
