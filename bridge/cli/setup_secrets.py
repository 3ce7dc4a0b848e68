"""Secrets in the questions of `galata setup`: typed unseen, or taken by Enter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bridge.cli.terminal import Refused, ask

_FEWEST_TO_SHOW = 16  # characters of a secret; of a shorter one four would say too much


@dataclass(frozen=True, slots=True)
class Offer:
    """A secret that Enter takes, and how that is said; nothing by default."""

    value: str = ""
    said: str = ""


def kept_offer(value: str) -> Offer:
    """To keep an earlier secret."""
    return Offer(value, f"Enter keeps {masked(value)}") if value else Offer()


def given_offer(variable: str, given: Mapping[str, str]) -> Offer:
    """To take the secret that a variable holds."""
    value = given.get(variable, "")
    return Offer(value, f"Enter: that of {variable}, {masked(value)}") if value else Offer()


def ask_secret(question: str, offer: Offer, *, needed: bool = True) -> str:
    """Ask for a key or token. Where it is not `needed`, the answer may be empty.

    Raises `CommandFailed` when the input ends.
    """
    said = f"hidden; {offer.said}" if offer.said else "hidden"

    def take(text: str) -> str:
        return _secret(text) if text or needed else ""

    return ask(f"{question} ({said})", take, default=offer.value, hidden=True)


def masked(secret: str) -> str:
    """The end of a secret, enough to tell it from another: `…abcd`."""
    return f"…{secret[-4:]}" if len(secret) >= _FEWEST_TO_SHOW else "…"


def _secret(text: str) -> str:
    """A key or token as it can stand in a header and in `.env`."""
    if not text:
        raise Refused("nothing was typed; what you paste is not shown, so press Enter after it")
    if not text.isascii() or not text.isprintable() or set(text) & set(" '\"\\"):
        raise Refused("it holds characters that no key has; was more than the key copied?")
    return text
