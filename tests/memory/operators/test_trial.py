"""Ready means that a message could be stored now, and asking leaves nothing that grows."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from memory.database import Database
from memory.errors import StoreUnavailable
from memory.operators.trial import try_to_write


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[Database]:
    opened = await Database.open(tmp_path / "galata.db")
    yield opened
    await opened.close()


async def set_most_pages(database: Database, pages: int) -> None:
    """As a disk with so much room."""
    await database.write(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchone())


async def pages(database: Database) -> int:
    return int((await database.read("PRAGMA page_count"))[0][0])


async def test_a_disk_without_room_for_a_message_is_found_and_its_recovery_too(
    database: Database,
) -> None:
    full = await pages(database)
    await set_most_pages(database, full)
    await database.write(lambda _: None)  # what an empty transaction does not notice
    with pytest.raises(StoreUnavailable, match="full"):
        await try_to_write(database)
    await set_most_pages(database, full + 100)
    await try_to_write(database)


async def test_each_trial_writes_a_messages_worth_and_the_file_does_not_grow(
    database: Database, tmp_path: Path
) -> None:
    await try_to_write(database)
    before = await pages(database)
    await asyncio.to_thread(_written, tmp_path / "galata.db")
    for _ in range(3):
        assert await asyncio.to_thread(_written, tmp_path / "galata.db") == 0
        await try_to_write(database)
        assert await asyncio.to_thread(_written, tmp_path / "galata.db") > 16_000
    assert await pages(database) == before


def _written(path: Path) -> int:
    """The bytes in the log since this was asked last."""
    connection = sqlite3.connect(path)
    size = Path(f"{path}-wal").stat().st_size
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return size
