"""What a command has come to."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.texts import Say


@dataclass(frozen=True, slots=True)
class Outcome:
    """`text` for whoever asked; `done`: it was carried out."""

    text: str
    done: bool = False


def refused(say: Say, key: str, /, **values: object) -> Outcome:
    """It was not."""
    return Outcome(say(key, **values))


def done(say: Say, key: str, /, **values: object) -> Outcome:
    """It was."""
    return Outcome(say(key, **values), done=True)
