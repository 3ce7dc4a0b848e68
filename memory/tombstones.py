"""What people had forgotten: nothing that says the same is written again, found or summarised."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memory.clock import stamp
from memory.database import Database
from memory.telling import sequence, stand_together, telling
from memory.words import contains, normalised

SHORTEST = 3  # words of a saying that also covers longer texts: `tea` alone would cover too much
ENOUGH = 3  # weight of the words by which a text is known again: two words, or three characters


def hash_of(words: str) -> str:
    """What stands for a normalised text in the tables."""
    return hashlib.sha256(words.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The sayings of a scope that are not to come back, normalised."""

    sayings: frozenset[str]

    def repeats(self, text: str) -> bool:
        """Whether the text says one of them in its very words: alone, or side by side within more."""
        words = normalised(text)
        if words in self.sayings:
            return True
        return any(
            saying.count(" ") >= SHORTEST - 1 and contains(words, saying) for saying in self.sayings
        )

    def covers(self, text: str) -> bool:
        """Whether the text says one of them, or a good part of it, in other forms and another order of
        its words too: all words that tell something stand near one another in it."""
        if self.repeats(text):
            return True
        told = sequence(text)
        there = frozenset(told)
        return any(_says_again(told, there, telling(saying)) for saying in self.sayings)

    def same(self, text: str, who: str = "") -> bool:
        """Whether the text tells what one of them tells and no more; `who` says it, named or not."""
        if self.repeats(text):
            return True
        names = telling(who)
        said = telling(text) - names
        return bool(said) and any(said == telling(saying) - names for saying in self.sayings)

    def part(self, text: str) -> bool:
        """Whether the text tells one of them or a good part of it, and no more."""
        there = telling(text)
        return self.repeats(text) or any(
            there == said or _is_part(there, said) for said in map(telling, self.sayings) if there
        )

    def without(self, lines: Sequence[str]) -> list[str]:
        """The lines that say none of them."""
        return [line for line in lines if not self.covers(line)] if self.sayings else list(lines)


def _says_again(told: Sequence[str], there: frozenset[str], saying: frozenset[str]) -> bool:
    if _weight(saying) < ENOUGH:
        return bool(saying) and there == saying
    if saying <= there:
        return stand_together(told, saying)
    return _is_part(there, saying)


def _is_part(there: frozenset[str], saying: frozenset[str]) -> bool:
    return there < saying and _weight(there) >= ENOUGH and 2 * len(there) >= len(saying)


def _weight(stems: Collection[str]) -> int:
    """A word counts for two characters of a script without spaces."""
    return sum(1 if len(stem) == 1 else 2 for stem in stems)


class Tombstones:
    """Of all scopes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, scope: str) -> Forgotten:
        """What the scope is not to be told again."""
        rows = await self._database.read("SELECT words FROM tombstones WHERE scope = ?", (scope,))
        return Forgotten(frozenset(str(row[0]) for row in rows))


def forgotten_in(connection: sqlite3.Connection, scope: str) -> Forgotten:
    """The same, inside a write."""
    rows = connection.execute("SELECT words FROM tombstones WHERE scope = ?", (scope,))
    return Forgotten(frozenset(str(row[0]) for row in rows))


def bury(connection: sqlite3.Connection, scope: str, sayings: Collection[str]) -> None:
    """From now on these are forgotten. For use inside a write. Repeats are harmless."""
    connection.executemany(
        "INSERT INTO tombstones (scope, hash, words, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
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
