"""What the bot itself says, by language: one TOML file each in this folder.

Another language is another file with the same keys; a test proves that none is missing. A command is
written `{cmd:name}`, and reads as it is typed on the channel (`Capabilities.command_prefix`). A word
that depends on a number is written `{count:message|messages}`: the first is for 1.
"""

from __future__ import annotations

import string
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from channels.base import Capabilities

FALLBACK = "en"
_USUAL = Capabilities(reactions=False, buttons=False, commands_in_threads=True)


@dataclass(frozen=True, slots=True)
class _CommandNames:
    """Gives `{cmd:new}` as the prefix and the name."""

    prefix: str

    def __format__(self, name: str) -> str:
        return f"{self.prefix}{name}"


class _Formatter(string.Formatter):
    """`str.format`, with words that depend on a number."""

    def format_field(self, value: object, format_spec: str) -> str:
        one, bar, many = format_spec.partition("|")
        if bar:
            return one if str(value) == "1" else many
        return format(value, format_spec)


_FORMATTER = _Formatter()


@dataclass(frozen=True, slots=True)
class Wording:
    """A text of the catalogue with its values, not yet in a language; as a `str` it is English."""

    key: str
    values: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        return Texts.load().say(FALLBACK, self.key, **dict(self.values))


@dataclass(frozen=True, slots=True)
class Lines:
    """Several of them as one value of a text."""

    lines: tuple[Wording | str, ...]


def wording(key: str, /, **values: object) -> Wording:
    """The text `key` with these values, of which some may be wordings themselves."""
    return Wording(key, tuple(values.items()))


class Texts:
    """All texts in all languages."""

    def __init__(self, catalogue: Mapping[str, Mapping[str, str]]) -> None:
        self.catalogue = catalogue

    @classmethod
    def load(cls) -> Texts:
        """Every `*.toml` of this folder."""
        return cls(_catalogue())

    def language(self, *wishes: str | None) -> str:
        """The first wish (a BCP 47 tag such as `zh-Hans`) that there is a file for, else English."""
        for wish in wishes:
            base = (wish or "").lower().replace("_", "-").split("-")[0]
            if base in self.catalogue:
                return base
        return FALLBACK

    def say(self, language: str, key: str, /, **values: object) -> str:
        """The text `key`, with `values` filled in: wordings in the language, several a line each.
        Raises `KeyError` for an unknown key."""
        usual: dict[str, object] = {"cmd": _CommandNames(_USUAL.command_prefix)}
        filled = {name: self._filled(language, one) for name, one in (usual | values).items()}
        return _FORMATTER.vformat(self.catalogue[language][key], (), filled)

    def _filled(self, language: str, value: object) -> object:
        if isinstance(value, Wording):
            return self.say(language, value.key, **dict(value.values))
        if isinstance(value, Lines):
            return "\n".join(str(self._filled(language, line)) for line in value.lines)
        return value


@dataclass(frozen=True, slots=True)
class Say:
    """The catalogue in one language, for a channel that can do this."""

    texts: Texts
    language: str
    capabilities: Capabilities = _USUAL

    def __call__(self, key: str, /, **values: object) -> str:
        commands = _CommandNames(self.capabilities.command_prefix)
        return self.texts.say(self.language, key, cmd=commands, **values)

    def word(self, wording: Wording) -> str:
        """The same for a wording."""
        return self(wording.key, **dict(wording.values))


@cache
def _catalogue() -> Mapping[str, Mapping[str, str]]:
    """Read once in a process: it takes 20 ms, and several parts of the bot ask."""
    folder = resources.files("bridge.texts")
    return {
        entry.name.removesuffix(".toml"): tomllib.loads(entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    }
