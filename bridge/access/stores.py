"""What is kept of who may talk."""

from __future__ import annotations

from dataclasses import dataclass

from memory.access.admissions import Admissions
from memory.access.invites import Invites
from memory.access.known_groups import KnownGroups
from memory.access.pairings import Pairings
from memory.access.people import People
from memory.database import Database


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
