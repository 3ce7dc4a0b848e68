"""Whether the database can store something now: what a readiness check asks."""

from __future__ import annotations

import secrets
import sqlite3
from typing import Final

from memory.clock import stamp
from memory.database import Database

KEY: Final = "trial"  # of one row in the table of notices, that is written anew each time
_BYTES = 16_384  # more than a long message with what is kept beside it


async def try_to_write(database: Database) -> None:
    """Return when as much as a message takes was written and committed. An empty transaction writes no
    page, and would succeed on a full disk. Raises `StoreUnavailable`."""
    # At random, since SQLite leaves a page alone whose bytes stay as they were. It begins as a time,
    # so that it is cleared away like any notice once nobody asks any more.
    value = f"{stamp()} {secrets.token_hex(_BYTES // 2)}"

    def op(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO notices VALUES (?, ?)"
            " ON CONFLICT (key) DO UPDATE SET told_at = excluded.told_at",
            (KEY, value),
        )

    await database.write(op)
