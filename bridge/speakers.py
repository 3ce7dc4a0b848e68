"""How people appear before the model: a name and a number within the conversation, never an id."""

from __future__ import annotations

import re
import unicodedata

MOST_CHARACTERS = 32
_FORGING = re.compile(r"[\[\](){}<>#:|`*_\\]+")


def label(name: str, number: int) -> str:
    """`Ana#2`: the `plain_name` with a number."""
    return f"{plain_name(name)}#{number}"


def plain_name(name: str) -> str:
    """The name without line breaks, brackets and control characters, capped, so that no name can
    imitate another speaker's line or a heading."""
    plain = "".join(
        character if character.isprintable() else " "
        for character in unicodedata.normalize("NFKC", name)
    )
    words = " ".join(_FORGING.sub(" ", plain).split())[:MOST_CHARACTERS].strip()
    return words or "Someone"
