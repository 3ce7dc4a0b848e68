"""Text as platforms send it, and as people see it."""

from __future__ import annotations

import unicodedata
from typing import Any, Final, cast

_UNSEEN_KINDS = frozenset(
    {"Cc", "Cf"}
)  # controls; zero-width spaces and joiners, marks of direction
# Unicode's Default_Ignorable_Code_Point beyond those, and two that are drawn as nothing: the blank
# Braille pattern and the object replacement character.
_UNSEEN_RANGES = (
    *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2065, 0x2065)),
    *((0x2800, 0x2800), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8)),
    *((0xFFFC, 0xFFFC), (0xE0000, 0xE0FFF)),
)
_MOST_SPELLED_OUT = 20
_CONTROLS: Final = {code: None for code in (*range(32), *range(127, 160)) if code not in (9, 10)}


def whole(text: str) -> str:
    """The text with halves of characters (lone surrogates) replaced by U+FFFD, so that it can be
    encoded and stored; two halves beside each other become their character. The number of UTF-16
    units stays."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def whole_strings(value: Any) -> Any:
    """Parsed JSON with every string in it made whole, keys too."""
    match value:
        case str():
            return whole(value)
        case list():
            return [whole_strings(item) for item in cast("list[object]", value)]
        case dict():
            items = cast("dict[str, object]", value).items()
            return {whole(key): whole_strings(item) for key, item in items}
        case _:
            return value


def printable(text: str) -> str:
    """Without control characters but line breaks and tabs: a terminal would obey them."""
    return text.translate(_CONTROLS)


def is_visible(text: str) -> bool:
    """Whether a person sees anything of it."""
    return any(
        not sign.isspace()
        and unicodedata.category(sign) not in _UNSEEN_KINDS
        and not any(first <= ord(sign) <= last for first, last in _UNSEEN_RANGES)
        for sign in text
    )


def spelled_out(text: str) -> str:
    """An invisible text by the numbers of its first characters (`U+200B U+2063 …`), so that its
    reader knows that it is one. White space is left out; a text of nothing else gives none."""
    signs = "".join(text.split())
    numbers = [f"U+{ord(sign):04X}" for sign in signs[:_MOST_SPELLED_OUT]]
    return " ".join(numbers) + (" …" if len(signs) > _MOST_SPELLED_OUT else "")
