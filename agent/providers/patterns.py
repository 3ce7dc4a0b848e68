"""Patterns from lists of words: one choice a line."""

from __future__ import annotations

import re
import unicodedata


def either(*texts: str) -> str:
    """The lines of the texts as alternatives of one pattern."""
    return "|".join(line.strip() for text in texts for line in text.splitlines() if line.strip())


def any_of(*texts: str) -> re.Pattern[str]:
    """What any line of the texts says, composed as `refusal_text.uniform` composes it."""
    return re.compile(unicodedata.normalize("NFC", either(*texts)))
