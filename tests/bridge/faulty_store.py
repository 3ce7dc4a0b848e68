"""Faults of the disk under a real database, without a mock: full, locked, read-only. Each mends itself
when its block ends."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from memory.database import Database

_UNLIMITED = 1_073_741_823  # SQLite's own most


@asynccontextmanager
async def full(database: Database, path: Path) -> AsyncGenerator[None]:
    """The file cannot grow: SQLITE_FULL for what does not fit into its pages. (SQLite takes a smaller
    most than there are pages for as many as there are.)"""
    await _pragma(database, "max_page_count = 1")
    try:
        yield
    finally:
        # Not by a write, which would fail with one that it shares a transaction with.
        unlimited = f"PRAGMA max_page_count = {_UNLIMITED}"
        await database._writer.run(lambda connection: connection.execute(unlimited).fetchall())


@asynccontextmanager
async def locked(database: Database, path: Path) -> AsyncGenerator[None]:
    """Another process holds the database: SQLITE_BUSY."""
    await _pragma(database, "busy_timeout = 10")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        other.rollback()
        other.close()


@asynccontextmanager
async def read_only(database: Database, path: Path) -> AsyncGenerator[None]:
    """SQLITE_READONLY, as on a disk that the system has made read-only; without being root."""
    await _pragma(database, "query_only = ON")
    try:
        yield
    finally:
        # Not by a write, which would be refused.
        await database._writer.run(lambda connection: connection.execute("PRAGMA query_only = OFF"))


Fault = Callable[[Database, Path], AbstractAsyncContextManager[None]]
FAULTS: dict[str, Fault] = {"full": full, "locked": locked, "read-only": read_only}
BULK = "word " * 15_000
"""A text that does not fit into pages that are there."""


async def _pragma(database: Database, pragma: str) -> None:
    def op(connection: sqlite3.Connection) -> Any:
        return connection.execute(f"PRAGMA {pragma}").fetchall()

    await database.write(op)
