"""A message list of OpenAI's Chat Completions API, read and written back.

Reading keeps the list as it is, with every fault of order: rows of results that directly follow each
other, and the user's row after them, are one message here, as `openai_body` writes them. Rows of the
system's are no messages; `system_rows` puts them back in their place.
"""

from __future__ import annotations

import base64
import binascii
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
)
from agent.providers import system_rows
from agent.providers.history_rows import (
    READER,
    ReadHistory,
    list_at,
    object_at,
    request_of,
    role_at,
    text_at,
)
from agent.providers.openai_body import Dialect, render
from agent.providers.openai_calls import asked_by_name, calls_of, faults_of, restored_call
from agent.providers.sendable import media_type

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_AS_IT_WAS = Dialect(reasoning="kept")
_IN_AUDIO = "(an answer in audio)"
_DATA_URL = re.compile(r"data:(?P<type>[\w/+.-]+);base64,(?P<data>.*)", re.DOTALL)


def read(rows: Sequence[object]) -> ReadHistory:
    """The messages of a list. Raises `HistoryFormatError`."""
    history = ReadHistory()
    before = ""  # the role of the row before, but for the system's
    asked: dict[str, str] = {}  # the id by the name, of a call in the API's first form
    system: dict[int, str] = {}  # rows of the system's since then
    for number, row in enumerate(rows):
        where = f"messages.{number}"
        found = history.whole(where, object_at(where, row))
        role = role_at(where, found)
        match role:
            case "system" | "developer":
                system_rows.keep(history, number, found)
                system[number] = role
                continue
            case "user":
                history.known(where, found, "role", "content")
                _add_user(history, number, before, tuple(_parts(history, where, found)))
            case "tool" | "function":
                result = _result(history, where, found, asked)
                _add_user(history, number, before, (result,))
                role = "tool"
            case "assistant":
                reply = Message("assistant", tuple(_reply(history, where, found)))
                history.add(reply, number)
                asked = asked_by_name(found, reply)
            case _:
                history.fault(where, f"role {role!r} is none of {', '.join(_ROLES)}")
                continue
        system_rows.check_place(history, system, role)
        system, before = {}, role
    system_rows.check_place(history, system, None)
    return history


def write(history: ReadHistory, messages: Sequence[Message]) -> list[JsonObject]:
    """Messages as rows again; the system's rows and attachments of `history` are put back."""
    rows: list[JsonObject] = render(request_of(messages), READER, _AS_IT_WAS)["messages"]
    for row in rows:
        content = row.get("content")
        if isinstance(content, list):
            row["content"] = [_restored(history, object_at("", part)) for part in content]
        if "tool_calls" in row:
            calls = list_at("", row["tool_calls"])
            row["tool_calls"] = [restored_call(object_at("", call)) for call in calls]
    return system_rows.put_back(history, rows, messages)


def _add_user(history: ReadHistory, number: int, before: str, blocks: tuple[Block, ...]) -> None:
    """A row of results or of the user's; it continues the rows of results before it."""
    if before == "tool":
        open_ = history.messages[-1]
        history.messages[-1] = Message("user", open_.blocks + blocks)
    else:
        history.add(Message("user", blocks), number)


def _result(
    history: ReadHistory, where: str, found: dict[str, Any], asked: dict[str, str]
) -> ToolResultBlock:
    """A result. The API takes text alone in it (field case 22); a repaired list has what else it holds
    in the user's row behind it. One of the first form (`function`) answers the call `asked` by its
    name, once."""
    if found["role"] == "tool":
        history.known(where, found, "role", "content", "tool_call_id")
        id_ = text_at(f"{where}.tool_call_id", found.get("tool_call_id"))
    else:
        history.known(where, found, "role", "content", "name")
        id_ = asked.pop(text_at(f"{where}.name", found.get("name")), "")
    parts = tuple(_parts(history, where, found))
    if any(isinstance(part, ImageBlock) for part in parts):
        history.fault(where, "a result holds more than text, which this API refuses")
    return ToolResultBlock(id_, parts)


def _reply(history: ReadHistory, where: str, found: dict[str, Any]) -> Iterator[Block]:
    ours = ("role", "content", "tool_calls", "function_call")
    history.known(where, found, *ours, "reasoning_content", "reasoning", "refusal")
    reasoning = found.get("reasoning_content") or found.get("reasoning")
    if reasoning is not None:
        yield ThinkingBlock(text_at(f"{where}.reasoning_content", reasoning), READER)
    yield from _parts(history, where, found)
    if found.get("refusal") is not None:
        yield TextBlock(text_at(f"{where}.refusal", found["refusal"]))
    if found.get("audio") is not None:
        yield TextBlock(_IN_AUDIO)
    for call in calls_of(history, where, found):
        history.faults += [f"message {where.split('.')[1]}: {fault}" for fault in faults_of(call)]
        yield call


def _parts(
    history: ReadHistory, where: str, found: dict[str, Any]
) -> Iterator[TextBlock | ImageBlock]:
    content = found.get("content")
    if isinstance(content, str):
        # No words beside calls, or in a reply that was cut, is how the API itself says nothing.
        if content or not (found.get("tool_calls") or found.get("function_call")):
            yield TextBlock(content)
        return
    for number, item in enumerate(list_at(f"{where}.content", content)):
        place = f"{where}.content.{number}"
        yield from _part(history, place, found.get("role"), object_at(place, item))


def _part(
    history: ReadHistory, where: str, role: object, part: dict[str, Any]
) -> Iterator[TextBlock | ImageBlock]:
    match part.get("type"):
        case "text":
            history.known(where, part, "type", "text")
            yield TextBlock(text_at(f"{where}.text", part.get("text")))
        case "refusal":
            history.known(where, part, "type", "refusal")
            if role != "assistant":
                history.fault(where, "'refusal' can only be in assistant messages")
            yield TextBlock(text_at(f"{where}.refusal", part.get("refusal")))
        case "image_url":
            yield _image(history, where, part)
        case "input_audio" | "file":
            yield history.attach(part)
        case kind:
            history.refused(where, kind, "text", "refusal", "image_url", "input_audio", "file")


def _image(history: ReadHistory, where: str, part: dict[str, Any]) -> ImageBlock:
    image = object_at(f"{where}.image_url", part.get("image_url"))
    found = _DATA_URL.fullmatch(text_at(f"{where}.image_url.url", image.get("url")))
    if found is None:  # an address
        return history.attach(part)
    history.known(f"{where}.image_url", image, "url")
    try:
        data = base64.b64decode(found["data"], validate=True)
    except binascii.Error as error:
        history.fault(f"{where}.image_url.url", f"no base64: {error}")
        return ImageBlock(found["type"], b"")
    if found["type"] != media_type(data):
        is_ = media_type(data) or "no PNG, JPEG, GIF or WebP image"
        history.fault(where, f"the image is called {found['type']!r} and is {is_}")
    return ImageBlock(found["type"], data)


def _restored(history: ReadHistory, part: dict[str, Any]) -> JsonObject:
    if part["type"] != "image_url":
        return part
    _, _, data = part["image_url"]["url"].partition("base64,")
    return history.restored(data) or part
