"""What stands behind the error ids that chats were shown."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from memory.clock import stamp
from memory.database import Database


@dataclass(frozen=True, slots=True)
class StoredError:
    """An error as it was logged. `at` is ISO 8601 in UTC; secrets are removed from `trace`."""

    id: str
    at: str
    place: str
    trace: str


class ErrorLog:
    """Stored errors, by id."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, error_id: str, place: str, trace: str) -> None:
        """Keep an error; `trace` is redacted by the caller."""

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO errors VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (error_id, stamp(), place, trace),
            )

        await self._database.write(op)

    async def find(self, error_id: str) -> StoredError | None:
        """The error of that id, in either case of letters, or None."""
        rows = await self._database.read(
            "SELECT id, at, place, trace FROM errors WHERE id = ?", (error_id.upper(),)
        )
        return StoredError(*rows[0]) if rows else None
