"""A chat's lines, `key: value`, read as YAML once their slips are put right (`lines`). Everything that
is wrong is reported at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from bridge.limits.keys import BY_NAME, DEFAULT, KEYS, Key
from bridge.limits.kinds import Known
from bridge.limits.lines import begins, is_key_line, mended, plain_key, says_something
from bridge.limits.numbers import Wrong
from bridge.suggestions import nearest
from bridge.texts import Say, Wording, wording
from bridge.yaml_source import Document, Fault, Unparsable, Value, parse, shown

MOST_BYTES = 8 * 1024  # of a chat's file
MOST_APART = 2 * len(KEYS)  # keys that are read by themselves, some 0.7 ms each


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
    if not says_something(lines):
        return Reading()
    try:
        document = parse("\n".join(lines).encode())
    except Unparsable as error:
        document = _by_keys(lines, error.fault)
    return _understood(document, known, keys)


def _by_keys(lines: Sequence[str], fault: Fault) -> Document:
    """The lines of each key read by themselves, so that one that is no YAML hides no fault of another.
    `fault`: that of the whole, which is told where each key by itself is right."""
    starts = [n for n, line in enumerate(lines) if begins(line, lines[:n])]
    document, unparsable = Document(), list[Fault]()
    if len(starts) > MOST_APART:
        return Document(faults=[fault])
    for start, end in pairwise((0, *starts, len(lines))):
        if not says_something(lines[start:end]):
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
    if not line.startswith(" ") or not is_key_line(line):
        return fault
    return Fault.of(fault.line, fault.column, fault.key, wording("fault_indented"))


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
