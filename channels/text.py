"""Text as platforms send it."""

from __future__ import annotations

from typing import Any, cast


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
