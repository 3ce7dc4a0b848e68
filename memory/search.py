"""Search in a scope's memory files and conversations, by relevance and age.

The scope stands in every query, and every entry of the index carries it twice: what one chat said is
found by no other. What was taken out of a conversation, and what was forgotten, is not found.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path

from memory.database import Database
from memory.indexing import Indexer, Owner, said
from memory.markdown.files import read
from memory.markdown.lines import said as line_says
from memory.markdown.lines import speaker_of
from memory.markdown.pieces import entry_pieces, excerpt
from memory.scopes import FACTS, ChatScope, scope_path
from memory.text.telling import beginning, tells
from memory.text.words import Phrase, looser, marks, normalised, phrases, searched
from memory.tombstones import Forgotten, Tombstones

MOST_HITS = 10
MOST_PHRASES = 20  # of a query; the rest is left out
MOST_FILES = 30  # in which something to be forgotten is looked for
MOST_SHOWN = 700  # characters of a hit
HALF_AFTER_DAYS = 180  # a saying of that age counts half as much
FACTS_COUNT = 2  # times as much as what was said today
_FURTHER = 3  # times as many as are wanted are looked at: some are forgotten or have just changed

# The inner query ranks by numbers alone: sorting whole texts took most of the time.
_FIND = (
    "SELECT e.id, e.name, e.line, e.lines, w.words, e.message_id, m.role, m.created_at, m.body,"
    " r.own_words IS 0 AS passed_on"
    " FROM (SELECT e.id, bm25(search_words, 0.0, 1.0) * IIF(e.name = :facts, :twice,"
    " :half / (:half + MAX(0, :today - e.day))) AS rank"
    " FROM search_words CROSS JOIN search_entries e ON e.id = search_words.rowid"
    " WHERE search_words MATCH :match AND e.owner = :owner"
    " AND (e.message_id IS NULL OR (e.run_id IS NOT :besides AND e.run_id NOT IN"
    " (SELECT run_id FROM left_out)))"
    " ORDER BY rank, e.id DESC LIMIT :most) best"
    " JOIN search_entries e ON e.id = best.id JOIN search_words w ON w.rowid = best.id"
    " LEFT JOIN messages m ON m.id = e.message_id LEFT JOIN runs r ON r.run_id = e.run_id"
    " ORDER BY best.rank, e.id DESC"
)


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found. Of a file `name` and the line counted from 1; of a conversation who
    said it (`role`) and when (ISO 8601, UTC). `passed_on`: its question held what somebody else
    wrote."""

    text: str
    name: str | None = None
    line: int = 0
    role: str = ""
    at: str = ""
    passed_on: bool = False


class _Changed(Exception):
    """A file is not any more as it was indexed."""


class Search:
    """`folder`: that of all memory files."""

    def __init__(self, database: Database, folder: Path, indexer: Indexer) -> None:
        self._database = database
        self._folder = folder
        self._indexer = indexer
        self._tombstones = Tombstones(database)

    async def find(
        self,
        chat: ChatScope,
        query: str,
        *,
        besides: str | None = None,
        most: int = MOST_HITS,
        today: date | None = None,
    ) -> list[Hit]:
        """The best hits: first those with all words, then those with some. `besides`: a run that is
        not to find itself. Raises `StoreError` and `OSError`."""
        asked = phrases(query)[:MOST_PHRASES]
        if not asked:
            return []
        values = {
            "besides": besides,
            "facts": FACTS,
            "twice": float(FACTS_COUNT),
            "half": float(HALF_AFTER_DAYS),
            "today": (today or datetime.now(UTC).date()).toordinal(),
            "most": most * _FURTHER,
        }
        try:
            return await self._find(chat, asked, values, most, everything=False)
        except _Changed:
            return await self._find(chat, asked, values, most, everything=True)

    async def _find(
        self,
        chat: ChatScope,
        asked: Sequence[Phrase],
        values: Mapping[str, object],
        most: int,
        *,
        everything: bool,
    ) -> list[Hit]:
        """Raises `_Changed`, unless it looks at `everything`: what changes meanwhile is left out."""
        owner = await self._indexer.catch_up(chat, everything=everything)
        forgotten = await self._tombstones.of(chat.scope)
        hits: dict[int, Hit] = {}
        for wanted in dict.fromkeys((_all(asked), _any(asked))):
            match = f'owner : "{owner.word}" AND words : ({wanted})'
            rows = await self._database.read(_FIND, {**values, "match": match, "owner": owner.id})
            reading = _Reading(scope_path(self._folder, chat.scope), asked, strict=not everything)
            fresh = [row for row in rows if row["id"] not in hits]
            hits |= await asyncio.to_thread(reading.best, fresh, most - len(hits), forgotten)
            if len(hits) == most:
                break
        return list(hits.values())

    async def names(self, chat: ChatScope, asked: Sequence[Phrase]) -> list[str]:
        """The files in which one entry has all of the phrases, the newest day first."""
        owner = await self._indexer.catch_up(chat, everything=True)
        rows = await self._database.read(
            "SELECT DISTINCT e.name FROM search_words CROSS JOIN search_entries e"
            " ON e.id = search_words.rowid WHERE search_words MATCH ? AND e.owner = ?"
            " AND e.name IS NOT NULL ORDER BY e.name DESC LIMIT ?",
            (owner.asking(_all(asked)), owner.id, MOST_FILES),
        )
        return [str(row[0]) for row in rows]

    async def runs_that_say(
        self, chat: ChatScope, sayings: Iterable[str], *, besides: str | None
    ) -> set[tuple[str, int]]:
        """The runs in which a question and its answer together hold all that tells one of the sayings
        from others, in whatever form of the words, with their sessions, without `besides`."""
        owner = await self._indexer.catch_up(chat)
        found: set[tuple[str, int]] = set()
        for saying in sayings:
            runs: set[tuple[str, int]] | None = None
            told = " ".join(filter(tells, saying.split())) or saying
            for mark in marks(told):
                these = await self._runs_with(owner, _in_its_forms(mark))
                runs = these if runs is None else runs & these
            found |= runs or set()
        return {(run_id, session) for run_id, session in found if run_id != besides}

    async def _runs_with(self, owner: Owner, phrase: Phrase) -> set[tuple[str, int]]:
        rows = await self._database.read(
            "SELECT DISTINCT m.run_id, m.session_id FROM search_words"
            " CROSS JOIN search_entries e ON e.id = search_words.rowid"
            " JOIN messages m ON m.id = e.message_id"
            " WHERE search_words MATCH ? AND e.owner = ?",
            (owner.asking(phrase.fts()), owner.id),
        )
        return {(str(row[0]), int(row[1])) for row in rows}


