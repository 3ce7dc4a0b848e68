"""Reading YAML so that nothing is guessed: texts as written, each with its place in the file.

YAML 1.2 by ruamel's `compose`, in one walk that gives values, positions, duplicate and empty keys.
Numbers, dates and words such as `no` stay the text that was written; the models convert it.
Anchors, tags, directives and second documents are refused.
"""

# ruamel's nodes and events carry no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from bridge.texts import Say, Wording, wording

Value = str | list["Value"] | dict[str, "Value"]
Path = tuple[str | int, ...]

MOST_BYTES = 256 * 1024  # ruamel reads about 200 kB a second
MOST_LEVELS = 16  # the configuration has five
_MOST_OF_A_KEY = 60  # characters of a key that are shown
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})  # YAML 1.2 core schema
_SYNTAX = "syntax"


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """Something wrong at `line` and `column`, counted from 1; 0 where no place in a file is meant.

    `message` says what is wrong and what is allowed, in English, and never repeats a value; `wording`
    is the same for every language, where a chat may be told it.
    """

    line: int
    column: int
    key: str
    message: str
    wording: Wording | None = field(default=None, compare=False)

    @classmethod
    def of(cls, line: int, column: int, key: str, said: str | Wording) -> Fault:
        """With what is said of it."""
        return cls(line, column, key, str(said), said if isinstance(said, Wording) else None)

    def said(self, say: Say) -> str:
        """What is wrong, in the language of `say`."""
        return self.message if self.wording is None else say.word(self.wording)


class Unparsable(Exception):
    """The text is no YAML that is taken here; `fault` says where and why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class _NotTaken:
    """An anchor, alias or tag. `lost`: the value is elsewhere, or nowhere."""

    line: int
    column: int
    message: Wording
    lost: bool = False


@dataclass(slots=True)
class Document:
    """A parsed file: `values`, the (line, column) of each key or list item by its path, the faults
    that were met on the way, the keys whose values were left out for one, and what of YAML is not
    taken here, by the id of its node."""

    values: dict[str, Value] = field(default_factory=dict[str, Value])
    positions: dict[Path, tuple[int, int]] = field(default_factory=dict[Path, tuple[int, int]])
    faults: list[Fault] = field(default_factory=list[Fault])
    left_out: set[Path] = field(default_factory=set[Path])
    not_taken: Mapping[int, _NotTaken] = field(default_factory=dict[int, "_NotTaken"])

    def leave_out(self, path: Path, message: str | Wording) -> None:
        """Note a fault of the key at `path`, whose value the caller leaves out."""
        self.faults.append(self.fault(path, message))
        self.left_out.add(path)

    def add(self, other: Document, line: int) -> None:
        """The keys of a text that begins after `line` lines of this one's file."""
        self.faults += [replace(fault, line=fault.line + line) for fault in other.faults]
        for path, (at, column) in other.positions.items():
            if len(path) == 1 and path in self.positions:
                said = wording("fault_twice", first=self.positions[path][0])
                self.faults.append(Fault.of(at + line, column, dotted(path), said))
            self.positions.setdefault(path, (at + line, column))
        self.values = {**other.values, **self.values}

    def fault(self, path: Path, message: str | Wording) -> Fault:
        """A fault of the key at `path`, placed at the nearest parent that is in the file."""
        place = path
        while place and place not in self.positions:
            place = place[:-1]
        line, column = self.positions.get(place, (1, 1))
        return Fault.of(line, column, dotted(path), message)


def dotted(path: Path) -> str:
    """`channels.telegram.owners[0]`; what cannot be printed is replaced."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{shown(part)}"
    return text.removeprefix(".")


def shown(key: str) -> str:
    """A key as a message shows it: printable, on one line, of bounded length."""
    text = "".join(char if char.isprintable() else "?" for char in key[: _MOST_OF_A_KEY + 1])
    return text if len(text) <= _MOST_OF_A_KEY else f"{text[:_MOST_OF_A_KEY]}…"


def parse(raw: bytes) -> Document:
    """The document in `raw`. Raises `Unparsable`."""
    if len(raw) > MOST_BYTES:
        raise Unparsable(Fault.of(1, 1, _SYNTAX, wording("fault_too_large", bytes=MOST_BYTES)))
    text = _decode(raw.removeprefix(b"\xef\xbb\xbf"))
    yaml = YAML(typ="safe", pure=True)
    not_taken: dict[int, _NotTaken] = {}

    class Composer(_PlainComposer):
        found = not_taken

    yaml.Composer = Composer
    try:
        root: Any = yaml.compose(text)
    except MarkedYAMLError as error:
        raise Unparsable(_syntax_fault(error)) from None
    except ReaderError as error:
        raise Unparsable(
            _at_offset(text, int(error.position), wording("fault_unprintable"))
        ) from None
    except YAMLError:
        raise Unparsable(Fault.of(1, 1, _SYNTAX, wording("fault_no_yaml"))) from None
    return _document(root, not_taken)


def _document(root: Any, not_taken: Mapping[int, _NotTaken]) -> Document:
    if root is None:
        raise Unparsable(Fault(1, 1, _SYNTAX, "the file is empty; see config.example.yaml"))
    if not isinstance(root, MappingNode):
        raise Unparsable(Fault.of(*_place(root), _SYNTAX, wording("fault_no_lines")))
    document = Document(not_taken=not_taken)
    _refused(root, (), document)
    document.values = _mapping(root, (), document)
    return document


def _value(node: Any, path: Path, document: Document) -> Value | None:
    """The node's value; None, with a fault, when there is none."""
    if _refused(node, path, document):
        document.left_out.add(path)
        return None
    if isinstance(node, MappingNode):
        return _mapping(node, path, document)
    if isinstance(node, SequenceNode):
        items: list[Value] = []
        for index, child in enumerate(cast("list[Any]", node.value)):
            document.positions[*path, index] = _place(child)
            value = _value(child, (*path, index), document)
            items.append("" if value is None else value)
        return items
    if not _is_empty(node):
        return str(node.value)
    document.leave_out(path, wording("fault_empty"))
    return None


