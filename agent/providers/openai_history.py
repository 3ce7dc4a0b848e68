"""A message list of OpenAI's Chat Completions API, read and written back.

Reading keeps the list as it is, with every fault of order: rows of results that directly follow each
other, and the user's row after them, are one message here, as `openai_body` writes them. Rows of the
system's are no messages; `system_rows` puts them back in their place.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

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
from agent.providers import system_rows
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
from agent.providers.openai_body import Dialect, render
from agent.providers.wire import parse_arguments

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LONGEST_ID = 40  # characters; the API's refusal says so
_DATA_URL = re.compile(r"data:(?P<type>[\w/+.-]+);base64,(?P<data>.*)", re.DOTALL)


def read(rows: Sequence[object]) -> ReadHistory:
    """The messages of a list. Raises `HistoryFormatError`."""
    history = ReadHistory()
    before = ""  # the role of the row before, but for the system's
    system: dict[int, str] = {}  # rows of the system's since then
    for number, row in enumerate(rows):
        where = f"messages.{number}"
        found = object_at(where, row)
        role = found.get("role")
        match role:
            case "system" | "developer":
                system_rows.keep(history, number, found)
                system[number] = role
                continue
            case "user":
                history.known(where, found, "role", "content")
                _add_user(history, number, before, tuple(_parts(history, where, found)))
            case "tool":
                history.known(where, found, "role", "content", "tool_call_id")
                _add_user(history, number, before, (_result(history, where, found),))
            case "assistant":
                history.add(Message("assistant", tuple(_reply(history, where, found))), number)
            case _:
                raise HistoryFormatError(
                    f"{where}: role {role!r} is none of system, developer, user, assistant, tool"
                )
        system_rows.check_place(history, system, role)
        system, before = {}, role
    system_rows.check_place(history, system, None)
    return history


def write(history: ReadHistory, messages: Sequence[Message]) -> list[JsonObject]:
    """Messages as rows again; the system's rows and attachments of `history` are put back."""
    rows: list[JsonObject] = render(request_of(messages), READER, Dialect())["messages"]
    for row in rows:
        content = row.get("content")
        if isinstance(content, list):
            row["content"] = [_restored(history, object_at("", part)) for part in content]
    return system_rows.put_back(history, rows, messages)


def _add_user(history: ReadHistory, number: int, before: str, blocks: tuple[Block, ...]) -> None:
    """A row of results or of the user's; it continues the rows of results before it."""
    if before == "tool":
        open_ = history.messages[-1]
        history.messages[-1] = Message("user", open_.blocks + blocks)
    else:
        history.add(Message("user", blocks), number)


def _result(history: ReadHistory, where: str, found: dict[str, Any]) -> ToolResultBlock:
    """A result. The API takes text alone in it (field case 22); a repaired list has what else it holds
    in the user's row behind it."""
    id_ = text_at(f"{where}.tool_call_id", found.get("tool_call_id"))
    parts = tuple(_parts(history, where, found))
    if any(isinstance(part, ImageBlock) for part in parts):
        row = where.split(".")[1]
        history.faults.append(
            f"message {row}: a result holds more than text, which this API refuses"
        )
    return ToolResultBlock(id_, parts)


def _reply(history: ReadHistory, where: str, found: dict[str, Any]) -> Iterator[Block]:
    history.known(
        where, found, "role", "content", "tool_calls", "reasoning_content", "reasoning", "refusal"
    )
    if found.get("audio") is not None or found.get("function_call") is not None:
        kind = "audio" if found.get("audio") is not None else "function_call"
        raise unknown_block(where, kind)
    reasoning = found.get("reasoning_content") or found.get("reasoning")
    if reasoning is not None:
        yield ThinkingBlock(text_at(f"{where}.reasoning_content", reasoning), READER)
    yield from _parts(history, where, found)
    if found.get("refusal") is not None:
        yield TextBlock(text_at(f"{where}.refusal", found["refusal"]))
    for number, item in enumerate(list_at(f"{where}.tool_calls", found.get("tool_calls"))):
        place = f"{where}.tool_calls.{number}"
        call = _call(history, place, object_at(place, item))
        history.faults += [f"message {where.split('.')[1]}: {fault}" for fault in _faults(call)]
        yield call


def _call(history: ReadHistory, where: str, item: dict[str, Any]) -> ToolUseBlock:
    """A call; arguments that are no JSON object are kept as the text of a half-made one."""
    if item.get("type", "function") != "function":
        raise unknown_block(where, item["type"])
    history.known(where, item, "id", "type", "function")
    function = object_at(f"{where}.function", item.get("function"))
    history.known(f"{where}.function", function, "name", "arguments")
    given = function.get("arguments")
    text = json.dumps(given) if isinstance(given, dict) else text_at(f"{where}.arguments", given)
    arguments, raw = parse_arguments(text)
    name = text_at(f"{where}.function.name", function.get("name"))
    return ToolUseBlock(text_at(f"{where}.id", item.get("id")), name, arguments, raw)


def _faults(call: ToolUseBlock) -> Iterator[str]:
    """What the API refuses of names and ids; `agent.legality` knows of no alphabets."""
    if len(call.id) > _LONGEST_ID:
        yield f"call id {call.id!r} is longer than this API's {_LONGEST_ID} characters"
    if not _NAME.fullmatch(call.name):
        yield f"call {call.id!r} names a tool {call.name!r}, which this API does not take"


def _parts(
    history: ReadHistory, where: str, found: dict[str, Any]
) -> Iterator[TextBlock | ImageBlock]:
    content = found.get("content")
    if isinstance(content, str):
        # No words beside calls, or in a reply that was cut, is how the API itself says nothing.
        if content or not found.get("tool_calls"):
            yield TextBlock(content)
        return
    for number, item in enumerate(list_at(f"{where}.content", content)):
        place = f"{where}.content.{number}"
        yield _part(history, place, object_at(place, item))


def _part(history: ReadHistory, where: str, part: dict[str, Any]) -> TextBlock | ImageBlock:
    match part.get("type"):
        case "text":
            history.known(where, part, "type", "text")
            return TextBlock(text_at(f"{where}.text", part.get("text")))
        case "refusal":
            history.known(where, part, "type", "refusal")
            return TextBlock(text_at(f"{where}.refusal", part.get("refusal")))
        case "image_url":
            return _image(history, where, part)
        case "input_audio" | "file":
            return history.attach(part)
        case kind:
            raise unknown_block(where, kind)


def _image(history: ReadHistory, where: str, part: dict[str, Any]) -> ImageBlock:
    image = object_at(f"{where}.image_url", part.get("image_url"))
    found = _DATA_URL.fullmatch(text_at(f"{where}.image_url.url", image.get("url")))
    if found is None:  # an address
        return history.attach(part)
    history.known(f"{where}.image_url", image, "url")
    try:
        return ImageBlock(found["type"], base64.b64decode(found["data"], validate=True))
    except binascii.Error as error:
        raise HistoryFormatError(f"{where}.image_url.url: no base64: {error}") from None


def _restored(history: ReadHistory, part: dict[str, Any]) -> JsonObject:
    if part["type"] != "image_url":
        return part
    _, _, data = part["image_url"]["url"].partition("base64,")
    return history.restored(data) or part
