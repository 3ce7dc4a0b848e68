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
from bridge.timezones import is_zone, known_zones
from bridge.yaml_source import Value

__all__ = [
    "Choice",
    "Kind",
    "Known",
    "Language",
    "Model",
    "Number",
    "Text",
    "Wrong",
    "YesNo",
    "Zone",
]

T = TypeVar("T")
MICRO = 1_000_000

_YES = frozenset(("yes", "on", "true"))
_NO = frozenset(("no", "off", "false"))
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 .,()!?/'_-]*(?<! )", re.ASCII)
_NOT_PLAIN = frozenset(("null", "default", *_YES, *_NO))
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
        word = _single(written).strip().lower()
        if word not in _YES | _NO:
            raise Wrong("words", words=self.words)
        return word in _YES

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
        text = _single(written)
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
        word = re.sub(r"[\s-]+", "_", _single(written).strip().lower())
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


@dataclass(frozen=True, slots=True)
class Text:
    """A text of 1 to `most` characters."""

    most: int
    ordered: bool = False

    @property
    def words(self) -> Wording:
        """How long it may be."""
        return wording("words_text", most=f"{self.most:,}")

    def read(self, written: Value, known: Known) -> str:
        """As it is written."""
        text = _single(written).strip()
        if not text:
            raise Wrong("no_text")
        if len(text) > self.most:
            raise Wrong("too_long", most=f"{self.most:,}", length=f"{len(text):,}")
        return text

    def show(self, value: str) -> str:
        """In quotes where YAML would read it otherwise."""
        return quoted(value)

    def meet(self, one: str, other: str) -> str:
        """There is no order."""
        return one


@dataclass(frozen=True, slots=True)
class Zone(Text):
    """An IANA time zone."""

    most: int = 64

    @property
    def words(self) -> Wording:
        """By example."""
        return wording("words_zone")

    def read(self, written: Value, known: Known) -> str:
        """It must be one."""
        name = _single(written).strip()
        if not is_zone(name):
            known_here = known_zones()
            near = nearest(name, known_here)
            if near is not None:
                raise Wrong("zone_near", near=near)
            raise Wrong("no_zone" if known_here else "no_zones")
        return name


@dataclass(frozen=True, slots=True)
class Language(Text):
    """`auto`, or a language's code."""

    most: int = 35

    @property
    def words(self) -> Wording:
        """By example."""
        return wording("words_language")

    def read(self, written: Value, known: Known) -> str:
        """Any code of the right form: models know more languages than the bot's own texts. `no` could
        be meant as Norwegian (nb) or as none."""
        code = _single(written).strip()
        if code.lower() == "auto":
            return "auto"
        if _LANGUAGE.fullmatch(code) is None or code.lower() in _YES | _NO:
            raise Wrong("words", words=self.words)
        return code


@dataclass(frozen=True, slots=True)
class Model(Text):
    """One of the models that the operator lets chats choose."""

    most: int = 40

    @property
    def words(self) -> Wording:
        """Which ones."""
        return wording("words_model")

    def read(self, written: Value, known: Known) -> str:
        """It must be one of them."""
        name = _single(written).strip()
        if known.models is not None and name not in known.models:
            there, near = ", ".join(known.models), nearest(name, known.models)
            if near is not None:
                raise Wrong("no_model_near", near=near, there=there)
            raise Wrong("no_model", there=there)
        if not name or len(name) > self.most:
            raise Wrong("model_name")
        return name


def usd_text(micro: int) -> str:
    """Millionths as dollars: 500000 -> 0.50."""
    dollars = Decimal(micro) / MICRO
    decimals = next(n for n in (2, 4, 6) if dollars == round(dollars, n))
    return f"{dollars:.{decimals}f}"


def quoted(text: str) -> str:
    """The text as one YAML value."""
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_PLAIN:
        return text
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if char == "\n":
        return "\\n"
    if char.isprintable():
        return char
    return f"\\u{ord(char):04X}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08X}"


def _single(written: Value) -> str:
    if not isinstance(written, str):
        raise Wrong("single")
    return written


def _without_sign(text: str, sign: str) -> str:
    if not sign:
        return text
    return re.sub(rf"(?i)^(?:{sign})\s*|\s*(?:{sign})$", "", text.strip())
