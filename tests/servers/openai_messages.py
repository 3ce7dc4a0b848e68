"""Which messages Chat Completions takes, and in which words it and its like refuse the rest."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any

from tests.servers.llm_request import Refused
from tests.servers.llm_script import Json
from tests.servers.openai_pairs import MessageRules, check_alternation, check_pairs
from tests.servers.openai_refusals import (
    check_name,
    empty_array,
    empty_string,
    invalid_type,
    pattern,
    too_long,
)

ROLES = ("system", "assistant", "user", "function", "tool", "developer")
PERSON = re.compile(r"[^\s<|\\/>]+")
NINE = re.compile(r"[a-zA-Z0-9]{9}")
DATA_URL = re.compile(r"data:(?P<type>[^;,]+);base64,(?P<data>.*)", re.DOTALL)
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
KEYS = {
    "system": {"content", "name"},
    "developer": {"content", "name"},
    "user": {"content", "name"},
    "assistant": {"content", "name", "tool_calls", "refusal", "audio", "function_call"},
    "tool": {"content", "tool_call_id"},
    "function": {"content", "name"},
}
PARTS = {
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
}


def check_messages(messages: Any, rules: MessageRules) -> None:
    """The conversation; raises `Refused`."""
    if messages is None:
        raise Refused(
            "Missing required parameter: 'messages'.",
            param="messages",
            code="missing_required_parameter",
        )
    if not messages:
        raise empty_array("messages")
    for index, message in enumerate(messages):
        check_message(index, message, rules)
    check_pairs(messages, rules)
    check_alternation(messages, rules)
    if rules.user_last and messages[-1]["role"] not in ("user", "tool"):
        raise Refused(
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got "
            f"{messages[-1]['role']}"
        )


def check_message(index: int, message: Any, rules: MessageRules) -> None:
    """One message by itself."""
    where = f"messages[{index}]"
    if not isinstance(message, dict):
        raise invalid_type(where, "an object", message)
    role = message.get("role")
    if role not in ROLES:
        raise Refused(
            f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', "
            "'function', 'tool', and 'developer'.",
            param=f"{where}.role",
            code="invalid_value",
        )
    known = KEYS[role] | {"role"}
    if role == "assistant" and rules.reasoning != "refused":
        known = known | {"reasoning_content"}
    for key in message:
        if key not in known:
            raise Refused(
                f"Unknown parameter: '{where}.{key}'.",
                param=f"{where}.{key}",
                code="unknown_parameter",
            )
    if message.get("name") is not None and not PERSON.fullmatch(message["name"]):
        raise pattern(f"{where}.name", r"^[^\s<|\\/>]+$")
    calls = message.get("tool_calls")
    if calls is not None:
        check_calls(where, calls, rules)
    check_reasoning(index, message, rules)
    check_content(index, message, rules)


def check_reasoning(index: int, message: Json, rules: MessageRules) -> None:
    """DeepSeek's thinking mode: a message with calls comes back with its reasoning."""
    if rules.reasoning != "required" or not message.get("tool_calls"):
        return
    if message.get("reasoning_content") is None:
        raise Refused(
            f"Missing `reasoning_content` field in the assistant message at message index {index}. "
            "For more information, please refer to "
            "https://api-docs.deepseek.com/guides/thinking_mode#tool-calls"
        )


def check_content(index: int, message: Json, rules: MessageRules) -> None:
    """The content fits the role: a string, or a list of parts; null only beside calls."""
    content, role = message.get("content"), message["role"]
    if content is None:
        if not (role == "assistant" and message.get("tool_calls")):
            raise null_content(index)
        return
    if isinstance(content, list):
        if role == "tool" and rules.tool_content_strings:
            raise Refused("Param Incorrect", param="text is not set")
        if not content:
            raise empty_array(f"messages[{index}].content")
        for place, part in enumerate(content):
            check_part(f"messages[{index}].content[{place}]", index, role, part)
    elif not isinstance(content, str):
        raise invalid_type(f"messages[{index}].content", "a string or array of objects", content)
    may_be_empty = role == "tool" or bool(message.get("tool_calls")) or not rules.non_empty
    if not content and not may_be_empty:
        raise Refused(
            f"Invalid request: the message at position {index} with role '{role}' must not be empty"
        )


