"""A chat's lines as people write them: what a phone, a text program or a chat does to them is put right
line by line, so that places stay right, where only one meaning is possible."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from bridge.limits.keys import BY_NAME, DEFAULT
from bridge.limits.names import quoted

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
_LINES = re.compile(r"\s*[A-Za-z][\w \t-]*[:：]")
_ASSIGNED = re.compile(r"(?P<key>[A-Za-z][\w \t-]*?)\s*=\s*(?=\S)")


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
    begin = plain[first].lstrip()
    plain[first] = begin[3:] if begin.startswith(_FENCES) else plain[first]
    opened = any(lines[n] != plain[n] for n in range(first + 1))
    closed = any(lines[n] != plain[n] for n in range(last + 1, len(lines)))
    end = plain[last].rstrip()
    if end.endswith(_FENCES) and not closed and (opened or _is_known_line(end, but=_TEXTS)):
        plain[last] = end[:-3]
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


def is_key_line(line: str) -> bool:
    """Whether it is a key with a colon, wherever it begins."""
    return _KEY_LINE.fullmatch(line.strip()) is not None


def begins(line: str, before: Sequence[str]) -> bool:
    """Whether a key begins here; what stands deeper may be a line of the text before (`|`, `>`)."""
    if not is_key_line(line):
        return False
    above = next((one for one in reversed(before) if not one.startswith(" ")), "")
    return not (line.startswith(" ") and _BLOCK.search(above))


def says_something(lines: Iterable[str]) -> bool:
    """Whether there is more than blanks and comments."""
    return any(_COMMENT.sub("", line).strip() for line in lines)


def as_lines(words: str) -> str:
    """What was typed behind a command: `key value` as a line; lines as they are."""
    found = named(words)
    if found is not None:
        alone = not any(map(_is_known_line, words.strip().splitlines()[1:]))
        return typed(*found) if alone else ": ".join(found)
    first, *more = words.strip().splitlines() or [""]
    key, _, value = first.partition(" ")
    is_fence = more and not first[0].isalpha()
    if is_lines(first) or key.endswith((":", "：")) or is_fence:
        return words
    return "\n".join((f"{key}: {value}", *more))


def _is_known_line(line: str, but: Collection[str] = ()) -> bool:
    name = plain_key(re.split("[:：]", line)[0])
    return is_lines(line) and name in BY_NAME and name not in but


def is_lines(words: str) -> bool:
    """Whether they begin with a key and a colon."""
    return _LINES.match(words) is not None


def named(words: str) -> tuple[str, str] | None:
    """A key that there is, also one with spaces, and what stands after it or after `=`."""
    words = words.strip()
    found = _ASSIGNED.match(words)
    if found is not None and plain_key(found["key"]) in BY_NAME:
        return found["key"], words[found.end() :]
    ends = [word.end() for word in re.finditer(r"\S+", words)]
    for end in reversed(ends[:-1]):
        if plain_key(words[:end]) in BY_NAME:
            return words[:end], words[end:].strip()
    return None
