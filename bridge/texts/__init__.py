"""What the bot itself says, by language: one TOML file each in this folder.

Another language is another file with the same keys; a test proves that none is missing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

FALLBACK = "en"


class Texts:
    """All texts in all languages."""

    def __init__(self, catalogue: Mapping[str, Mapping[str, str]]) -> None:
        self.catalogue = catalogue

    @classmethod
    def load(cls) -> Texts:
        """Read every `*.toml` of this folder."""
        folder = resources.files("bridge.texts")
        return cls(
            {
                entry.name.removesuffix(".toml"): tomllib.loads(entry.read_text(encoding="utf-8"))
                for entry in folder.iterdir()
                if entry.name.endswith(".toml")
            }
        )

    def language(self, *wishes: str | None) -> str:
        """The first wish (a BCP 47 tag such as `zh-Hans`) that there is a file for, else English."""
        for wish in wishes:
            base = (wish or "").lower().replace("_", "-").split("-")[0]
            if base in self.catalogue:
                return base
        return FALLBACK

    def say(self, language: str, key: str, /, **values: object) -> str:
        """The text `key`, with `values` filled in. Raises `KeyError` for an unknown key."""
        return self.catalogue[language][key].format(**values)


@dataclass(frozen=True, slots=True)
class Say:
    """The catalogue in one language."""

    texts: Texts
    language: str

    def __call__(self, key: str, /, **values: object) -> str:
        return self.texts.say(self.language, key, **values)
