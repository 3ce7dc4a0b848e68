"""What there is in a text, counted: the numbers that `agent.estimate_weights` weighs.

All is counted on the UTF-8 bytes with operations that run in C, linear in the length. A lead byte
names a block of Unicode. Runs (pairs of letters, indents …) are found by shifting one large number
that holds a byte of class bits for each byte of the text.
"""

from __future__ import annotations

import string
from collections.abc import Iterable

# What tokenizers join, or cut at: starts of runs of letters, digits and other marks, and places inside
# of runs (a third consonant, a capital after a small letter, a digit or a blank with three before it).
RUNS = ("words", "numbers", "marks", "clusters", "joints", "long numbers", "indents")

# Frequent pieces that tell languages apart: tokenizers know long pieces of English and few of
# Finnish. Found by a stepwise fit; the second list is looked for only beyond ASCII.
SIGNS = ("\n\n", " th", "tion", "kan", "ng ", "qu", "men")
LETTERS = ("э", "ь", "а", "і", "ј", "ç", "ë", "å", "ı", "ə", "ư", "ی", "人")

# Characters beyond ASCII by lead byte; each lead is in one group.
SCRIPTS = {
    "latin 1": (0xC2, 0xC3),
    "latin extended": (0xC4, 0xC5, 0xC6),
    "phonetic": (0xC7, 0xC8, 0xC9, 0xCA, 0xCB),
    "combining": (0xCC, 0xCD),
    "greek": (0xCE, 0xCF),
    "cyrillic": (0xD0, 0xD1),
    "cyrillic extended": (0xD2, 0xD3),
    "armenian": (0xD4, 0xD5),
    "hebrew": (0xD6, 0xD7),
    "arabic": (0xD8, 0xD9),
    "arabic extended": (0xDA, 0xDB),
    "syriac to nko": (0xDC, 0xDD, 0xDE, 0xDF),
    "indic": (0xE0,),
    "three bytes": (0xE1,),
    "symbols": (0xE2,),
    "cjk marks": (0xE3,),
    "han rare": (0xE4,),
    "han": (0xE5, 0xE6, 0xE7, 0xE8, 0xE9),
    "hangul and others": (0xEA,),
    "hangul": (0xEB, 0xEC, 0xED),
    "private": (0xEE,),
    "forms": (0xEF,),
    "four bytes": (0xF0, 0xF1, 0xF2, 0xF3, 0xF4),
}
# Parts of those that are worth more or less than the rest, as first and last code point. Limits
# are multiples of 64: all such characters share every byte but the last. Frequent ones first.
BLOCKS = {
    "devanagari": (0x0900, 0x097F),
    "thai": (0x0E00, 0x0E7F),
    "bengali": (0x0980, 0x09FF),
    "tamil": (0x0B80, 0x0BFF),
    "telugu": (0x0C00, 0x0C7F),
    "gujarati": (0x0A80, 0x0AFF),
    "kannada": (0x0C80, 0x0CFF),
    "malayalam": (0x0D00, 0x0D7F),
    "gurmukhi": (0x0A00, 0x0A7F),
    "sinhala": (0x0D80, 0x0DFF),
    "oriya": (0x0B00, 0x0B7F),
    "lao": (0x0E80, 0x0EFF),
    "latin additional": (0x1E00, 0x1EFF),
    "georgian": (0x1080, 0x10FF),
    "khmer": (0x1780, 0x17FF),
    "myanmar": (0x1000, 0x107F),
    "ethiopic": (0x1200, 0x137F),
    "greek extended": (0x1F00, 0x1FFF),
    "punctuation": (0x2000, 0x207F),
    "boxes": (0x2500, 0x257F),
    "hiragana": (0x3040, 0x307F),
    "kana": (0x3080, 0x30BF),
    "katakana": (0x30C0, 0x30FF),
    "hangul a": (0xAC00, 0xAFFF),
    "yi to meitei": (0xA000, 0xABFF),
    "full width": (0xFF00, 0xFF7F),
    "selectors": (0xFE00, 0xFE3F),
    "pictures": (0x1F300, 0x1F5FF),
    "faces": (0x1F600, 0x1F63F),
    "flags": (0x1F1C0, 0x1F1FF),
}

ASCII_NAMES = (*RUNS, *(f"sign {sign!r}" for sign in SIGNS))
OTHER_NAMES = (*SCRIPTS, *BLOCKS, *(f"letter {letter}" for letter in LETTERS), "cyrillic words")
NAMES = (*ASCII_NAMES, *OTHER_NAMES)

