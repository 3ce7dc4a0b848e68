"""How people appear before the model: a name and a number within the conversation, never an id."""

from __future__ import annotations

from memory.text.own_names import plain_name as plain_name


def label(name: str, number: int) -> str:
    """`Ana#2`: the `plain_name` with a number."""
    return f"{plain_name(name)}#{number}"
