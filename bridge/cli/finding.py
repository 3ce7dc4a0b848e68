"""What a check of `galata doctor` found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "FAIL"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was checked, what was found, and for all but `ok` how to mend it.

    `note`: it works, but the operator may want to know.
    """

    state: State
    subject: str
    text: str
    fix: str = ""

    def line(self) -> str:
        """The finding as it is printed."""
        words = " ".join(f"{self.text}{': ' if self.fix else ''}{self.fix}".split())
        return f"{self.state:<5} {self.subject:<11} {words}"