_CLASSES = (  # bit: characters; a capital's bit follows that of a small letter
    string.ascii_letters,
    "".join(set(string.ascii_letters) - set("aeiouyAEIOUY")),
    string.digits,
    string.punctuation,
    " \t",
    string.ascii_lowercase,
    string.ascii_uppercase,
)
_KINDS = bytes(
    sum(1 << bit for bit, members in enumerate(_CLASSES) if chr(code) in members)
    for code in range(256)
)
_BLOCK = 8_192  # bytes looked at together: bounds the numbers' size
_BIT = tuple(int.from_bytes(bytes([1 << bit]) * _BLOCK, "little") for bit in range(6))
_LETTER, _CONSONANT, _DIGIT, _MARK, _BLANK, _SMALL = _BIT
_ASCII = bytes(range(128))
_CONTINUED = bytes(range(0x80, 0xC0))
_CYRILLIC = bytes(3 if 0xD0 <= code <= 0xD3 else code >> 7 for code in range(256))
_SIGNS = tuple(sign.encode() for sign in SIGNS)


def _at(
    leads: tuple[int, ...], pieces: Iterable[tuple[str, bytes]]
) -> tuple[tuple[int, bytes], ...]:
    """Those that begin with one of the lead bytes, as (position in `OTHER_NAMES`, bytes)."""
    return tuple((OTHER_NAMES.index(name), piece) for name, piece in pieces if piece[0] in leads)


_BLOCK_PIECES = tuple(
    (name, chr(code).encode()[:-1])
    for name, (first, last) in BLOCKS.items()
    for code in range(first, last, 64)
)
_LETTER_PIECES = tuple((f"letter {letter}", letter.encode()) for letter in LETTERS)
# lead: (position of its script, all leads of the script, blocks, letters)
_BY_LEAD = {
    lead: (position, bytes(leads), _at(leads, _BLOCK_PIECES), _at(leads, _LETTER_PIECES))
    for position, leads in enumerate(SCRIPTS.values())
    for lead in leads
}
_CYRILLIC_SCRIPT = OTHER_NAMES.index("cyrillic")
_CYRILLIC_WORDS = OTHER_NAMES.index("cyrillic words")


def ascii_features(data: bytes) -> tuple[int, ...]:
    """The counts of `ASCII_NAMES` in a text's UTF-8 bytes."""
    if len(data) <= _BLOCK:
        return (*_runs(data), *map(data.count, _SIGNS))
    blocks = [_runs(data[start : start + _BLOCK]) for start in range(0, len(data), _BLOCK)]
    return (*map(sum, zip(*blocks, strict=True)), *map(data.count, _SIGNS))


def _runs(data: bytes) -> tuple[int, ...]:
    kinds = int.from_bytes(data.translate(_KINDS), "little")
    starts = kinds & ~(kinds << 8)
    pairs = kinds & kinds >> 8
    fours = pairs & pairs >> 16
    return (
        (starts & _LETTER).bit_count(),
        (starts & _DIGIT).bit_count(),
        (starts & _MARK).bit_count(),
        (pairs & kinds >> 16 & _CONSONANT).bit_count(),
        (kinds & kinds >> 9 & _SMALL).bit_count(),
        (fours & _DIGIT).bit_count(),
        (fours & _BLANK).bit_count(),
    )


def other_features(data: bytes) -> list[tuple[int, int]]:
    """What there is beyond ASCII, as (position in `OTHER_NAMES`, count); a position may recur."""
    counts: list[tuple[int, int]] = []
    high = data.translate(None, _ASCII)
    leads = high.translate(None, _CONTINUED)
    while leads:  # as many rounds as there are scripts
        script, members, blocks, letters = _BY_LEAD[leads[0]]
        rest = leads.translate(None, members)
        left = len(leads) - len(rest)
        leads = rest
        counts.append((script, left))
        counts += [(position, high.count(piece)) for position, piece in letters]
        for position, piece in blocks:
            if not left:  # most texts use one block of a script
                break
            found = high.count(piece)
            counts.append((position, found))
            left -= found
        if script == _CYRILLIC_SCRIPT:
            counts.append((_CYRILLIC_WORDS, _cyrillic_words(data)))
    return counts


def _cyrillic_words(data: bytes) -> int:
    """Runs beyond ASCII that begin with a Cyrillic letter; everyday words are short and cut finely."""
    count = 0
    for start in range(0, len(data), _BLOCK):
        kinds = int.from_bytes(data[start : start + _BLOCK].translate(_CYRILLIC), "little")
        count += (kinds >> 1 & ~(kinds << 8) & _LETTER).bit_count()
    return count
