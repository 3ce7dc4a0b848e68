"""Kinds of values that are texts: somebody's own words, and names of zones, languages and models."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bridge.limits.kinds import NO, YES, Known, single
from bridge.limits.numbers import Wrong
from bridge.suggestions import nearest
from bridge.texts import Wording, wording
from bridge.timezones import is_zone, known_zones
from bridge.yaml_source import Value

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 .,()!?/'_-]*(?<! )", re.ASCII)
_NOT_PLAIN = frozenset(("null", "default", *YES, *NO))


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
        text = single(written).strip()
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
        name = single(written).strip()
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
        """Any code of the right form: models know more languages than the bot's own texts. `no`
        is Norwegian, as it is written."""
        code = single(written).strip()
        if code.lower() == "auto":
            return "auto"
        if _LANGUAGE.fullmatch(code) is None:
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
        name = single(written).strip()
        if known.models is not None and name not in known.models:
            there, near = ", ".join(known.models), nearest(name, known.models)
            if near is not None:
                raise Wrong("no_model_near", near=near, there=there)
            raise Wrong("no_model", there=there)
        if not name or len(name) > self.most:
            raise Wrong("model_name")
        return name


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