class _Reading:
    """Reads what was found where it stands. `strict`: one that has changed raises `_Changed`."""

    def __init__(self, folder: Path, asked: Sequence[Phrase], *, strict: bool) -> None:
        self._folder = folder
        self._asked = asked
        self._strict = strict
        self._files: dict[str, list[str]] = {}

    def best(self, rows: Iterable[sqlite3.Row], most: int, forgotten: Forgotten) -> dict[int, Hit]:
        """The first hits that are not forgotten, by the entry's row id."""
        hits = (found for found in self._hits(rows) if not _is_forgotten(found[1], forgotten))
        return dict(islice(hits, most))

    def _hits(self, rows: Iterable[sqlite3.Row]) -> Iterator[tuple[int, Hit]]:
        for row in rows:
            entry, name, line, lines, indexed, _, role, created_at, body, passed_on = row
            whole = self._lines(str(name)) if name is not None else said(str(body))
            text = "\n".join(whole[line : line + lines])
            fact = next(iter(entry_pieces(text)), None) if name == FACTS else None
            told = fact.text if fact else text
            # An earlier version has indexed no emoji.
            if indexed != searched(told) and indexed != normalised(told):
                if self._strict:
                    raise _Changed
                continue
            shown = excerpt(text, self._asked, MOST_SHOWN)
            if name is not None:
                yield int(entry), Hit(shown, name=str(name), line=int(line) + 1)
            else:
                at, foreign = str(created_at), bool(passed_on)
                yield int(entry), Hit(shown, role=str(role), at=at, passed_on=foreign)

    def _lines(self, name: str) -> list[str]:
        if name not in self._files:
            data = read(self._folder / name)
            self._files[name] = data.decode("utf-8", "replace").split("\n")
        return self._files[name]


def _is_forgotten(hit: Hit, forgotten: Forgotten) -> bool:
    """An entry in other words than what was forgotten has been left by whoever chose among them."""
    if hit.name == FACTS:
        return forgotten.repeats_line(hit.text)
    lines = hit.text.split("\n")
    asks = speaker_of(lines[0]) if hit.name is None else ""
    whos = [asks or speaker_of(line) for line in lines] if forgotten.whose else [""] * len(lines)
    said = [(line_says(line), who) for line, who in zip(lines, whos, strict=True)]
    # What others say of themselves does not count for the whole either.
    shown = [
        line
        for line, each in zip(lines, said, strict=True)
        if not (forgotten.whose and forgotten.is_of_another(*each))
    ]
    return forgotten.covers("\n".join(shown)) or any(forgotten.covers(*each) for each in said)


def _in_its_forms(mark: tuple[str, ...]) -> Phrase:
    start = beginning(mark[0])
    return Phrase((start,), beginning=True) if (start,) != mark and len(mark) == 1 else Phrase(mark)


def _all(asked: Sequence[Phrase]) -> str:
    return " AND ".join(phrase.fts() for phrase in asked)


def _any(asked: Sequence[Phrase]) -> str:
    return " OR ".join(phrase.fts() for phrase in looser(asked)[:MOST_PHRASES])
