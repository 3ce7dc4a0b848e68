"""Questions to whoever sits at the terminal."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from typing import TypeVar

from bridge.cli.options import CommandFailed, tell

T = TypeVar("T")


class Refused(Exception):
    """An answer cannot be taken; the text says why, without repeating it."""


def ask(question: str, take: Callable[[str], T], *, default: str = "", hidden: bool = False) -> T:
    """Ask until `take` accepts the answer (it raises `Refused`), an empty one standing for
    `default`. `hidden`: what is typed is not shown, and the default neither.

    Raises `CommandFailed` when the input ends.
    """
    shown = f" [{default}]" if default and not hidden else ""
    read = getpass.getpass if hidden else input
    while True:
        try:
            answer = read(f"{question}{shown}: ").strip() or default
            return take(answer)
        except EOFError:
            raise CommandFailed("the input has ended; nothing was written") from None
        except UnicodeDecodeError:
            tell("  that is not in the encoding of this terminal")
        except Refused as error:
            tell(f"  {error}")


def confirm(question: str) -> bool:
    """A question whose answer is no unless it begins with a y."""
    return ask(f"{question} [y/N]", lambda answer: answer.lower().startswith("y"))
