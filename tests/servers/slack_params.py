"""Reading the parameters of a request."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from tests.servers.slack_render import Json
from tests.servers.slack_state import SlackError


def refuse_arguments(*problems: str) -> NoReturn:
    """Raises `invalid_arguments` as Slack words it."""
    messages = [f"[ERROR] {problem}" for problem in problems]
    raise SlackError("invalid_arguments", response_metadata={"messages": messages})


def want(params: Json, name: str) -> str:
    """A required parameter. Raises `invalid_arguments`."""
    value = params.get(name)
    if value in (None, ""):
        refuse_arguments(f"missing required field: {name}")
    return str(value)


def flag(params: Json, name: str) -> bool:
    """A boolean parameter; `1` and `true` are true."""
    return str(params.get(name, "")).lower() in ("1", "true")


def number(params: Json, name: str, default: int, most: int) -> int:
    """A count between 1 and `most`. Raises `invalid_limit`."""
    try:
        value = int(params.get(name) or default)
    except ValueError:
        raise SlackError("invalid_limit") from None
    if not 1 <= value <= most:
        raise SlackError("invalid_limit")
    return value


def as_json(value: Any, otherwise: Any) -> Any:
    """A parameter that may be JSON in a string."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            refuse_arguments("not valid JSON")
    return otherwise if value is None else value


def page(items: list[Any], params: Json, most: int = 999) -> tuple[list[Any], str]:
    """A page of `limit` items from `cursor` on, and the next cursor or an empty string."""
    limit = number(params, "limit", 100, most)
    cursor = str(params.get("cursor") or "0").removeprefix("next:")
    if not cursor.isdigit():
        raise SlackError("invalid_cursor")
    start = int(cursor)
    more = f"next:{start + limit}" if start + limit < len(items) else ""
    return items[start : start + limit], more
