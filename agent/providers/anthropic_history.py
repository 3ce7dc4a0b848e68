"""A message list of Anthropic's Messages API, read and written back.

Reading keeps the list as it is, with every fault of order. Writing is `anthropic_body.render`, so
that what comes out keeps the API's rules. What the API's own tools did (`server_tool_use` and its
results) stays where it was said.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from agent.messages import (
    Block,
    ImageBlock,
    JsonObject,
    Message,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agent.providers.anthropic_body import IMAGES, render
from agent.providers.history_rows import (
    READER,
    ReadHistory,
    list_at,
    object_at,
    request_of,
    role_at,
    text_at,
)
from agent.providers.sendable import media_type, unfit

_ID = re.compile(r"[a-zA-Z0-9_-]+")  # platform.claude.com, api/messages
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_CONTENT = ("text", "image", "document", "search_result")
_ANYWHERE = (*_CONTENT, "tool_use", "tool_result", "thinking", "redacted_thinking")
_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant"}
_SYSTEM = "; what a system prompt says belongs into the request's `system`"
# Calls of tools that the provider runs itself; their results end in _tool_result.
_SERVER_CALLS = ("server_tool_use", "mcp_tool_use")


def read(rows: Sequence[object]) -> ReadHistory:
    """The messages of a list. Raises `HistoryFormatError`."""
    history = ReadHistory()
    lone = _lone_server_blocks(rows)
    for number, row in enumerate(rows):
        where = f"messages.{number}"
        found = history.whole(where, object_at(where, row))
        named = role_at(where, found)
        role = _ROLES.get(named)
        if role is None:
            hint = _SYSTEM if named in ("system", "developer") else ""
            history.fault(where, f"role {named!r} is neither user nor assistant{hint}")
            continue
        history.known(where, found, "role", "content")
        blocks = tuple(_blocks(history, where, found, lone))
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


def _lone_server_blocks(rows: Sequence[object]) -> set[tuple[int, int]]:
    """Row and place of calls of the provider's own tools without a result, and of such results
    without a call. Both stand in one answer, which may be several rows of the assistant's."""
    lone: set[tuple[int, int]] = set()
    open_: dict[str, tuple[int, int]] = {}
    called = False  # a tool of the list's own: its result comes next, and ends the answer
    for number, row in enumerate(rows):
        found = object_at(f"messages.{number}", row)
        content = found.get("content")
        if found.get("role") != "assistant" or called:
            lone |= set(open_.values())
            open_, called = {}, False
        items = cast("list[object]", content) if isinstance(content, list) else []
        for place, item in enumerate(items):
            block = object_at(f"messages.{number}.content.{place}", item)
            if block.get("type") in _SERVER_CALLS:
                id_ = str(block.get("id"))
                lone |= {open_[id_]} if id_ in open_ else set()
                open_[id_] = (number, place)
            elif _is_server_result(block.get("type")) and (
                open_.pop(str(block.get("tool_use_id")), None) is None
            ):
                lone.add((number, place))
            called = called or block.get("type") == "tool_use"
    return lone | set(open_.values())


def _is_server_result(kind: object) -> bool:
    return isinstance(kind, str) and kind.endswith("_tool_result")


def _blocks(
    history: ReadHistory, where: str, row: dict[str, Any], lone: set[tuple[int, int]]
) -> Iterator[Block]:
    content = row.get("content")
    if isinstance(content, str):
        yield TextBlock(content)
        return
    number = int(where.split(".")[1])
    for place, item in enumerate(list_at(f"{where}.content", content)):
        here = f"{where}.content.{place}"
        block = object_at(here, item)
        kind = block.get("type")
        if kind in _SERVER_CALLS or _is_server_result(kind):
            if row["role"] != "assistant":
                history.fault(here, f"{kind!r} can only be in assistant messages")
            elif (number, place) in lone:
                what = "its result" if kind in _SERVER_CALLS else "its call"
                history.fault(here, f"{kind!r} without {what} in the same answer")
            else:
                yield history.attach_said(block)
        else:
            yield from _block(history, here, block)


