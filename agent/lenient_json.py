"""Reads JSON with slips of syntax, without a guess.

Taken: single quotes, bare keys, commas too many or missing, comments, `True`, `False` and `None`,
control characters in strings, `\\'`, closing brackets too many at the end. Everything else that is no
JSON gives nothing, because a reader would have to guess what was meant.
"""

from __future__ import annotations

import json
import math
import re
from typing import cast

from agent.messages import JsonObject, JsonValue

_TOKEN = re.compile(
    r"""
    (?P<nothing> [\s,\ufeff]+ | //[^\n]* | /\*.*?\*/ )
  | (?P<string>  "[^"\\]*(?:\\.[^"\\]*)*" | '[^'\\]*(?:\\.[^'\\]*)*' )
  | (?P<key>     [A-Za-z_$][A-Za-z0-9_$]* (?=\s*:) )
  | (?P<mark>    [{}\[\]:] )
  | (?P<word>    (?:true|false|null|True|False|None)\b )
  | (?P<number>  -?[0-9][0-9.eE]* (?: (?<=[eE])[+-][0-9]+ )? (?![\w.+-]) )
    """,
    re.VERBOSE | re.DOTALL,
)
_WORDS = {"True": "true", "False": "false", "None": "null"}


def read(text: str) -> JsonObject | None:
    """The object that the text spells, read without a guess; None where a reader would have to:
    where a string ends, what a bare word or an unknown escape means, which of two equal keys
    counts. Closing brackets too many at the end do no harm."""
    respelled = _respelled(text)
    if respelled is None:
        return None
    decoder = json.JSONDecoder(
        strict=False,
        object_pairs_hook=_without_twins,
        parse_float=finite,
        parse_constant=finite,
    )
    try:
        value, end = cast("tuple[JsonValue, int]", decoder.raw_decode(respelled))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not respelled[end:].strip("}]") else None


def _respelled(text: str) -> str | None:
    """The text's tokens as JSON spells them, with commas where a value follows a value; None when
    something is no token."""
    pieces: list[str] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            return None
        position = match.end()
        kind, piece = match.lastgroup, match[0]
        if kind == "nothing":
            continue
        if kind == "string":
            piece = _double_quoted(piece)
        elif kind == "key":
            piece = f'"{piece}"'
        if piece not in ("}", "]", ":") and pieces and pieces[-1] not in ("{", "[", ":"):
            pieces.append(",")
        pieces.append(_WORDS.get(piece, piece))
    return "".join(pieces)


def _double_quoted(string: str) -> str:
    """A quoted string as JSON quotes it."""

    def part(match: re.Match[str]) -> str:
        if match[0] == '"':
            return '\\"'
        return "'" if match[0] == "\\'" else match[0]

    return '"' + re.sub(r'\\.|"', part, string[1:-1], flags=re.DOTALL) + '"'


def _without_twins(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key comes twice")
    return found


def finite(number: str) -> float:
    """A number as JSON has it: Python's reader also takes `NaN` and `Infinity`, and makes infinity
    of `1e999`. Raises `ValueError`."""
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is no JSON number")
    return value


# What may stand at the end of JSON that was cut in the middle of a token.
_HALF_TOKEN = re.compile(
    r"""
    "[^"\\]*(?:\\.[^"\\]*)*\\?
  | \\?u?[0-9a-fA-F]{0,4}                   # the parser points into a string's escape
  | - | \. | [eE][+-]? | t(?:ru?)? | f(?:a(?:ls?)?)? | n(?:ul?)?
    """,
    re.VERBOSE | re.DOTALL,
)


def ends_early(raw: str) -> bool:
    """Whether `raw` is the beginning of a JSON text and nothing else is wrong with it."""
    try:
        json.loads(raw, strict=False)
    except json.JSONDecodeError as error:
        return bool(raw.strip()) and _HALF_TOKEN.fullmatch(raw, error.pos) is not None
    except (ValueError, RecursionError):
        pass
    return False
