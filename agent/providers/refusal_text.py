"""The body of a refusal, read: its words, the same made uniform, and its typed codes.

Relays wrap a provider's error in their own, as JSON in a string, or behind a sentence. All of it is
read; what the request held and the server only repeats is not.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

MOST_READ = 20_000  # characters of a body that are read; no refusal is longer
MOST_MATCHED = 3_000  # characters that the patterns see
_DEEPEST = 12  # levels of JSON
_LARGEST = 10**12  # of a number that can mean anything here

_HTML = re.compile(r"<(?:!doctype|html|head|body)\b", re.IGNORECASE)
_TYPED_KEYS = frozenset(
    {"type", "code", "status", "reason", "status_code", "http_code", "__type", "blockreason"}
) | {f"{prefix}{key}" for prefix in ("error", "error_", "err_") for key in ("code", "type", "name")}
# Repeated from the request, as validators do; or a model's own words.
_ECHOES = frozenset({"input", "failed_generation"})
# A code in what cannot be parsed, such as a Python dict in a sentence.
_TYPED_TEXT = re.compile(
    r"""['"]((?:error_)?(?:type|code|status|status_code|reason))['"]\s*:\s*['"]?([\w.-]+)"""
)
_ESCAPED = re.compile(r"\\u([0-9a-f]{4})")
_DATA = re.compile(r"([a-z0-9+/=_-]{60})[a-z0-9+/=_-]{140,}")  # a picture in base64, an id, noise
_URL = re.compile(r"https?://[!-~]+")  # its words say nothing of the fault
_ACCENTS = re.compile(r"([a-zα-ω])[\u0300-\u036f]+")
_DIGIT = re.compile(r"(?![0-9])\d")
_SIGNS = str.maketrans(
    {"‘": "'", "’": "'", "“": '"', "”": '"', "`": None}
    | {"đ": "d", "ł": "l", "ø": "o", "ı": "i", "٬": ",", "٫": ".", "\u05be": "-", "\u200c": " "}
    # Vowel signs of Arabic and Hebrew, and marks of direction that no reader sees.
    | {chr(code): None for code in (*range(0x64B, 0x653), 0x640, 0x200E, 0x200F)}
    | {chr(code): None for code in (*range(0x591, 0x5BE), 0x5BF, 0x5C1, 0x5C2)}
)


@dataclass(frozen=True, slots=True)
class Said:
    """A body, read.

    `words`: all of it, for the log. `text`: the sentences, uniform (see `uniform`). `codes`: the
    typed codes in lower case. `keyed`: the same with the key that each stands under.
    """

    words: str
    text: str
    codes: frozenset[str]
    keyed: frozenset[tuple[str, str]]


def read(body: object) -> Said:
    """Any body: text, bytes, or JSON that is parsed already. An HTML page says nothing."""
    if isinstance(body, bytes):
        body = body[: 4 * MOST_READ].decode("utf-8", "replace")
    found = list(_leaves("", body, _DEEPEST))
    keyed = {(key, text.strip().lower()) for key, text in found if key in _TYPED_KEYS}
    words = " ".join(text for _, text in found)[:MOST_READ]
    text = uniform(" . ".join(_sentences(found)))
    keyed.update(_TYPED_TEXT.findall(text))
    return Said(words, text, frozenset(code for _, code in keyed), frozenset(keyed))


def uniform(text: str) -> str:
    """Lower case, without accents on Latin and Greek letters, full-width forms, backticks and escapes;
    ASCII digits. The Arabic and Hebrew letters keep their form, without vowel signs."""
    text = _DATA.sub(r"\1", text[:MOST_READ].lower())[:MOST_MATCHED]
    text = text.replace('\\"', '"').replace("\\n", " ")
    text = _URL.sub(" ", text)
    text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    text = unicodedata.normalize("NFKC", text).translate(_SIGNS)
    text = _ACCENTS.sub(r"\1", unicodedata.normalize("NFD", text))
    text = _DIGIT.sub(lambda found: str(unicodedata.decimal(found[0])), text)
    return " ".join(unicodedata.normalize("NFC", text).split())


def _sentences(found: list[tuple[str, str]]) -> Iterator[str]:
    """Typed codes are no sentences, unless somebody wrote one there; a bare number and a wait
    are told with their key."""
    for key, text in found:
        if key in _TYPED_KEYS:
            if " " in text.strip():
                yield text
        elif text.isdecimal() or key.startswith("retry"):
            yield f"{key}: {text}"
        else:
            yield text


def _leaves(key: str, value: object, depth: int) -> Iterator[tuple[str, str]]:
    """Each string and number in a JSON value, with the key that it stands under."""
    if isinstance(value, str):
        yield from _in_text(key, value[:MOST_READ], depth)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if abs(value) < _LARGEST:
            yield key, str(value)
    elif depth and isinstance(value, Mapping):
        for name, inner in cast("Mapping[object, object]", value).items():
            if str(name).lower() not in _ECHOES:
                yield from _leaves(str(name).lower(), inner, depth - 1)
    elif depth and isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from _leaves(key, inner, depth - 1)


def _in_text(key: str, text: str, depth: int) -> Iterator[tuple[str, str]]:
    """A string may be JSON, or hold an object after a sentence, or an HTML page."""
    try:
        yield from _leaves(key, json.loads(text), depth)
        return
    except (ValueError, RecursionError):
        page, start = _HTML.search(text), text.find("{")
    if page is not None:
        yield key, (text[: page.start()] + " an HTML page").strip()
    elif start < 0 or not depth:
        yield key, text
    else:
        yield from _around(key, text, start, depth - 1)


def _around(key: str, text: str, start: int, depth: int) -> Iterator[tuple[str, str]]:
    """The object that begins at `start`, if it is one, and the sentences before and after it."""
    try:
        inner, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        yield key, text
        return
    if text[:start].strip():
        yield key, text[:start]
    yield from _leaves(key, inner, depth)
    if text[end:].strip():
        yield from _in_text(key, text[end:], depth)
