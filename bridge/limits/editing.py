"""Changes of a chat's lines: only the keys that are named change; comments and order stay. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from bridge.limits.keys import BY_NAME, Key
from bridge.limits.lines import plain_key
from bridge.limits.lists import People
from bridge.limits.policy import Values, clamped
from bridge.limits.reading import Reading
from bridge.texts import wording
from bridge.yaml_source import Fault

_KEY = re.compile(r"""["']?(?P<key>[A-Za-z][\w \t-]*?)["']?[ \t]*[:：](?:\s|$)""")
_COMMENT = re.compile(r"\s+#.*$")


def edited(text: str, values: Values, removed: Iterable[str]) -> str:
    """The text with these values, and without the keys of `removed`."""
    lines = text.splitlines()
    wanted: dict[str, str | None] = dict.fromkeys(removed)
    wanted |= {name: BY_NAME[name].show(value) for name, value in values.items()}
    for name, shown in wanted.items():
        lines = _with(lines, name, shown)
    return "\n".join(lines).strip("\n") + "\n" if any(map(str.strip, lines)) else ""


def _with(lines: list[str], name: str, shown: str | None) -> list[str]:
    span = _span(lines, name)
    if span is None:
        return lines if shown is None else [*lines, f"{name}: {shown}"]
    start, end = span
    comment = _COMMENT.search(lines[start])
    plain = end == start + 1 and not re.search("[\"']", lines[start])
    tail = comment[0] if comment and plain else ""
    return [*lines[:start], *([] if shown is None else [f"{name}: {shown}{tail}"]), *lines[end:]]


def _span(lines: list[str], name: str) -> tuple[int, int] | None:
    """Where the key stands, with the lines that go on with its value."""
    for start, line in enumerate(lines):
        found = _KEY.match(line)
        if found is None or plain_key(found["key"]) != name:
            continue
        end = start + 1
        for number in range(start + 1, len(lines)):
            if lines[number][:1] in (" ", "\t", "-"):
                end = number + 1
            elif lines[number].strip():
                break
        return start, end
    return None


def passes(key: Key[Any], value: Any, ceilings: Values) -> bool:
    """Whether it is more than a ceiling allows."""
    return key.name in ceilings and clamped(key, value, ceilings[key.name]) != value


def too_wide(reading: Reading, ceilings: Values) -> list[Fault]:
    """What nobody may set here, since it would pass a ceiling."""
    wide = [(BY_NAME[name], value) for name, value in reading.values.items()]
    return [
        Fault.of(
            *reading.places[key.name],
            key.name,
            wording("fault_above", value=key.show(value), most=key.show(ceilings[key.name])),
        )
        for key, value in wide
        if passes(key, value, ceilings)
    ]


def of_everybody(reading: Reading, chat: str) -> list[Fault]:
    """Where a group's own id is to be a person's: all its anonymous admins write with it."""
    group = chat if chat.startswith("-") else ""
    return [
        Fault.of(*reading.places[name], name, wording("fault_shared_id", id=chat))
        for name, value in reading.values.items()
        if group and group in _people(value)
    ]


def _people(value: Any) -> set[str]:
    ids = value.ids if isinstance(value, People) else value
    if not isinstance(ids, frozenset):
        return set()
    return {str(one).partition(" ")[0] for one in cast("frozenset[str]", ids)}


def differences(before: Values, after: Values) -> list[tuple[str, str, str]]:
    """The keys that differ, each with what stood there before and stands there after; empty where
    nothing did."""
    names = [name for name in BY_NAME if before.get(name) != after.get(name)]
    return [(name, _in(before, name), _in(after, name)) for name in names]


def _in(values: Mapping[str, Any], name: str) -> str:
    return BY_NAME[name].show(values[name]) if name in values else ""
