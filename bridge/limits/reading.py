"""A chat's lines, `key: value`, read leniently where only one meaning is possible.

What a phone, a text program or a chat does to a text is mended line by line, so that places stay right;
then it is YAML. Everything that is wrong is reported at once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from bridge.limits.keys import BY_NAME, DEFAULT, KEYS, Key
from bridge.limits.kinds import Known, Wrong, quoted
from bridge.suggestions import nearest
from bridge.texts import Say, Wording, wording
from bridge.yaml_source import Document, Fault, Unparsable, Value, parse, shown

MOST_BYTES = 8 * 1024  # of a chat's file
MOST_APART = 2 * len(KEYS)  # keys that are read by themselves, some 0.7 ms each
_MARKS = "\"'“”„«»‘’‚"
_KEY_LINE = re.compile(
    rf"[{_MARKS}]?(?P<key>[A-Za-z][\w \t-]*?)[{_MARKS}]?[ \t]*[:：][ \t]*(?P<value>.*?)[ \t]*"
)
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_QUOTES = {"“": "”", "„": "“”", "«": "»", "‘": "’", "‚": "‘’", "”": "”", "’": "’"}
_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2007": " ", "\u3000": " "})
_INVISIBLE = re.compile("[\u200b\u200c\u200d\u2060\ufeff]")
_QUOTED = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|[|>][-+\d]*\n[^\0]*")  # a value as YAML has it
_NO_TEXT = re.compile(
    r"[@`*%{}\[\],]|[-?][ \t]"
)  # with which no text of one line can begin in YAML
_FENCES = ("```", "~~~")
_FENCE = re.compile(rf"\s*(?:{'|'.join(_FENCES)})[\w-]*\s*")
_BLOCK = re.compile(r"[:：][ \t]*[|>][-+\d]*[ \t]*(?:#.*)?$")  # a text in the lines below begins
_TEXTS = frozenset(("instructions",))  # keys whose values may hold anything


@dataclass(frozen=True, slots=True)
class Reading:
    """What was understood: `values` by key, `removed` keys (`key: default`), and what is wrong.
    `places`: line and column of each key, from 1."""

    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    removed: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    places: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


def read(raw: bytes, known: Known, keys: Collection[Key[Any]] = KEYS) -> Reading:
    """The lines of a file or message in which `keys` may stand."""
    if len(raw) > MOST_BYTES:
        return _failed(Fault.of(1, 1, "syntax", wording("fault_8_kb")))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        return _failed(Fault.of(line, 1, "syntax", wording("fault_utf8")))
    lines = mended(text)
    if not _says_something(lines):
        return Reading()
    try:
        document = parse("\n".join(lines).encode())
    except Unparsable as error:
        document = _by_keys(lines, error.fault)
    return _understood(document, known, keys)


def _by_keys(lines: Sequence[str], fault: Fault) -> Document:
    """The lines of each key read by themselves, so that one that is no YAML hides no fault of another.
    `fault`: that of the whole, which is told where each key by itself is right."""
    starts = [n for n, line in enumerate(lines) if _begins(line, lines[:n])]
    document, unparsable = Document(), list[Fault]()
    if len(starts) > MOST_APART:
        return Document(faults=[fault])
    for start, end in pairwise((0, *starts, len(lines))):
        if not _says_something(lines[start:end]):
            continue
        try:
            document.add(parse("\n".join(lines[start:end]).encode()), start)
        except Unparsable as error:
            unparsable.append(replace(error.fault, line=error.fault.line + start))
    document.faults += unparsable or [_of_all(fault, lines)]
    return document


def _of_all(fault: Fault, lines: Sequence[str]) -> Fault:
    """A fault that no key has by itself: mostly that one stands deeper than the others."""
    line = lines[fault.line - 1] if fault.line <= len(lines) else ""
    if not line.startswith(" ") or _KEY_LINE.fullmatch(line.strip()) is None:
        return fault
    return Fault.of(fault.line, fault.column, fault.key, wording("fault_indented"))


def _begins(line: str, before: Sequence[str]) -> bool:
    """Whether a key begins here; what stands deeper may be a line of the text before (`|`, `>`)."""
    if _KEY_LINE.fullmatch(line.strip()) is None:
        return False
    above = next((one for one in reversed(before) if not one.startswith(" ")), "")
    return not (line.startswith(" ") and _BLOCK.search(above))


def _says_something(lines: Iterable[str]) -> bool:
    return any(_COMMENT.sub("", line).strip() for line in lines)


def mended(text: str) -> list[str]:
    """The lines with their obvious slips put right."""
    lines = [_INVISIBLE.sub("", line.translate(_SPACES)) for line in re.split(r"\r\n|\r|\n", text)]
    lines = _unfenced(lines)
    first = next((line for line in lines if _COMMENT.sub("", line).strip()), "")
    margin = first[: len(first) - len(first.lstrip(" "))]  # of all keys
    return [
        margin + _mended(line.removeprefix(margin)) if line.startswith(margin) else line
        for line in lines
    ]


def _unfenced(lines: Sequence[str]) -> list[str]:
    """Without the fences of a block of code, which may stand in the lines that they enclose."""
    plain = ["" if _FENCE.fullmatch(line) else line for line in lines]
    said = [n for n, line in enumerate(plain) if line.strip()]
    if not said:
        return plain
    first, last = said[0], said[-1]
    opened = plain[first].lstrip()
    plain[first] = opened[3:] if opened.startswith(_FENCES) else plain[first]
    key = plain_key(re.split("[:：]", plain[last])[0])
    is_fenced = any(lines[n] != plain[n] for n in range(first + 1))
    if (is_fenced or key not in _TEXTS) and plain[last].rstrip().endswith(_FENCES):
        plain[last] = plain[last].rstrip()[:-3]
    return plain


def _mended(line: str) -> str:
    found = _KEY_LINE.fullmatch(line)
    if found is None or not found["value"]:
        return line if found is None else f"{found['key']}:"
    value = _straight(found["value"])
    is_text = plain_key(found["key"]) in _TEXTS
    if value[0] in "@`" or (is_text and _is_no_yaml(value)):
        value = quoted(_COMMENT.sub("", value).strip())
    return f"{found['key']}: {value}"


def _is_no_yaml(text: str) -> bool:
    """What can mean nothing but the text that it is."""
    if _NO_TEXT.match(text):
        return True
    return re.search(r":\s|:$", text) is not None and text[0] not in "\"'|>"


def typed(key: str, value: str) -> str:
    """The line of a key whose value was typed by itself: to a text belongs everything, also what YAML
    would take for a comment or another line."""
    value = value.strip()
    is_text = plain_key(key) in _TEXTS and value.lower() not in ("", DEFAULT)
    if is_text and not _QUOTED.fullmatch(value) and _straight(value) == value:
        value = quoted(value)
    return f"{key}: {value}"


def _straight(value: str) -> str:
    """Curly quotes around the whole value become straight ones."""
    closing = _QUOTES.get(value[0])
    if closing is None or len(value) < 2 or value[-1] not in closing + '"':
        return value
    return quoted(value[1:-1]) if value[1:-1] else '""'


def plain_key(written: str) -> str:
    """`Cost per day-USD` -> `cost_per_day_usd`."""
    return re.sub(r"[\s_-]+", "_", written.strip().lower()).strip("_")


def line_of(fault: Fault, say: Say) -> str:
    """A fault as the chat is told it."""
    return say("limits_fault", line=fault.line, key=fault.key, told=fault.said(say))


def _failed(fault: Fault) -> Reading:
    return Reading(faults=(fault,))


def _understood(document: Document, known: Known, keys: Collection[Key[Any]]) -> Reading:
    allowed = {key.name: key for key in keys}
    values: dict[str, Any] = {}
    removed: list[str] = []
    faults = [one for one in (_of_empty(fault, allowed) for fault in document.faults) if one]
    first: dict[str, tuple[int, int]] = {}
    for (written,), (line, column) in _of_top(document):
        name = plain_key(written)
        if name in first:
            said = wording("fault_twice", first=first[name][0])
            faults.append(Fault.of(line, column, name, said))
            continue
        first[name] = line, column
        key = allowed.get(name)
        if key is None:
            faults.append(Fault.of(line, column, shown(name), _unknown(name, allowed)))
        elif written in document.values:
            _take(key, document.values[written], (line, column), known, values, removed, faults)
    return Reading(values, tuple(removed), tuple(sorted(faults)), first)


def _of_empty(fault: Fault, allowed: Mapping[str, Key[Any]]) -> Fault | None:
    """Of a key without a value what may stand there; None of an unknown key, which is said once."""
    if fault.wording is None or fault.wording.key != "fault_empty":
        return fault
    name = plain_key(fault.key)
    if name not in allowed:
        return None
    said = wording("fault_empty_key", words=allowed[name].kind.words)
    return Fault.of(fault.line, fault.column, name, said)


def _of_top(document: Document) -> list[tuple[tuple[str], tuple[int, int]]]:
    return [
        ((str(path[0]),), place) for path, place in document.positions.items() if len(path) == 1
    ]


def _take(
    key: Key[Any],
    written: Value,
    place: tuple[int, int],
    known: Known,
    values: dict[str, Any],
    removed: list[str],
    faults: list[Fault],
) -> None:
    if isinstance(written, str) and written.strip().lower() == DEFAULT:
        removed.append(key.name)
        return
    try:
        values[key.name] = key.kind.read(written, known)
    except Wrong as error:
        faults.append(Fault.of(*place, key.name, error.wording))


def _unknown(name: str, allowed: Collection[str]) -> Wording:
    if name in BY_NAME:
        return wording("fault_not_here", allowed=", ".join(allowed))
    near = nearest(name, allowed)
    if near is None:
        return wording("fault_unknown")
    return wording("fault_unknown_near", near=near)
