"""Numbers as people write them in a chat. What can be read in two ways is refused with both."""

from __future__ import annotations

import re
from decimal import Decimal

from bridge.texts import wording

_NUMBER = re.compile(
    r"(?P<whole>[0-9][0-9_]{0,15})(?:(?P<mark>[.,])(?P<rest>[0-9]{1,12}))?(?P<unit>[km])?",
    re.ASCII | re.IGNORECASE,
)
_GROUPED = re.compile(r"[0-9]{1,3}(?:([.,' ])[0-9]{3})(?:\1[0-9]{3})*", re.ASCII)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}
_GROUP = 3  # digits between two marks of thousands


class Wrong(Exception):
    """A value that cannot be taken; `wording`, the text `fault_…`, says why, and what is allowed."""

    def __init__(self, key: str, /, **values: object) -> None:
        self.wording = wording(f"fault_{key}", **values)
        super().__init__(key)

    def __str__(self) -> str:
        return str(self.wording)


def read_number(written: str) -> Decimal:
    """`500000`, `500_000`, `50k`, `1.5m`, `0.50`. Raises `Wrong`.

    `50.000` and `0,50` are refused: people of different countries mean different numbers by them.
    """
    text = written.strip()
    if text.startswith("-"):
        raise Wrong("negative")
    found = _NUMBER.fullmatch(text)
    if found is None:
        grouped = _GROUPED.fullmatch(text)
        if grouped is not None:
            raise Wrong("grouped", digits=_digits(text))
        raise Wrong("no_number")
    whole, rest = found["whole"].replace("_", ""), found["rest"]
    if rest is None:
        return Decimal(whole) * _UNITS[(found["unit"] or "").lower()]
    if found["mark"] == "," or (len(rest) == _GROUP and int(whole) > 0):
        unit = found["unit"] or ""
        one, other = f"{_plain(whole, rest)}{unit}", f"{int(whole + rest)}{unit}"
        raise Wrong("two_readings", text=text, one=one, other=other)
    return Decimal(f"{whole}.{rest}") * _UNITS[(found["unit"] or "").lower()]


def _plain(whole: str, rest: str) -> str:
    """The reading with a decimal point, in a form that is understood."""
    rest = rest.rstrip("0") if len(rest) == _GROUP else rest
    if len(rest) == _GROUP and int(whole) > 0:
        rest += "0"
    return f"{int(whole)}.{rest}" if rest else str(int(whole))


def _digits(text: str) -> str:
    return "".join(character for character in text if character.isdigit())
