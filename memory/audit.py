"""The audit table: when, who, what, before, after. Append-only, by a trigger in the database."""

from __future__ import annotations

import sqlite3

from memory.clock import stamp


def record(
    connection: sqlite3.Connection,
    actor: str,
    action: str,
    target: str,
    before: str | None = None,
    after: str | None = None,
) -> None:
    """Add a row, inside the write that does the thing, so that neither stands without the other."""
    connection.execute(
        "INSERT INTO audit (at, actor, action, target, before, after) VALUES (?, ?, ?, ?, ?, ?)",
        (stamp(), actor, action, target, before, after),
    )
