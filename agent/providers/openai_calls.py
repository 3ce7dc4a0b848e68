"""The calls of a Chat Completions list, in each of the three forms that the API takes.

Today's (`tool_calls` of functions) and its first one (`function_call`, answered by a row of the role
`function`) are read as calls; a repaired list has them in the form of today. A custom tool's, whose
input is any text, stays what it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from agent.messages import JsonObject, Message, ToolUseBlock
from agent.providers.history_rows import ReadHistory, kind_of, list_at, object_at, text_at
from agent.providers.wire import parse_arguments

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LONGEST_ID = 40  # characters; the API's refusal says so
_CUSTOM = "\x1a custom"  # the one argument of a call that stands in for a custom tool's


def calls_of(history: ReadHistory, where: str, found: dict[str, Any]) -> Iterator[ToolUseBlock]:
    """The calls of an assistant's row. Raises `HistoryFormatError`."""
    items = list_at(f"{where}.tool_calls", found.get("tool_calls"))
    if found.get("tool_calls") == []:
        history.fault(where, "tool_calls is an empty list: this API wants a call in it, or no list")
    for number, item in enumerate(items):
        yield from _call(history, f"{where}.tool_calls.{number}", item)
    if found.get("function_call") is not None:
        place = f"{where}.function_call"
        id_ = "function_call_" + where.split(".")[1]
        yield _function(history, place, id_, object_at(place, found["function_call"]))


def asked_by_name(found: dict[str, Any], reply: Message) -> dict[str, str]:
    """The id by the name, of a call in the first form: its result has no id."""
    if found.get("function_call") is None:
        return {}
    call = reply.tool_uses[-1]
    return {call.name: call.id}


def _call(history: ReadHistory, where: str, given: object) -> Iterator[ToolUseBlock]:
    item = object_at(where, given)
    id_ = text_at(f"{where}.id", item.get("id"))
    match item.get("type", "function"):
        case "function":
            history.known(where, item, "id", "type", "function")
            place = f"{where}.function"
            yield _function(history, place, id_, object_at(place, item.get("function")))
        case "custom":
            history.known(where, item, "id", "type", "custom")
            yield _custom(history, f"{where}.custom", id_, item)
        case kind:
            history.refused(where, kind, "function", "custom")


def _function(history: ReadHistory, where: str, id_: str, function: dict[str, Any]) -> ToolUseBlock:
    """A call; arguments that are no JSON object are kept as the text of a half-made one."""
    history.known(where, function, "name", "arguments")
    name = text_at(f"{where}.name", function.get("name"))
    given = function.get("arguments")
    if not isinstance(given, str):
        history.fault(where, f"arguments are {kind_of(given)}: this API takes JSON in a string")
        given = "" if given is None else json.dumps(given)
    elif not given.strip():
        history.fault(where, "arguments are empty: no JSON; a call without any has {}")
    arguments, raw = parse_arguments(given)
    return ToolUseBlock(id_, name, arguments, raw)


def _custom(history: ReadHistory, where: str, id_: str, item: dict[str, Any]) -> ToolUseBlock:
    """A call of a custom tool, whose input is any text; `restored_call` puts it back."""
    custom = object_at(where, item.get("custom"))
    history.known(where, custom, "name", "input")
    name = text_at(f"{where}.name", custom.get("name"))
    given = custom.get("input")
    if not isinstance(given, str):
        history.fault(where, f"input is {kind_of(given)}: this API takes a string")
        given = "" if given is None else json.dumps(given)
    return ToolUseBlock(id_, name, {_CUSTOM: given})


def faults_of(call: ToolUseBlock) -> Iterator[str]:
    """What the API refuses of names and ids; `agent.legality` knows of no alphabets."""
    if len(call.id) > _LONGEST_ID:
        yield f"call id {call.id!r} is longer than this API's {_LONGEST_ID} characters"
    if not _NAME.fullmatch(call.name):
        yield f"call {call.id!r} names a tool {call.name!r}, which this API does not take"


def restored_call(call: dict[str, Any]) -> JsonObject:
    """A call of a custom tool in its own form."""
    function = object_at("", call["function"])
    arguments = object_at("", json.loads(function["arguments"]))
    if _CUSTOM not in arguments:
        return call
    custom: JsonObject = {"name": function["name"], "input": arguments[_CUSTOM]}
    return {"id": call["id"], "type": "custom", "custom": custom}
