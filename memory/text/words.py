"""Text as the words that are searched for: folded like SQLite's `unicode61` with its diacritics off,
and one word for each character of scripts that are written without spaces between words.

FTS5 gets these words with a space between them and cuts there (tokenizer `ascii`), so that what a
word is does not depend on SQLite's tables. A search in Chinese, Japanese, Korean or Thai is a phrase
of characters, which finds words of any length; a trigram index finds none under three characters.
Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from memory.text.prefixes import forms

# Scripts in which words are not set apart by spaces, or (Korean) carry endings without one: Thai, Lao,
# Tibetan, Myanmar, Khmer, Tai, kana, Hangul, Bopomofo, Yi and ideographs.
_UNSPACED = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf"
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u309f\u30a1-\u30fa\u30fc-\u312f\u3131-\u318f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3"
    "\uf900-\ufaff\U00016fe0-\U00018dff\U0001aff0-\U0001b2ff\U00020000-\U000323af"
)
# Accents of alphabets, Hebrew points, Arabic vowel signs, Arabic's mark that only stretches a word, and
# what joins or parts the shapes of letters.
_DROPPED = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c7\u0640\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u200c\u200d]"
)
# Blocks whose vowel signs belong to a word, though `\w` does not hold them.
_SIGNED = "\u0710-\u085f\u0900-\u0963\u0966-\u096f\u0971-\u0dff\u1b00-\u1cff\ua8e0-\uaaff"
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_WORD = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}_])[\w{_SIGNED}])+")
# Emoji and other symbols, which say nothing of a text's meaning and are looked for all the same.
_SYMBOLS = "\u2600-\u27bf\u2b00-\u2bff\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff"
_SEARCHED = re.compile(rf"{_WORD.pattern}|[{_SYMBOLS}]")
_ALONE = re.compile(f"[{_UNSPACED}]")
_QUOTED = re.compile(r'"([^"]*)"')

SHORTEST_BEGINNING = 3  # letters of a word that stands for longer ones too
PAIR = 2
LONG = 5  # letters: shorter words are in every text
SHORT = 3


def fold(text: str) -> str:
    """The text without case, width and accents."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text).casefold()
    plain = _DROPPED.sub("", unicodedata.normalize("NFKD", plain))
    return unicodedata.normalize("NFC", plain).replace("ı", "i")


def words(text: str) -> list[str]:
    """The words of a text, folded, in their order."""
    folded = fold(text)
    if folded.isascii():
        return _ASCII_WORD.findall(folded)
    return _WORD.findall(folded)


def normalised(text: str) -> str:
    """What two texts have in common that say the same in the same words."""
    return " ".join(words(text))


def searched(text: str) -> str:
    """What is searched of a text: as `normalised`, with its emoji."""
    folded = fold(text)
    return " ".join((_ASCII_WORD if folded.isascii() else _SEARCHED).findall(folded))


def contains(text: str, phrase: str) -> bool:
    """Whether the normalised text `text` holds the normalised `phrase` word by word."""
    return f" {phrase} " in f" {text} "


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that stand side by side. `beginning`: the last one may go on. `whole`: it is looked for as
    it is, and never in parts."""

    words: tuple[str, ...]
    beginning: bool = False
    whole: bool = False

    def stands_in(self, normalised_text: str) -> bool:
        """Whether the text has it."""
        text = f" {normalised_text} "
        end = "" if self.beginning else " "
        return any(f" {form}{end}" in text for form in self._forms())

    def fts(self) -> str:
        """As FTS5 writes it. The words hold letters and digits only."""
        end = " *" if self.beginning else ""
        found = [f'"{form}"{end}' for form in self._forms()]
        return found[0] if len(found) == 1 else f"({' OR '.join(found)})"

    def _forms(self) -> tuple[str, ...]:
        """A single word that was not quoted also with and without what its script writes before it."""
        if len(self.words) == 1 and not self.whole:
            return forms(self.words[0])
        return (" ".join(self.words),)


def phrases(query: str) -> list[Phrase]:
    """What is asked for: each word by itself, what stands in double quotes as it is. No phrase comes
    twice."""
    found: dict[Phrase, None] = {}
    for quoted in _QUOTED.findall(query):
        found |= dict.fromkeys(
            Phrase(tuple(parts), whole=True) for parts in [searched(quoted).split()] if parts
        )
    for word in _QUOTED.sub(" ", query).split():
        found |= dict.fromkeys(_phrase(word))
    return list(found)


def looser(asked: Sequence[Phrase]) -> list[Phrase]:
    """The same in smaller pieces, what was quoted excepted: a run of characters without spaces in
    pairs, other words alone."""
    found: dict[Phrase, None] = {}
    for phrase in asked:
        if phrase.whole:
            found[phrase] = None
            continue
        run: list[str] = []
        for word in phrase.words:
            if _ALONE.match(word):
                run.append(word)
                continue
            found |= dict.fromkeys(_pairs(run))
            run = []
            found[Phrase((word,), phrase.beginning and len(word) >= SHORTEST_BEGINNING)] = None
        found |= dict.fromkeys(_pairs(run))
    return list(found)


def marks(text: str) -> frozenset[tuple[str, ...]]:
    """What tells a text from others: its long words, and pairs of characters without spaces; where
    that is one at most, shorter words as well."""
    every = {phrase.words for phrase in looser(phrases(text.replace('"', " ")))}
    for least in (LONG, SHORT):
        found = {mark for mark in every if len(mark) > 1 or len("".join(mark)) >= least}
        if len(found) > 1:
            return frozenset(found)
    return frozenset(every)


def _pairs(run: Sequence[str]) -> list[Phrase]:
    if len(run) <= PAIR:
        return [Phrase(tuple(run))] if run else []
    return [Phrase(tuple(run[i : i + PAIR])) for i in range(len(run) - 1)]


def _phrase(text: str) -> list[Phrase]:
    parts = searched(text).split()
    if not parts:
        return []
    goes_on = len(parts[-1]) >= SHORTEST_BEGINNING and not _ALONE.match(parts[-1])
    return [Phrase(tuple(parts), goes_on)]
