"""A night that is under way (`bridge.remembering.consolidation`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from memory.consolidate import Applied
from memory.night.nights import Night


@dataclass(slots=True)
class Progress:
    """One night so far. `before`: entries that there were; `failures`: nights in a row of which nothing
    came, if nothing comes of this one; `lost`: entries that are gone or say less."""

    night: Night
    before: int
    failures: int
    lost: int = 0

    def take(self, applied: Applied, found: str, left_as: str) -> None:
        """What passed of a piece made of the file `found` the one `left_as`."""
        night = self.night
        if found == left_as:
            found, left_as = night.found, night.left_as
        elif night.left_as:
            found = night.found if night.left_as == found else ""
        self.lost += applied.lost
        self.night = replace(
            night,
            added=night.added + applied.count("add"),
            merged=night.merged + applied.count("merge"),
            corrected=night.corrected + applied.count("correct"),
            dropped=night.dropped + applied.count("drop"),
            found=found,
            left_as=left_as,
        )

    def pass_over(self, notes: int, reason: str) -> None:
        """So many notes are passed over; another one fails anew."""
        passed = self.night.passed + notes
        self.night = replace(self.night, failures=0, passed=passed, reason=reason)
        self.failures = 1

    def ended(self) -> Night:
        """The night, after all notes."""
        night = replace(self.night, failures=0)
        if any(night.counts):
            return replace(night, outcome="changed")
        return replace(night, outcome="refused") if night.passed else night
