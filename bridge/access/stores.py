"""What is kept of who may talk."""

from __future__ import annotations

from dataclasses import dataclass

from memory.admissions import Admissions
from memory.database import Database
from memory.invites import Invites
from memory.known_groups import KnownGroups
from memory.pairings import Pairings
from memory.people import People


@dataclass(frozen=True, slots=True)
class AccessStores:
    """One for each kind of row."""

    people: People
    admissions: Admissions
    pairings: Pairings
    invites: Invites
    groups: KnownGroups

    @classmethod
    def of(cls, database: Database) -> AccessStores:
        """Those of one database."""
        return cls(
            People(database),
            Admissions(database),
            Pairings(database),
            Invites(database),
            KnownGroups(database),
        )
