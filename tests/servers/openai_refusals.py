"""The schema errors of Chat Completions, in its words; shared by the rule modules."""

from __future__ import annotations

import re
from typing import Any

from tests.servers.llm_request import Refused

NAME = re.compile(r"[a-zA-Z0-9_-]+")
MAX_NAME = 64


def check_name(where: str, name: Any) -> None:
    """The name of a function."""
    if not isinstance(name, str):
        raise invalid_type(where, "a string", name)
    if not name:
        raise empty_string(where)
    if len(name) > MAX_NAME:
        raise too_long(where, name, MAX_NAME)
    if not NAME.fullmatch(name):
        raise pattern(where, "^[a-zA-Z0-9_-]+$")


def pattern(where: str, expected: str) -> Refused:
    """A string of a wrong form."""
    return Refused(
        f"Invalid '{where}': string does not match pattern. Expected a string that matches the "
        f"pattern '{expected}'.",
        param=where,
        code="invalid_value",
    )


def too_long(where: str, value: str, limit: int) -> Refused:
    """A string over its limit."""
    return Refused(
        f"Invalid '{where}': string too long. Expected a string with maximum length {limit}, but "
        f"got a string with length {len(value)} instead.",
        param=where,
        code="string_above_max_length",
    )


def empty_string(where: str) -> Refused:
    """A string that may not be empty is."""
    return Refused(
        f"Invalid '{where}': empty string. Expected a string with minimum length 1, but got an "
        "empty string instead.",
        param=where,
        code="empty_string",
    )


def empty_array(where: str) -> Refused:
    """A list that may not be empty is."""
    return Refused(
        f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an "
        "empty array instead.",
        param=where,
        code="empty_array",
    )


def invalid_type(where: str, expected: str, value: Any) -> Refused:
    """A value of a wrong type."""
    names = {
        dict: "an object",
        list: "an array",
        int: "an integer",
        str: "a string",
        bool: "a boolean",
    }
    got = "null" if value is None else names.get(type(value), type(value).__name__)
    return Refused(
        f"Invalid type for '{where}': expected {expected}, but got {got} instead.",
        param=where,
        code="invalid_type",
    )