def _mapping(node: Any, path: Path, document: Document) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for key_node, value_node in cast("list[tuple[Any, Any]]", node.value):
        if not isinstance(key_node, ScalarNode) or _is_empty(key_node):
            line, column = _place(key_node)
            said = wording("fault_key_no_text")
            document.faults.append(Fault.of(line, column, dotted(path) or _SYNTAX, said))
            continue
        key = str(key_node.value)
        here = (*path, key)
        if _refused(key_node, here, document):
            continue
        if here in document.positions:
            first, (line, column) = document.positions[here][0], _place(key_node)
            said = wording("fault_twice", first=first)
            document.faults.append(Fault.of(line, column, dotted(here), said))
            continue
        document.positions[here] = _place(key_node)
        value = _value(value_node, here, document)
        if value is not None:
            values[key] = value
    return values


def _refused(node: Any, path: Path, document: Document) -> bool:
    """Whether the node's value is lost for what is not taken; a fault for anything of that kind."""
    found = document.not_taken.get(id(node))
    if found is None:
        return False
    where = (found.line, found.column, dotted(path) or _SYNTAX)
    document.faults.append(Fault.of(*where, found.message))
    return found.lost


def _is_empty(node: Any) -> bool:
    return not node.value or (node.style is None and node.value in _NULLS)


def _place(node: Any) -> tuple[int, int]:
    return int(node.start_mark.line) + 1, int(node.start_mark.column) + 1


class _PlainComposer(Composer):
    """Refuses what a configuration never needs and what could make a small file a large one."""

    found: dict[int, _NotTaken]
    _levels = 0

    def compose_document(self) -> Any:
        """The document, if no directive stands before it."""
        start: Any = self.parser.peek_event()
        if start.version is not None or start.tags:
            raise Unparsable(Fault.of(1, 1, _SYNTAX, wording("fault_directive")))
        return super().compose_document()

    def compose_node(self, parent: Any, index: Any) -> Any:
        """The node, if it is a plain one."""
        event: Any = self.parser.peek_event()
        if isinstance(event, AliasEvent):
            self.parser.get_event()
            # Never the node that it stands for: a few lines of aliases would be millions of values.
            return self._not_taken(ScalarNode("", "", event.start_mark), event, _ANCHORS, lost=True)
        if self._levels >= MOST_LEVELS:
            said = wording("fault_levels", most=MOST_LEVELS)
            raise Unparsable(Fault.of(*_place(event), _SYNTAX, said))
        anchored, event.anchor = event.anchor is not None, None
        self._levels += 1
        node: Any = super().compose_node(parent, index)
        self._levels -= 1
        if anchored or event.ctag is not None:
            self._not_taken(node, event, _ANCHORS if anchored else _TAGS)
        return node

    def _not_taken(self, node: Any, event: Any, message: Wording, *, lost: bool = False) -> Any:
        self.found[id(node)] = _NotTaken(*_place(event), message, lost)
        return node


_ANCHORS = wording("fault_anchors")
_TAGS = wording("fault_tags")


def _decode(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8")
        raise Unparsable(_at_offset(before, len(before), wording("fault_utf8"))) from None


def _at_offset(text: str, offset: int, said: Wording) -> Fault:
    before = text[:offset]
    column = offset - (before.rfind("\n") + 1) + 1
    return Fault.of(before.count("\n") + 1, column, _SYNTAX, said)


# What ruamel says, and what helps. Its other messages quote single characters only.
_HINTS: Mapping[str, Wording] = {
    "found character '\\t'": wording("fault_tab"),
    "mapping values are not allowed here": wording("fault_second_colon"),
    "expected a single document": wording("fault_second_document"),
    "found unexpected end of stream": wording("fault_open_quote"),
    "that cannot start any token": wording("fault_first_sign"),
    "tag handle": wording("fault_tags"),
    "expected ',' or ']'": wording("fault_open_list"),
    "found '<stream end>'": wording("fault_open_list"),
    "expected <block end>": wording("fault_no_plain_text"),
    "entries are not allowed here": wording("fault_no_plain_text"),
    "mapping keys are not allowed here": wording("fault_no_plain_text"),
    "expected a comment or a line break": wording("fault_no_plain_text"),
    "could not find expected ':'": wording("fault_no_key_in_line"),
}


def _syntax_fault(error: MarkedYAMLError) -> Fault:
    said = f"{error.problem or ''} {error.context or ''}"
    mark: Any = error.problem_mark or error.context_mark
    line, column = (int(mark.line) + 1, int(mark.column) + 1) if mark else (1, 1)
    for words, hint in _HINTS.items():
        if words in said:
            return Fault.of(line, column, _SYNTAX, hint)
    told = " ".join(str(error.problem or error.context).split())
    return Fault.of(line, column, _SYNTAX, wording("fault_syntax", told=told))
