"""Patterns from lists of words: one choice a line."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cached_property


def either(*texts: str) -> str:
    """The lines of the texts as alternatives of one pattern."""
    return "|".join(line.strip() for text in texts for line in text.splitlines() if line.strip())


class Words:
    """A pattern that is compiled when it is first used: all of them together take longer than the
    rest of the start, and most processes never see a refusal."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(unicodedata.normalize("NFC", self._text))

    def search(self, text: str) -> re.Match[str] | None:
        """See `re.Pattern.search`."""
        return self._pattern.search(text)

    def match(self, text: str) -> re.Match[str] | None:
        """See `re.Pattern.match`."""
        return self._pattern.match(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """See `re.Pattern.finditer`."""
        return self._pattern.finditer(text)


def any_of(*texts: str) -> Words:
    """What any line of the texts says, composed as `refusal_text.uniform` composes it."""
    return Words(either(*texts))
