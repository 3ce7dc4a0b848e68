"""A database is read where nothing can be created beside it, and nothing there changes.

That the folder is read-only is played: whoever runs the tests as root could write anywhere.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest

import memory.storage.frozen
from memory.database import Database


def is_never_writable(_: Path) -> bool:
    return False


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(params=["with a log", "without"])
async def folder(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """As a killed process leaves it, copied to where nobody can write, or as a stopped one does."""
    alive, still = tmp_path / "alive", tmp_path / "still"
    alive.mkdir()
    still.mkdir()
    database = await Database.open(alive / "galata.db")

    def op(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO errors VALUES ('E1', 'then', 'there', 'trace')")

    await database.write(op)
    if request.param == "without":
        await database.close()
    for name in ("galata.db", "galata.db-wal"):
        if (alive / name).exists():
            shutil.copy(alive / name, still / name)
    await database.close()
    monkeypatch.setattr(memory.storage.frozen, "is_writable", is_never_writable)
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(copies))
    return still


async def test_all_is_read_and_nothing_is_left_behind(folder: Path) -> None:
    before = contents(folder)
    database = await Database.open_beside(folder / "galata.db")
    assert [row[0] for row in await database.read("SELECT id FROM errors")] == ["E1"]
    assert contents(folder) == before, "also while it is open"
    await database.close()
    assert os.listdir(folder.parent / "copies") == []
