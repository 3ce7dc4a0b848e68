"""A copy of the database is one moment's state, whole, and its owner's alone."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from memory.database import Database
from memory.storage.copying import copy_database
from memory.storage.integrity import damage


def pair(number: int) -> list[tuple[str, str]]:
    return [(f"{number}-{side}", "now") for side in ("a", "b")]


async def test_a_copy_while_others_write_is_whole_and_of_one_moment(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "galata.db")

    async def write() -> None:
        for number in range(300):
            rows = pair(number)
            await database.write(lambda c, rows=rows: c.executemany(  # type: ignore[misc]
                "INSERT INTO notices VALUES (?, ?)", rows))  # fmt: skip

    writing = asyncio.create_task(write())
    copies = [tmp_path / f"copy{number}" for number in range(5)]
    for copy in copies:
        await asyncio.to_thread(copy_database, tmp_path / "galata.db", copy)
    await writing
    await database.close()
    for copy in copies:
        assert damage(copy, None) is None
        assert copy.stat().st_mode & 0o777 == 0o600
        connection = sqlite3.connect(copy)
        assert connection.execute("SELECT COUNT(*) % 2 FROM notices").fetchone()[0] == 0
        connection.close()


async def test_a_copy_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    source, target = tmp_path / "galata.db", tmp_path / "copy"
    database = await Database.open(source)
    await database.write(_fill)
    await database.close()
    stop = threading.Event()
    stop.set()
    with pytest.raises(sqlite3.OperationalError):
        copy_database(source, target, stop)
    assert not target.exists()


def _fill(connection: sqlite3.Connection) -> None:
    connection.executemany(
        "INSERT INTO notices VALUES (?, ?)", [(str(n), "x" * 500) for n in range(5_000)]
    )


async def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    source, target = tmp_path / "galata.db", tmp_path / "copy"
    await (await Database.open(source)).close()
    target.write_text("mine")
    with pytest.raises(FileExistsError):
        copy_database(source, target)
    assert target.read_text() == "mine"
