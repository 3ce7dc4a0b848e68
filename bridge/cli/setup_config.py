"""Writing the configuration for `galata setup`: a fresh one, or changes to what is there.

A change replaces or inserts the characters that it is about, at the places that ruamel finds. So all
else stays as the person left it; ruamel's round trip would set it anew, and lose the comments
within `{...}`.
"""

# ruamel's nodes carry no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode

from bridge.cli.options import CommandFailed
from bridge.yaml_source import Path, Unparsable, Value, parse

Section = Mapping[str, "str | Section"]
Edits = Mapping[Path, str | Section]

_HEADER = "# Every key: config.example.yaml. The secrets are in .env.\n"
_LEVEL = 2  # columns
_BOM = "\ufeff"


class Quoted(str):
    """A text that stands in quotation marks, whatever it holds."""

    __slots__ = ()


class OneLine(dict[str, str]):
    """A section that stands in one line."""


def literal(text: str) -> Quoted:
    """A text in which nothing is a reference."""
    return Quoted(text.replace("${", "$${"))


def reference(variable: str) -> Quoted:
    """A secret that is kept in a variable."""
    return Quoted("${" + variable + "}")


def new_text(section: Section) -> str:
    """A configuration that says this, and where to read on."""
    return _HEADER + "".join(f"{line}\n" for line in _lines(section))


def edited(text: str, edits: Edits) -> str:
    """A valid configuration with these keys set; a section on the way that lacks is made.

    Raises `CommandFailed` when the result would not say exactly that.
    """
    values = parse(text.encode()).values
    mark = _BOM if text.startswith(_BOM) else ""
    result = text.removeprefix(_BOM)
    try:
        for path, value in edits.items():
            result = _with(result, path, value)
            _note(values, path, value)
        says_that = parse(result.encode()).values == values
    except (YAMLError, Unparsable):
        says_that = False
    if not says_that:
        raise CommandFailed("the configuration cannot be changed by setup: change it by hand")
    return mark + result


def _note(values: dict[str, Value], path: Path, value: str | Section) -> None:
    place = values
    for part in path[:-1]:
        place = cast("dict[str, Value]", place.setdefault(str(part), {}))
    place[str(path[-1])] = cast("Value", value)


def _with(text: str, path: Path, value: str | Section) -> str:
    """The text with one key set."""
    node: Any = YAML(typ="safe", pure=True).compose(text)
    for depth, part in enumerate(path):
        child = _child(node, part)
        if child is None:
            for outer in reversed(path[depth + 1 :]):
                value = {str(outer): value}
            return _inserted(text, node, {str(part): value})
        node = child
    start, end = int(node.start_mark.index), int(node.end_mark.index)
    kept = text[
        len(text[:end].rstrip()) : end
    ]  # a block of lines (| or >) ends with its line break
    return text[:start] + _flow(value) + kept + text[end:]


def _child(node: Any, key: str | int) -> Any:
    pairs = cast("list[tuple[Any, Any]]", node.value) if isinstance(node, MappingNode) else []
    return next((value for name, value in pairs if name.value == key), None)


def _inserted(text: str, node: Any, section: Section) -> str:
    """The text with a key more at the end of the section `node`."""
    if node.flow_style:
        inner = _flow(section)[1:-1]
        if not node.value:
            at = int(node.start_mark.index) + 1
            return text[:at] + inner + text[at:]
        at = int(node.value[-1][1].end_mark.index)
        return f"{text[:at]}, {inner}{text[at:]}"
    column = int(node.value[0][0].start_mark.column)
    end = _end_of_lines(text, _last(node), column)
    newline = "\r\n" if "\r\n" in text else "\n"
    before = text[:end] if text[:end].endswith("\n") else text[:end] + newline
    added = "".join(f"{' ' * column}{line}{newline}" for line in _lines(section))
    return before + added + text[end:]


def _last(node: Any) -> int:
    """Where the last value within the node ends."""
    while not isinstance(node, ScalarNode) and not node.flow_style and node.value:
        node = node.value[-1][1] if isinstance(node, MappingNode) else node.value[-1]
    return int(node.end_mark.index)


def _end_of_lines(text: str, end: int, column: int) -> int:
    """The end of the line at `end`, and of the comments that follow it and stand deeper than
    `column`: they belong to what is before."""
    if not text[:end].endswith("\n"):
        end = text.find("\n", end) + 1 or len(text)
    comments = re.compile(rf"(?:[ \t\r]*\n)*[ ]{{{column + 1},}}#[^\n]*(?:\n|\Z)")
    while found := comments.match(text, end):
        end = found.end()
    return end


def _lines(section: Section) -> Iterator[str]:
    for key, value in section.items():
        if isinstance(value, str | OneLine):
            yield f"{key}: {_flow(value)}"
        else:
            yield f"{key}:"
            yield from (f"{' ' * _LEVEL}{line}" for line in _lines(value))


def _flow(value: str | Section) -> str:
    if isinstance(value, Quoted):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        return value
    return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
