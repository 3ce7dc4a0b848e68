"""What there is in a text, counted: the numbers that `agent.estimate_weights` weighs.

All counts are made on the UTF-8 bytes, with operations that run in C: a lead byte names its block
of Unicode, and a run (of letters, digits …) is found by shifting a number that has a byte 1 for
each byte of the class.
"""

from __future__ import annotations

NAMES = (
    "letters", "words", "long", "digits", "numbers", "spaces", "space_runs", "newlines", "marks",
    "latin", "greek", "cyrillic", "hebrew", "arabic", "other_two", "indic", "other_three",
    "general", "kana", "han", "hangul", "wide", "emoji",
)  # fmt: skip


def _table(kept: bytes) -> bytes:
    return bytes(1 if byte in kept else 0 for byte in range(256))


_LETTERS = _table(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS = _table(b"0123456789")
_SPACES = _table(b" \t\r\n")
_ASCII = bytes(range(128))
_CONTINUED = bytes(range(0x80, 0xC0))


def _runs(data: bytes, table: bytes) -> tuple[int, int, int]:
    """(bytes, runs, bytes that have at least seven of their run before them) of a class."""
    ones = int.from_bytes(data.translate(table), "little")
    pairs = ones & ones >> 8
    fours = pairs & pairs >> 16
    count = ones.bit_count()
    return count, count - pairs.bit_count(), (fours & fours >> 32).bit_count()


def features(text: str) -> tuple[int, ...]:
    """The counts, in the order of `NAMES`."""
    data = text.encode("utf-8", "surrogatepass")
    letters, words, long = _runs(data, _LETTERS)
    digits, numbers, _ = _runs(data, _DIGITS)
    spaces, space_runs, _ = _runs(data, _SPACES)
    high = data.translate(None, _ASCII)
    marks = len(data) - len(high) - letters - digits - spaces
    head = (letters, words, long, digits, numbers, spaces, space_runs, data.count(b"\n"), marks)
    return (*head, *(_scripts(high) if high else (0,) * 14))


def _scripts(high: bytes) -> tuple[int, ...]:
    """Characters by script, from bytes that are not ASCII."""
    leads = high.translate(None, _CONTINUED)
    of = leads.count
    latin = sum(map(of, range(0xC2, 0xCD)))
    greek = of(0xCD) + of(0xCE) + of(0xCF)
    cyrillic = sum(map(of, range(0xD0, 0xD4)))
    hebrew = of(0xD6) + of(0xD7)
    arabic = sum(map(of, range(0xD8, 0xDC)))
    two = sum(map(of, range(0xC2, 0xE0))) - latin - greek - cyrillic - hebrew - arabic
    kana = high.count(b"\xe3\x81") + high.count(b"\xe3\x82") + high.count(b"\xe3\x83")
    han = sum(map(of, range(0xE4, 0xEA)))
    hangul = sum(map(of, range(0xEA, 0xEE)))
    emoji = sum(map(of, range(0xF0, 0xF5)))
    general = of(0xE2)
    other = of(0xE1) + of(0xE3) - kana
    return (
        latin, greek, cyrillic, hebrew, arabic, two, of(0xE0), other,
        general, kana, han, hangul, of(0xEE) + of(0xEF), emoji,
    )  # fmt: skip
