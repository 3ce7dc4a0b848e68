"""What people had forgotten: nothing that says the same is written again, found or summarised."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memory.clock import stamp
from memory.database import Database
from memory.markdown.lines import speaker_of
from memory.text.telling import sequence, stand_together, telling
from memory.text.words import contains, normalised

SHORTEST = 3  # words of a saying that also covers longer texts: `tea` alone would cover too much
_EVERYBODY = frozenset(("",))
_OF = "SELECT words, whose FROM tombstones WHERE scope = ?"
ENOUGH = 3  # weight of the words by which a text is known again: two words, or three characters


def hash_of(words: str) -> str:
    """What stands for a normalised text in the tables."""
    return hashlib.sha256(words.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The sayings of a scope that are not to come back, normalised. `whose`: of a saying that somebody
    has forgotten of themselves among others, the normalised names that are theirs: what another person
    says of themselves is not meant. `undone`: what was only taken back; more than that may be said."""

    sayings: frozenset[str]
    whose: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    undone: frozenset[str] = frozenset()

    def since(self, earlier: Forgotten) -> Forgotten:
        """Those that were not there `earlier`."""
        return replace(self, sayings=self.sayings - earlier.sayings)

    def repeats(self, text: str, who: str = "") -> bool:
        """Whether the text says one of them in its very words: alone, or side by side within more.
        `who`: the names of those who say it, as far as they are known."""
        if not self.sayings:
            return False
        words = normalised(text)
        return any(
            not self._is_anothers(saying, words, who)
            for saying in self.sayings
            if words == saying or (saying.count(" ") >= SHORTEST - 1 and contains(words, saying))
        )

    def covers(self, text: str, who: str = "") -> bool:
        """Whether the text says one of them, or a good part of it, in other forms and another order of
        its words too: all words that tell something stand near one another in it."""
        if not self.sayings and not self.undone:
            return False
        if self.repeats(text, who) or self._was_undone(text, who):
            return True
        words, told = normalised(text), sequence(text)
        there = frozenset(told)
        return any(
            _says_again(told, there, telling(saying)) and not self._is_anothers(saying, words, who)
            for saying in self.sayings
        )

    def covers_line(self, raw: str) -> bool:
        """The same of a line that may name who says it (`memory.markdown.lines.speaker_of`)."""
        return self.covers(raw, speaker_of(raw) if self.whose else "")

    def repeats_line(self, raw: str) -> bool:
        """As `repeats`, of such a line."""
        return self.repeats(raw, speaker_of(raw) if self.whose else "")

    def is_of_another(self, text: str, who: str) -> bool:
        """Whether somebody says one of them of themselves."""
        return Forgotten(self.sayings).covers(text) and not self.covers(text, who)

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
        return (
            [line for line in lines if not self.covers_line(line)] if self.sayings else list(lines)
        )

    def _was_undone(self, text: str, who: str) -> bool:
        return any(
            Forgotten(frozenset((saying,))).same(text, who)
            and not self._is_anothers(saying, normalised(text), who)
            for saying in self.undone
        )

    def _is_anothers(self, saying: str, words: str, who: str) -> bool:
        """Whether others than whose the saying was say it, and not of these: `words`, normalised."""
        names = self.whose.get(saying)
        by = {name for each in who.split(",") if (name := normalised(each))}
        if not names or not by or by & names:
            return False
        return not any(contains(words, name) for name in names)


def _says_again(told: Sequence[str], there: frozenset[str], saying: frozenset[str]) -> bool:
    if _weight(saying) < ENOUGH:
        return bool(saying) and there == saying
    if saying <= there:
        return stand_together(told, saying)
    return _is_part(there, saying)


def tells_enough(saying: str) -> bool:
    """Whether a normalised text is known again where it stands side by side within more."""
    return saying.count(" ") >= SHORTEST - 1 and _weight(telling(saying)) >= ENOUGH


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
        return forgotten_of(await self._database.read(f"{_OF} AND undone = 0", (scope,)))

    async def of_others(self, scope: str, person: str) -> Forgotten:
        """As `of`, what somebody else than this person has had forgotten."""
        own = (
            "SELECT 1 FROM memory_changes c WHERE c.scope = tombstones.scope"
            " AND c.hash = tombstones.hash AND c.kind = 'forgotten' AND c.person = ?"
        )
        rows = await self._database.read(
            f"{_OF} AND undone = 0 AND NOT EXISTS ({own})", (scope, person)
        )
        return forgotten_of(rows)

    async def for_nights(self, scope: str) -> Forgotten:
        """The same, and what somebody has taken back: no night adds it."""
        forgotten = await self.of(scope)
        rows = await self._database.read(f"{_OF} AND undone", (scope,))
        undone = forgotten_of(rows)
        return replace(forgotten, undone=undone.sayings, whose={**undone.whose, **forgotten.whose})


def forgotten_in(connection: sqlite3.Connection, scope: str, since: str = "") -> Forgotten:
    """As `Tombstones.of`, inside a look or a write; what was forgotten after `since` (ISO, UTC)."""
    rows = connection.execute(f"{_OF} AND undone = 0 AND at > ?", (scope, since))
    return forgotten_of(rows.fetchall())


def forgotten_of(rows: Iterable[sqlite3.Row]) -> Forgotten:
    """What these rows of tombstones (`words`, `whose`) are about."""
    whose = {str(row["words"]): frozenset(str(row["whose"]).split("\n")) for row in rows}
    return Forgotten(
        frozenset(whose), {words: names for words, names in whose.items() if names != _EVERYBODY}
    )


def bury(
    connection: sqlite3.Connection,
    scope: str,
    sayings: Collection[str],
    whose: Collection[str] = (),
    *,
    undone: bool = False,
) -> None:
    """From now on these are forgotten. `whose`: the names of the one person whose sayings they were,
    without any those of everybody; `undone`: they are only taken back. For use inside a write. Repeats
    are harmless."""
    names = "\n".join(sorted({name for each in whose if (name := normalised(each))}))
    connection.executemany(
        "INSERT INTO tombstones (scope, hash, words, at, whose, undone) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (scope, hash) DO UPDATE SET at = excluded.at,"
        " whose = IIF(whose = '' OR excluded.whose = '', '', whose || char(10) || excluded.whose),"
        " undone = MIN(undone, excluded.undone)",
        [(scope, hash_of(words), words, stamp(), names, undone) for words in sayings if words],
    )


def unearth(connection: sqlite3.Connection, scope: str, saying: str, who: str = "") -> None:
    """A person, called `who`, has said it again, on purpose: what it says may be kept. What another one
    has forgotten as well stays so of them. For use inside a write."""
    rows = connection.execute("SELECT hash, words, whose FROM tombstones WHERE scope = ?", (scope,))
    for row in rows.fetchall():
        if not forgotten_of([row]).covers(saying, who):
            continue
        left = {name for name in str(row["whose"]).split("\n") if name} - {normalised(who)}
        key = (scope, row["hash"])
        if left:
            connection.execute(
                "UPDATE tombstones SET whose = ? WHERE scope = ? AND hash = ?",
                ("\n".join(sorted(left)), *key),
            )
        else:
            connection.execute("DELETE FROM tombstones WHERE scope = ? AND hash = ?", key)
