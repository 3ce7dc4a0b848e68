"""What people had forgotten: nothing that says the same is written again, found or summarised."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memory.clock import stamp
from memory.database import Database
from memory.words import contains, normalised

SHORTEST = 3  # words of a saying that also covers longer texts: `tea` alone would cover too much


def hash_of(words: str) -> str:
    """What stands for a normalised text in the tables."""
    return hashlib.sha256(words.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The sayings of a scope that are not to come back, normalised."""

    sayings: frozenset[str]

    def covers(self, text: str) -> bool:
        """Whether the text says one of them: it alone, or word by word within more."""
        words = normalised(text)
        if words in self.sayings:
            return True
        return any(
            saying.count(" ") >= SHORTEST - 1 and contains(words, saying) for saying in self.sayings
        )

    def without(self, lines: Sequence[str]) -> list[str]:
        """The lines that say none of them."""
        return [line for line in lines if not self.covers(line)] if self.sayings else list(lines)


class Tombstones:
    """Of all scopes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, scope: str) -> Forgotten:
        """What the scope is not to be told again."""
        rows = await self._database.read("SELECT words FROM tombstones WHERE scope = ?", (scope,))
        return Forgotten(frozenset(str(row[0]) for row in rows))


def bury(connection: sqlite3.Connection, scope: str, sayings: Collection[str]) -> None:
    """From now on these are forgotten. For use inside a write. Repeats are harmless."""
    connection.executemany(
        "INSERT INTO tombstones VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [(scope, hash_of(saying), saying, stamp()) for saying in sayings if saying],
    )


def unearth(connection: sqlite3.Connection, scope: str, saying: str) -> None:
    """A person has said it again, on purpose: what it says may be kept. For use inside a write."""
    rows = connection.execute("SELECT hash, words FROM tombstones WHERE scope = ?", (scope,))
    for hashed, words in rows.fetchall():
        if Forgotten(frozenset((str(words),))).covers(saying):
            connection.execute(
                "DELETE FROM tombstones WHERE scope = ? AND hash = ?", (scope, hashed)
            )
