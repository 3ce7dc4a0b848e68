"""Stored messages as lines of text, for the model's `read_transcript` and for the operator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from agent.messages import (
    Block,
    ImageBlock,
    MessageFormatError,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    decode,
)

READ_TOOL = "read_transcript"
WIDTH = 160  # characters in a line, so that 100 lines, what is read without a limit, fit an answer
_CONTINUED = " " * 6  # before what is left of a line that was too long


@dataclass(frozen=True, slots=True)
class Record:
    """A message as it is stored: its row id, JSON and time (ISO 8601, UTC)."""

    id: int
    role: str
    body: str
    created_at: str


class Renderer:
    """Renders messages in their order, numbered from 1.

    Content is indented, so that no text can pass for a heading. Thinking is left out, and so are
    lines that `read_transcript` gave: reading to the end would never end.
    """

    def __init__(self) -> None:
        self._number = 0
        self._reads: frozenset[str] = frozenset()

    def render(self, stored: Record) -> list[str]:
        """The message's lines, of any length and without line breaks."""
        self._number += 1
        at = datetime.fromisoformat(stored.created_at).astimezone(UTC)
        heading = f"[{self._number}] {stored.role}, {at:%Y-%m-%d %H:%M:%S} UTC"
        try:
            message = decode(stored.body)
        except MessageFormatError as error:
            return [heading, *_indented(f"(this message cannot be read: {error})", 2)]
        lines = [heading, *(line for block in message.blocks for line in self._block(block))]
        if message.role == "assistant":
            self._reads = frozenset(use.id for use in message.tool_uses if use.name == READ_TOOL)
        return lines

    def _block(self, block: Block) -> list[str]:
        match block:
            case TextBlock() | ImageBlock():
                return _indented(_text(block), 2)
            case ThinkingBlock():
                return []
            case ToolUseBlock():
                arguments = json.dumps(block.arguments, ensure_ascii=False)
                return _indented(f"call {block.id}: {block.name} {arguments}", 2)
            case ToolResultBlock():
                return self._result(block)

    def _result(self, result: ToolResultBlock) -> list[str]:
        what = "error" if result.is_error else "result"
        lines = [line for part in result.content for line in _indented(_text(part), 4)]
        if result.tool_use_id in self._reads and len(lines) > 1:
            lines = [lines[0], "    (these lines of the transcript are not repeated here)"]
        return [*_indented(f"{what} of {result.tool_use_id}:", 2), *lines]


def _text(part: TextBlock | ImageBlock) -> str:
    if isinstance(part, TextBlock):
        return part.text
    return f"[image, {part.media_type}, {len(part.data)} bytes]"


def _indented(text: str, columns: int) -> list[str]:
    return [" " * columns + line for line in text.splitlines()]


def wrap(line: str) -> Iterator[str]:
    """The line in pieces of at most `WIDTH` characters: any part of it can be read by itself."""
    yield line[:WIDTH]
    step = WIDTH - len(_CONTINUED)
    for start in range(WIDTH, len(line), step):
        yield _CONTINUED + line[start : start + step]
