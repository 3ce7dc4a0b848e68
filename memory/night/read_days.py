"""What the nights have read of the day files: a length and a hash each, so that what was appended is
new, and a file that a hand has edited is new as a whole."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from memory.daily import DailyFiles
from memory.database import Database
from memory.notes.flush import Note, notes

EDITED_WITHIN = timedelta(days=31)
"""A file of that age is looked at again: a hand may have edited it."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A day file with something new since the last success: all its bytes, and the new notes."""

    day: date
    data: bytes
    notes: tuple[Note, ...]

    def until(self, note: Note) -> int:
        """Where the note's line ends, in bytes."""
        return sum(len(line) + 1 for line in self.data.split(b"\n")[: note.line + 1])


class ReadDays:
    """Of all scopes."""

    def __init__(self, database: Database, daily: DailyFiles) -> None:
        self._database = database
        self._daily = daily

    async def unread(self, scope: str, today: date) -> list[Unread]:
        """The day files with something new in them, the oldest first; of one that was edited by hand
        everything is new. Raises `OSError`."""
        rows = await self._database.read(
            "SELECT day, bytes, hash FROM read_days WHERE scope = ?", (scope,)
        )
        known = {date.fromisoformat(row[0]): (int(row[1]), str(row[2])) for row in rows}
        found: list[Unread] = []
        for day in await self._daily.days(scope):
            if day in known and day < today - EDITED_WITHIN:
                continue
            data = await self._daily.read(scope, day)
            size, hashed = known.get(day, (0, ""))
            if len(data) < size or _hash(data[:size]) != hashed:
                size = 0
            if len(data) > size:
                first = data[:size].count(b"\n")
                new = [
                    note for note in notes(data.decode(errors="replace"), day) if note.line >= first
                ]
                found.append(Unread(day, data, tuple(new)))
        return found

    async def read(self, scope: str, parts: Sequence[tuple[Unread, int]]) -> None:
        """The first so many bytes of these files are done with."""
        values = [
            (scope, part.day.isoformat(), size, _hash(part.data[:size])) for part, size in parts
        ]

        def op(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT INTO read_days (scope, day, bytes, hash) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (scope, day) DO UPDATE SET bytes = excluded.bytes,"
                " hash = excluded.hash",
                values,
            )

        await self._database.write(op)

    async def prefixes(self, scope: str) -> dict[date, bytes]:
        """What of each day file is done with, as it stands in it. Raises `OSError`."""
        rows = await self._database.read(
            "SELECT day, bytes, hash FROM read_days WHERE scope = ?", (scope,)
        )
        found: dict[date, bytes] = {}
        for text, size, hashed in rows:
            day = date.fromisoformat(text)
            head = (await self._daily.read(scope, day))[: int(size)]
            if _hash(head) == hashed:
                found[day] = head
        return found

    async def carry(self, scope: str, prefixes: Mapping[date, bytes]) -> None:
        """Lines were taken out of these parts: what is left of them stays done with. Raises
        `OSError`."""
        for day, head in prefixes.items():
            data = await self._daily.read(scope, day)
            if not data.startswith(head):
                await self.read(scope, [(Unread(day, data, ()), _left_of(head, data))])


def _left_of(head: bytes, data: bytes) -> int:
    """How many of the first bytes of `data` are lines of `head`, of which some have gone."""
    before, size = iter(head.split(b"\n")), 0
    for line in data.split(b"\n"):
        if line not in before:  # looks on from where it was
            break
        size += len(line) + 1
    return min(size, len(data))


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