def _block(history: ReadHistory, where: str, block: dict[str, Any]) -> Iterator[Block]:
    match block.get("type"):
        case "tool_use":
            history.known(where, block, "type", "id", "name", "input")
            yield _call(history, where, block)
        case "tool_result":
            history.known(where, block, "type", "tool_use_id", "content", "is_error")
            id_ = text_at(f"{where}.tool_use_id", block.get("tool_use_id"))
            content = tuple(_parts(history, where, block.get("content")))
            yield ToolResultBlock(id_, content, block.get("is_error") is True)
        case "thinking":
            history.known(where, block, "type", "thinking", "signature")
            seal = text_at(f"{where}.signature", block.get("signature"))
            if not seal:
                history.fault(where, "thinking without its signature")
            yield ThinkingBlock(text_at(where, block.get("thinking")), READER, seal or None)
        case "redacted_thinking":
            history.known(where, block, "type", "data")
            yield ThinkingBlock("", READER, None, text_at(f"{where}.data", block.get("data")))
        case "container_upload":
            yield history.attach(block)
        case _:
            yield from _part(history, where, block, _ANYWHERE)


def _call(history: ReadHistory, where: str, block: dict[str, Any]) -> ToolUseBlock:
    """A call; input that is no object is kept as the text of a half-made one, and none at all is an
    empty one in a repaired list."""
    given: Any = block.get("input")
    if given is None:
        history.fault(where, "a call without its input, which is an object, be it empty")
        given = {}
    id_ = text_at(f"{where}.id", block.get("id"))
    name = text_at(f"{where}.name", block.get("name"))
    if isinstance(given, dict):
        return ToolUseBlock(id_, name, cast("JsonObject", given))
    return ToolUseBlock(id_, name, {}, json.dumps(given))


def _parts(history: ReadHistory, where: str, content: object) -> Iterator[TextBlock | ImageBlock]:
    """What a result holds."""
    if isinstance(content, str):
        yield TextBlock(content)
        return
    for number, item in enumerate(list_at(f"{where}.content", content)):
        place = f"{where}.content.{number}"
        block = object_at(place, item)
        if block.get("type") in ("tool_reference", "browser_state"):
            yield history.attach(block)
        else:
            yield from _part(history, place, block, _CONTENT)


def _part(
    history: ReadHistory, where: str, block: dict[str, Any], taken: Sequence[str]
) -> Iterator[TextBlock | ImageBlock]:
    match block.get("type"):
        case "text":
            history.known(where, block, "type", "text")
            yield TextBlock(text_at(f"{where}.text", block.get("text")))
        case "image":
            yield _image(history, where, block)
        case "document" | "search_result":
            yield history.attach(block)
        case kind:
            history.refused(where, kind, *taken)


def _image(history: ReadHistory, where: str, block: dict[str, Any]) -> ImageBlock:
    source = object_at(f"{where}.source", block.get("source"))
    if source.get("type") != "base64":  # an address, or a file that the API keeps
        return history.attach(block)
    history.known(where, block, "type", "source")
    named = text_at(f"{where}.source.media_type", source.get("media_type"))
    try:
        data = base64.b64decode(text_at(f"{where}.source.data", source.get("data")), validate=True)
    except binascii.Error as error:
        history.fault(f"{where}.source.data", f"no base64: {error}")
        return ImageBlock(named, b"")
    if note := unfit(data, IMAGES):
        history.fault(
            where, f"an image that this API refuses: {note.strip('[]').partition(': ')[2]}"
        )
    elif named != media_type(data):
        history.fault(where, f"the image is called {named!r} and is {media_type(data)!r}")
    return ImageBlock(named, data)


def _restored(history: ReadHistory, block: dict[str, Any]) -> JsonObject:
    block.pop("cache_control", None)  # the renderer's, for a request that follows
    if block["type"] == "text":
        return history.restored_said(block["text"]) or block
    if block["type"] == "tool_result":
        block["content"] = [_restored(history, part) for part in block["content"]]
    if block["type"] == "image":
        return history.restored(block["source"]["data"]) or block
    return block
