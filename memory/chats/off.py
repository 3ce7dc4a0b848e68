"""Memories that somebody has switched off."""

from __future__ import annotations

import sqlite3

from memory.clock import stamp
from memory.database import Database


class MemoryOff:
    """Of all scopes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def holds(self, scope: str) -> bool:
        """Whether this one is off."""
        return await self._database.look(lambda connection: is_off(connection, scope))

    async def switch(self, scope: str, person: str, *, off: bool) -> None:
        """From now on. `person`: who has wanted it. Repeats are harmless."""

        def op(connection: sqlite3.Connection) -> None:
            if off:
                connection.execute(
                    "INSERT INTO memory_off VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                    (scope, person, stamp()),
                )
            else:
                connection.execute("DELETE FROM memory_off WHERE scope = ?", (scope,))

        await self._database.write(op)


def is_off(connection: sqlite3.Connection, scope: str) -> bool:
    """As `MemoryOff.holds`, inside a look or a write."""
    found = connection.execute("SELECT 1 FROM memory_off WHERE scope = ?", (scope,))
    return found.fetchone() is not None
