"""Arabic and Hebrew write the article, and small words such as "and" or "in", as a part of the word
that follows. Whoever looks for a word means it with them and without. Pure."""

from __future__ import annotations

import re
from typing import Final

LEAST_STEM: Final = 3  # letters: what is shorter is more likely a part of the word itself

_ARABIC = re.compile("[\u0620-\u064a\u066e-\u06d3]+")
_HEBREW = re.compile("[\u05d0-\u05ea]+")
# With the article: al-, and the, so the, with the, like the, for the, and for the.
_ARTICLES: Final = ("وال", "فال", "بال", "كال", "ولل", "لل", "ال")
_ARABIC_FORMS: Final = ("ال", "وال", "فال", "بال", "كال", "لل", "و", "ب", "ل")
# And, the, in, as, to, from, that.
_HEBREW_LETTERS: Final = ("ו", "ה", "ב", "כ", "ל", "מ", "ש")


def forms(word: str) -> tuple[str, ...]:
    """The folded word first, then as it may stand in a text; of other scripts the word alone."""
    if _ARABIC.fullmatch(word):
        stem = _stem(word, _ARTICLES)
        known = [stem, *(f"{prefix}{stem}" for prefix in _ARABIC_FORMS)]
    elif _HEBREW.fullmatch(word):
        stem = _stem(word, _HEBREW_LETTERS)
        # A first letter that was no prefix must not be lost, nor hide one that stands before it.
        whole = [f"{prefix}{word}" for prefix in _HEBREW_LETTERS] if stem != word else []
        known = [stem, *(f"{prefix}{stem}" for prefix in _HEBREW_LETTERS), *whole]
    else:
        return (word,)
    if len(stem) < LEAST_STEM:
        return (word,)
    return tuple(dict.fromkeys((word, *known)))


def _stem(word: str, prefixes: tuple[str, ...]) -> str:
    for prefix in prefixes:
        if word.startswith(prefix) and len(word) - len(prefix) >= LEAST_STEM:
            return word.removeprefix(prefix)
    return word