def null_content(index: int) -> Refused:
    """Content that may not be null is."""
    return Refused(
        "Invalid value for 'content': expected a string, got null.",
        param=f"messages.[{index}].content",
    )


def check_part(where: str, index: int, role: str, part: Any) -> None:
    """One part of a content list."""
    if not isinstance(part, dict):
        raise invalid_type(where, "an object", part)
    kind = part.get("type")
    if kind == "image_url" and role != "user":
        raise Refused(
            f"Invalid 'messages[{index}]'. Image URLs are only allowed for messages with role "
            f"'user', but this message with role '{role}' contains an image URL.",
            param=f"messages[{index}]",
            code="invalid_value",
        )
    supported = PARTS.get(role, ("text",))
    if kind not in supported:
        names = ", ".join(f"'{name}'" for name in supported)
        raise Refused(
            f"Invalid value: '{kind}'. Supported values are: {names}.",
            param=f"{where}.type",
            code="invalid_value",
        )
    if kind == "text" and not isinstance(part.get("text"), str):
        raise Refused(
            f"Missing required parameter: '{where}.text'.",
            param=f"{where}.text",
            code="missing_required_parameter",
        )
    if kind == "image_url":
        check_image(where, part)


def check_image(where: str, part: Json) -> None:
    """An image by URL, or in a data URL of a type and encoding that can be read."""
    holder = part.get("image_url")
    if not isinstance(holder, dict):
        raise invalid_type(f"{where}.image_url", "an object", holder)
    url = holder.get("url")
    if isinstance(url, str) and url.startswith(("https://", "http://")):
        return
    found = DATA_URL.fullmatch(url or "")
    if found is None:
        raise Refused(
            f"Invalid '{where}.image_url.url'. Expected a valid URL, but got a value with an "
            "invalid format.",
            param=f"{where}.image_url.url",
            code="invalid_value",
        )
    if found["type"] not in IMAGE_TYPES:
        raise Refused(
            "You uploaded an unsupported image. Please make sure your image has of one the "
            "following formats: ['png', 'jpeg', 'gif', 'webp'].",
            code="invalid_image_format",
        )
    try:
        base64.b64decode(found["data"], validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refused(
            "Invalid base64 image_url.", param=f"{where}.image_url.url", code="invalid_base64"
        ) from error


def check_calls(where: str, calls: Any, rules: MessageRules) -> None:
    """The calls of an assistant message."""
    if not calls:
        raise empty_array(f"{where}.tool_calls")
    ids: set[str] = set()
    for place, call in enumerate(calls):
        here = f"{where}.tool_calls[{place}]"
        check_id(f"{here}.id", call.get("id"), rules)
        if call["id"] in ids:
            raise Refused(f"Duplicate value for 'tool_call_id' of '{call['id']}' in {where}.")
        ids.add(call["id"])
        if call.get("type") != "function":
            raise Refused(
                f"Invalid value: '{call.get('type')}'. Supported values are: 'function' and "
                "'custom'.",
                param=f"{here}.type",
                code="invalid_value",
            )
        function = call.get("function") or {}
        check_name(f"{here}.function.name", function.get("name"))
        check_arguments(f"{here}.function.arguments", function.get("arguments"), rules)


def check_id(where: str, id_: Any, rules: MessageRules) -> None:
    """An id of a call."""
    if not isinstance(id_, str):
        raise invalid_type(where, "a string", id_)
    if rules.nine_character_ids and not NINE.fullmatch(id_):
        raise Refused(
            f"Tool call id was {id_} but must be a-z, A-Z, 0-9, with a length of 9.",
            code="3280",
        )
    if not id_:
        raise empty_string(where)
    if len(id_) > rules.max_id:
        raise too_long(where, id_, rules.max_id)


def check_arguments(where: str, arguments: Any, rules: MessageRules) -> None:
    """Arguments are a string; on strict servers one that holds a JSON object."""
    if not isinstance(arguments, str):
        raise invalid_type(where, "a string", arguments)
    if not rules.json_arguments:
        return
    try:
        value = json.loads(arguments)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Refused(
            '<400> InternalError.Algo.InvalidParameter: The "function.arguments" parameter of the '
            "code model must be in JSON format.",
            param=where,
            code="invalid_parameter_error",
        )
