"""A damaged database is set aside with all that belongs to it: nothing overwritten, no crash loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory.database import Database
from memory.errors import StoreDamaged, StoreUnavailable
from memory.storage.integrity import damage, set_aside, set_aside_if_damaged

NOW = datetime(2026, 11, 30, 12, 0, 5, tzinfo=UTC)
ASIDE = "galata.db.broken-20261130T120005"


async def stored(path: Path) -> Path:
    """A database with rows in it, on several pages."""
    database = await Database.open(path)

    def op(connection: sqlite3.Connection) -> None:
        connection.executemany(
            "INSERT INTO errors VALUES (?, 'then', 'there', ?)",
            [(f"E{n}", str(n) * 500) for n in range(200)],
        )

    await database.write(op)
    await database.close()
    return path


def tear(path: Path, page: int) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)


async def test_a_whole_file_is_left_alone(tmp_path: Path) -> None:
    path = await stored(tmp_path / "galata.db")
    before = path.read_bytes()
    assert damage(path) is None
    assert damage(path, None) is None
    assert set_aside_if_damaged(path, NOW) is None
    assert path.read_bytes() == before


def test_no_file_and_an_empty_one_are_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "galata.db"
    assert set_aside_if_damaged(path, NOW) is None
    path.touch()
    assert set_aside_if_damaged(path, NOW) is None


@pytest.mark.parametrize("kind", ["no database", "a torn page", "cut off"])
async def test_a_broken_file_is_set_aside_and_the_start_goes_on(tmp_path: Path, kind: str) -> None:
    path = await stored(tmp_path / "galata.db")
    if kind == "no database":
        path.write_bytes(b"something else " * 1000)
    elif kind == "a torn page":
        tear(path, 12)
    else:
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size // 2)
    broken = path.read_bytes()
    said = set_aside_if_damaged(path, NOW)
    assert said is not None
    assert ASIDE in said
    assert (tmp_path / ASIDE).read_bytes() == broken
    database = await Database.open(path)
    assert await database.read("SELECT * FROM errors") == []
    await database.close()
    assert set_aside_if_damaged(path, NOW) is None, "the next start finds nothing to do"


async def test_the_write_ahead_log_goes_along_and_stays_as_it_was(tmp_path: Path) -> None:
    path = await stored(tmp_path / "galata.db")
    await asyncio.to_thread(_write_and_crash, path)
    tear(path, 12)
    files = contents(path)
    assert len(files["-wal"]) > 0
    assert set_aside_if_damaged(path, NOW) is not None
    assert contents(tmp_path / ASIDE) == files
    assert sorted(os.listdir(tmp_path)) == sorted([ASIDE, f"{ASIDE}-wal", f"{ASIDE}-shm"])


@pytest.mark.parametrize("kind", ["empty", "gone"])
async def test_a_log_beside_an_empty_file_is_never_deleted_and_can_be_read_again(
    tmp_path: Path, kind: str
) -> None:
    path = await stored(tmp_path / "galata.db")
    path.unlink()
    await asyncio.to_thread(_all_in_the_log, path)
    log = contents(path)["-wal"]
    if kind == "gone":
        path.unlink()
    else:
        os.truncate(path, 0)
    for opening in (Database.open(path), Database.open_beside(path)):
        with pytest.raises(StoreUnavailable, match=rf"it is {kind}, while galata\.db-wal"):
            await opening
    assert (tmp_path / "galata.db-wal").read_bytes() == log
    said = set_aside_if_damaged(path, NOW)
    assert said is not None
    assert f"galata.db-wal beside it holds {len(log)} bytes" in said
    assert f"truncate --size=4096 {ASIDE}" in said
    aside = tmp_path / ASIDE
    assert (tmp_path / f"{ASIDE}-wal").read_bytes() == log
    database = await Database.open(path)
    assert await database.read("SELECT * FROM errors") == []
    await database.close()
    aside.touch()
    os.truncate(aside, 4096)
    with contextlib.closing(sqlite3.connect(aside)) as rescued:
        assert rescued.execute("SELECT * FROM t").fetchall() == [("said",)]


def _all_in_the_log(path: Path) -> None:
    script = (
        "import sqlite3, os, sys; c = sqlite3.connect(sys.argv[1]);"
        "c.execute('PRAGMA journal_mode = WAL'); c.execute('CREATE TABLE t (a)');"
        "c.execute(\"INSERT INTO t VALUES ('said')\"); c.commit(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)


def _write_and_crash(path: Path) -> None:
    script = (
        "import sqlite3, os, sys; c = sqlite3.connect(sys.argv[1]);"
        "c.execute(\"INSERT INTO notices VALUES ('x', 'now')\"); c.commit(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)


def contents(path: Path) -> dict[str, bytes]:
    """Of the file and its write-ahead log."""
    return {ending: Path(f"{path}{ending}").read_bytes() for ending in ("", "-wal")}


def test_what_was_set_aside_before_is_never_overwritten(tmp_path: Path) -> None:
    names = set[str]()
    for content in (b"first", b"second", b"third"):
        path = tmp_path / "galata.db"
        path.write_bytes(content)
        names.add(set_aside(path, NOW).name)
    assert {(tmp_path / name).read_bytes() for name in names} == {b"first", b"second", b"third"}


async def test_a_row_that_breaks_a_rule_is_no_damage_of_the_file(tmp_path: Path) -> None:
    path = await stored(tmp_path / "galata.db")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE errors SET place = ''")
    connection.execute(
        "UPDATE sqlite_master SET sql = replace(sql, 'place         TEXT NOT NULL',"
        " 'place TEXT NOT NULL CHECK (place <> '''')') WHERE name = 'errors'"
    )
    connection.commit()
    connection.close()
    check = sqlite3.connect(path)
    assert "CHECK" in check.execute("PRAGMA quick_check").fetchone()[0]
    check.close()
    assert damage(path) is None


async def test_an_index_that_lacks_rows_is_found_by_the_full_check(tmp_path: Path) -> None:
    path = await stored(tmp_path / "galata.db")
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a)")
    connection.execute("CREATE INDEX i ON t (a)")
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("DELETE FROM sqlite_master WHERE name = 'i'")
    connection.commit()
    connection.close()
    assert damage(path, None) is not None


async def test_a_large_file_delays_no_start(tmp_path: Path) -> None:
    path = await stored(tmp_path / "galata.db")
    tear(path, 12)
    assert damage(path, 1e-9) in (None, damage(path))


async def test_a_file_that_is_locked_is_not_taken_for_damaged(tmp_path: Path) -> None:
    path = await stored(tmp_path / "galata.db")
    other = sqlite3.connect(path)
    other.execute("PRAGMA journal_mode = DELETE")
    other.execute("BEGIN EXCLUSIVE")
    assert set_aside_if_damaged(path, NOW) is None
    other.close()
    assert path.exists()


def ruin_pages(connection: sqlite3.Connection, path: Path) -> None:
    """All but the first, as another process."""
    connection.execute("INSERT INTO notices VALUES ('ruin', 'now')")  # no cache holds after that
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for page in range(2, path.stat().st_size // 4096 + 1):
        tear(path, page)


async def test_damage_that_is_met_ends_all_writing_also_what_was_written_with_it(
    tmp_path: Path,
) -> None:
    path = await stored(tmp_path / "galata.db")
    database = await Database.open(path)
    with contextlib.closing(sqlite3.connect(path)) as other:
        ruin_pages(other, path)
    met = database.write(lambda connection: connection.execute("SELECT * FROM errors").fetchall())
    beside = database.write(lambda connection: 1)
    results = await asyncio.gather(met, beside, return_exceptions=True)
    assert [type(result) for result in results] == [StoreDamaged] * 2
    assert database.damaged.is_set()
    with pytest.raises(StoreDamaged):
        await database.write(lambda connection: 1)
    await database.close()


async def test_a_damaged_index_of_the_search_is_built_anew_and_costs_nothing_else(
    tmp_path: Path,
) -> None:
    database = await Database.open(tmp_path / "galata.db")

    def op(connection: sqlite3.Connection) -> None:
        connection.executemany(
            "INSERT INTO search_words (rowid, owner, words) VALUES (?, 'o1', 'harbour')",
            [(n,) for n in range(1, 5)],
        )

    await database.write(op)
    await database.write(
        lambda connection: connection.execute(
            "UPDATE search_words_data SET block = x'ffffffff' WHERE id > 10"
        )
    )
    search = "SELECT rowid FROM search_words WHERE search_words MATCH 'harbour'"
    with pytest.raises(StoreUnavailable, match="malformed"):
        await database.read(search)
    await database.write(lambda connection: None)  # behind what mends it
    assert [row[0] for row in await database.read(search)] == [1, 2, 3, 4]
    assert not database.damaged.is_set()
    await database.close()
