"""New databases without carrying out all migrations each time, which would be half of what most tests
do, and much of it waiting for the disk."""

from __future__ import annotations

import sqlite3
from functools import cache
from pathlib import Path

from memory import database
from memory.storage.migrate import migrate, schema_of


def install() -> None:
    """For every `Database.open` of this process. `tests/memory/test_migrate.py` has the real ones."""
    setattr(database, "migrate", copied)  # noqa: B010 - for pyright it is no name of that module


def copied(connection: sqlite3.Connection, path: Path) -> None:
    """What `migrate` does to a new file; any other is left to it."""
    if schema_of(connection) or connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        migrate(connection, path)
    else:
        _newest().backup(connection)


@cache
def _newest() -> sqlite3.Connection:
    made = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    migrate(made, Path("new.db"))
    return made
