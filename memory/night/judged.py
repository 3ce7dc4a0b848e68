"""What the gate of the night is given, and what it says. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from memory.markdown.facts import Fact
from memory.night.alike import loses_words
from memory.night.proposal import Change
from memory.notes.flush import Note
from memory.tombstones import Forgotten

Fault = Literal[
    "no_source",  # it cites no note that was shown
    "unfounded",  # it says more than the notes that it cites, or denies what they state
    "known",  # an entry says it already: no fault of the proposal's
    "forgotten",  # it says what was to be forgotten
    "changed",  # the entry is not as it was shown
    "loses_words",  # what would go says more than what stays
    "relative_date",
    "empty",
    "too_long",
    "full",
]


@dataclass(frozen=True, slots=True)
class Night:
    """What a proposal is judged by. `shown`: the entries, `notes`: the notes that the model was shown;
    `most_lost`: entries that may go in this night, those that are gone already taken off. `strangers`:
    number of an entry and index of a note of which it is not known, by the platform's ids, that one
    person has said both."""

    day: date
    shown: Sequence[Fact]
    notes: Sequence[Note]
    forgotten: Forgotten
    most_lost: int
    strangers: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True, slots=True)
class Done:
    """A change that was made: entries before it, and the entry after it."""

    change: Change
    before: tuple[Fact, ...]
    after: Fact | None

    @property
    def lost(self) -> int:
        """Entries that are gone, or have words that no entry says any more."""
        if self.change.kind == "correct" and self.after is not None:
            return int(loses_words(self.before[0].text, self.after.text))
        return len(self.before) - (self.after is not None) if self.before else 0


class Faulty(Exception):
    """A change that is not made, and why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault: Fault = fault
