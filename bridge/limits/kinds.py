"""Kinds of values in a policy: how each is read and shown, and which of two is the narrower one.

`show` gives what stands behind the key in a chat's file; reading it gives the same value again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Protocol, TypeVar

from bridge.limits.numbers import Wrong, read_number
from bridge.suggestions import nearest
from bridge.texts import Wording, wording
from bridge.yaml_source import Value

T = TypeVar("T")
MICRO = 1_000_000

YES = frozenset(("yes", "on", "true"))
NO = frozenset(("no", "off", "false"))
_YES_NO_WORDS: Final = wording("words_yes_no")


@dataclass(frozen=True, slots=True)
class Known:
    """What a value may name. `models`, `tools` None: not known here, and not checked. `unpriced`:
    models that a chat may use and that have no price."""

    models: Collection[str] | None = None
    tools: Collection[str] | None = None
    unpriced: Sequence[str] = ()


class Kind(Protocol[T]):
    """One kind of values. `words` says what is allowed; `ordered`: of two values one is narrower, or
    there is one that is as narrow as both."""

    @property
    def words(self) -> Wording: ...

    @property
    def ordered(self) -> bool: ...

    def read(self, written: Value, known: Known) -> T:
        """The value. Raises `Wrong`."""
        ...

    def show(self, value: T) -> str:
        """As it is written in a chat's file."""
        ...

    def meet(self, one: T, other: T) -> T:
        """What allows only what both allow; of kinds without an order the first."""
        ...


@dataclass(frozen=True, slots=True)
class YesNo:
    """`narrow`: which of both allows less."""

    narrow: bool
    words: Wording = _YES_NO_WORDS
    ordered: bool = True

    def read(self, written: Value, known: Known) -> bool:
        """Also on, off, true, false."""
        word = single(written).strip().lower()
        if word not in YES | NO:
            raise Wrong("words", words=self.words)
        return word in YES

    def show(self, value: bool) -> str:
        """yes or no."""
        return "yes" if value else "no"

    def meet(self, one: bool, other: bool) -> bool:
        """The narrow one, where there is one."""
        return self.narrow if self.narrow in (one, other) else one


@dataclass(frozen=True, slots=True)
class Number:
    """A number of 0 or more, less is narrower. `micro`: in millionths (money), else whole. `sign`: a
    pattern of the unit, which may stand beside it."""

    most: int
    words: Wording
    least: int = 0
    sign: str = ""
    micro: bool = False
    cost: bool = False
    ordered: bool = True

    def read(self, written: Value, known: Known) -> int:
        """`50k` and `1.5m` are understood."""
        text = single(written)
        number = read_number(_without_sign(text, self.sign))
        scaled = number * MICRO if self.micro else number
        if scaled != scaled.to_integral_value():
            raise Wrong("decimals" if self.micro else "not_whole")
        if not self.least <= scaled <= self.most:
            raise Wrong("range", least=self.show(self.least), most=self.show(self.most))
        if self.cost and known.unpriced:
            raise Wrong("no_price", model=known.unpriced[0])
        return int(scaled)

    def show(self, value: int) -> str:
        """Money with 2, 4 or 6 decimals: three could be read as thousands."""
        return usd_text(value) if self.micro else str(value)

    def meet(self, one: int, other: int) -> int:
        """The smaller one."""
        return min(one, other)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some words, from narrow to wide."""

    words_in_order: tuple[str, ...]
    ordered: bool = True

    @property
    def words(self) -> Wording:
        """All of them."""
        *first, last = self.words_in_order
        return wording("words_choice", first=", ".join(first), last=last)

    def read(self, written: Value, known: Known) -> str:
        """In any case, with spaces or hyphens too."""
        word = re.sub(r"[\s-]+", "_", single(written).strip().lower())
        if word not in self.words_in_order:
            near = nearest(word, self.words_in_order)
            if near is not None:
                raise Wrong("words_near", words=self.words, near=near)
            raise Wrong("words", words=self.words)
        return word

    def show(self, value: str) -> str:
        """The word."""
        return value

    def meet(self, one: str, other: str) -> str:
        """The narrower one."""
        return min(one, other, key=self.words_in_order.index)


def usd_text(micro: int) -> str:
    """Millionths as dollars: 500000 -> 0.50."""
    dollars = Decimal(micro) / MICRO
    decimals = next(n for n in (2, 4, 6) if dollars == round(dollars, n))
    return f"{dollars:.{decimals}f}"


def single(written: Value) -> str:
    """The text of a value that is one. Raises `Wrong`."""
    if not isinstance(written, str):
        raise Wrong("single")
    return written


def _without_sign(text: str, sign: str) -> str:
    if not sign:
        return text
    return re.sub(rf"(?i)^(?:{sign})\s*|\s*(?:{sign})$", "", text.strip())
