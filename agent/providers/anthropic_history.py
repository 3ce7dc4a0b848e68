"""A message list of Anthropic's Messages API, read and written back.

Reading keeps the list as it is, with every fault of order. Writing is `anthropic_body.render`, so
that what comes out keeps the API's rules.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

from agent.messages import (
    Block,
    ImageBlock,
    JsonObject,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agent.providers.anthropic_body import render
from agent.providers.history_rows import (
    READER,
    HistoryFormatError,
    ReadHistory,
    list_at,
    object_at,
    request_of,
    text_at,
    unknown_block,
)

_ID = re.compile(r"[a-zA-Z0-9_-]+")  # platform.claude.com, api/messages
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def read(rows: Sequence[object]) -> ReadHistory:
    """The messages of a list. Raises `HistoryFormatError`."""
    history = ReadHistory()
    for number, row in enumerate(rows):
        where = f"messages.{number}"
        found = object_at(where, row)
        role = found.get("role")
        if role not in ("user", "assistant"):
            raise HistoryFormatError(f"{where}: role {role!r} is neither user nor assistant")
        history.known(where, found, "role", "content")
        blocks = tuple(_blocks(history, where, found.get("content")))
        message = Message(role, blocks)
        history.add(message, number)
        history.faults += [f"message {number}: {fault}" for fault in _faults(message)]
    return history


def write(history: ReadHistory, messages: Sequence[Message]) -> list[JsonObject]:
    """Messages as rows again; attachments of `history` are put back."""
    rows: list[JsonObject] = render(request_of(messages), READER)["messages"]
    for row in rows:
        row["content"] = [_restored(history, object_at("", b)) for b in list_at("", row["content"])]
    return rows


def _faults(message: Message) -> Iterator[str]:
    """What the API refuses of names and ids; `agent.legality` knows of no alphabets."""
    for call in message.tool_uses:
        if call.id and not _ID.fullmatch(call.id):
            yield f"call id {call.id!r} has characters that this API does not take"
        if not _NAME.fullmatch(call.name):
            yield f"call {call.id!r} names a tool {call.name!r}, which this API does not take"


def _blocks(history: ReadHistory, where: str, content: object) -> Iterator[Block]:
    if isinstance(content, str):
        yield TextBlock(content)
        return
    for number, item in enumerate(list_at(f"{where}.content", content)):
        place = f"{where}.content.{number}"
        yield _block(history, place, object_at(place, item))


def _block(history: ReadHistory, where: str, block: dict[str, Any]) -> Block:
    match block.get("type"):
        case "tool_use":
            history.known(where, block, "type", "id", "name", "input")
            return _call(where, block)
        case "tool_result":
            history.known(where, block, "type", "tool_use_id", "content", "is_error")
            id_ = text_at(f"{where}.tool_use_id", block.get("tool_use_id"))
            content = tuple(_parts(history, where, block.get("content")))
            return ToolResultBlock(id_, content, block.get("is_error") is True)
        case "thinking":
            history.known(where, block, "type", "thinking", "signature")
            seal = text_at(f"{where}.signature", block.get("signature"))
            return ThinkingBlock(text_at(where, block.get("thinking")), READER, seal or None)
        case "redacted_thinking":
            history.known(where, block, "type", "data")
            return ThinkingBlock("", READER, None, text_at(f"{where}.data", block.get("data")))
        case _:
            return _part(history, where, block)


def _call(where: str, block: dict[str, Any]) -> ToolUseBlock:
    """A call; input that is no object is kept as the text of a half-made one."""
    given: Any = block.get("input", {})
    id_ = text_at(f"{where}.id", block.get("id"))
    name = text_at(f"{where}.name", block.get("name"))
    if isinstance(given, dict):
        return ToolUseBlock(id_, name, cast("JsonObject", given))
    return ToolUseBlock(id_, name, {}, json.dumps(given))


def _parts(history: ReadHistory, where: str, content: object) -> Iterator[TextBlock | ImageBlock]:
    if isinstance(content, str):
        yield TextBlock(content)
        return
    for number, item in enumerate(list_at(f"{where}.content", content)):
        place = f"{where}.content.{number}"
        yield _part(history, place, object_at(place, item))


def _part(history: ReadHistory, where: str, block: dict[str, Any]) -> TextBlock | ImageBlock:
    match block.get("type"):
        case "text":
            history.known(where, block, "type", "text")
            return TextBlock(text_at(f"{where}.text", block.get("text")))
        case "image":
            return _image(history, where, block)
        case "document" | "search_result":
            return history.attach(block)
        case kind:
            raise unknown_block(where, kind)


def _image(history: ReadHistory, where: str, block: dict[str, Any]) -> ImageBlock:
    source = object_at(f"{where}.source", block.get("source"))
    if source.get("type") != "base64":  # an address, or a file that the API keeps
        return history.attach(block)
    history.known(where, block, "type", "source")
    media_type = text_at(f"{where}.source.media_type", source.get("media_type"))
    try:
        data = base64.b64decode(text_at(f"{where}.source.data", source.get("data")), validate=True)
    except binascii.Error as error:
        raise HistoryFormatError(f"{where}.source.data: no base64: {error}") from None
    return ImageBlock(media_type, data)


def _restored(history: ReadHistory, block: dict[str, Any]) -> JsonObject:
    block.pop("cache_control", None)  # the renderer's, for a request that follows
    if block["type"] == "tool_result":
        block["content"] = [_restored(history, part) for part in block["content"]]
    if block["type"] == "image":
        return history.restored(block["source"]["data"]) or block
    return block
