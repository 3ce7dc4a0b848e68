"""Every earlier schema, with data in it, becomes the newest one: nothing is lost, and a copy of what
was there is kept."""

from __future__ import annotations

import logging
import resource
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from agent.messages import encode, user_text
from memory.conversations import Boundary, Conversations
from memory.database import Database
from memory.errors import StoreTooNew, StoreTooOld, StoreUnavailable
from memory.inbox import Inbox
from memory.storage.migrate import KEPT_NAME, migrate, migrations, schema_of, statements
from tests.databases import copied

NEWEST = migrations()[-1].number
OLDER = [migration.number for migration in migrations()[:-1]]
THEN = "2026-11-01T10:00:00.000000+00:00"

# What an installation of each schema holds: the tables as they were then.
DATA: dict[int, tuple[str, ...]] = {
    1: (
        "INSERT INTO sessions VALUES (1, 'telegram:1:7', 'telegram', '1', '7', NULL, :then)",
        "INSERT INTO sessions VALUES (2, 'slack:T:C:9', 'slack', 'T', 'C', '9', :then)",
        (
            "INSERT INTO inbox (channel, account, chat, event, session_id, person, kind, state, body,"
            " run_id, received_at, outcome) VALUES"
            " ('telegram', '1', '7', 'm:1', 1, 'u', 'turn', 'done', '{}', 'r1', :then, 'answered'),"
            " ('telegram', '1', '7', 'm:2', 1, 'u', 'turn', 'open', '{}', 'r2', :then, 'withdrawn'),"
            " ('telegram', '1', '7', 'm:3', 1, 'u', 'turn', 'open', '{}', NULL, :then, NULL),"
            " ('telegram', '1', '8', 'm:4', NULL, 'x', 'refused', 'done', NULL, NULL, :then, NULL)"
        ),
        "INSERT INTO messages VALUES (1, 1, 'r0', 0, 'user', :question, :then)",
        "INSERT INTO messages VALUES (2, 1, 'r1', 0, 'user', :question, :then)",
        "INSERT INTO messages VALUES (3, 1, 'r2', 0, 'user', :question, :then)",
        (
            "INSERT INTO boundaries (id, session_id, kind, start_id, created_at)"
            " VALUES (1, 1, 'new', 2, :then)"
        ),
        "INSERT INTO speakers VALUES (2, 'u', 1)",
        (
            "INSERT INTO usage VALUES"
            " ('r1', 1, 1, 'u', 'm', 'answer', 'completed', 10, 5, 0, 0, 0, 100, :then)"
        ),
        "INSERT INTO owners VALUES ('telegram', 'u', :then)",
        "INSERT INTO owner_links VALUES ('hash', 'telegram', :then, NULL)",
        "INSERT INTO notices VALUES ('key', :then)",
        "INSERT INTO audit (at, actor, action, target) VALUES (:then, 'a', 'owner.added', 'u')",
        "INSERT INTO errors VALUES ('ABC', :then, 'there', 'trace')",
    ),
    2: ("INSERT INTO token_ratios VALUES ('m', 1.5, 3, :then)",),
    3: (
        "INSERT INTO left_out VALUES ('r0', 1, :then)",
        "UPDATE boundaries SET note = 'before that'",
        "UPDATE inbox SET stopped_by = 'm:9' WHERE event = 'm:1'",
    ),
    4: (
        (
            "INSERT INTO outbox (key, session_id, private, language, state, created_at)"
            " VALUES ('r1', 1, 1, 'en', 'open', :then)"
        ),
        "INSERT INTO outbox_parts (reply_id, number, body, state) VALUES (1, 1, 'a', 'open')",
    ),
    5: ("INSERT INTO jobs (kind, scope, due_at) VALUES ('flush', 'a', :then)",),
    6: (
        "INSERT INTO moved_chats VALUES ('telegram', '1', '5', '7', :then)",
        "INSERT INTO gone_chats VALUES ('telegram', '1', '8', 0, :then)",
    ),
    7: (
        "INSERT INTO memory_scopes VALUES (1, 'person:telegram:1:7', 'telegram', '1', '7', 3)",
        "INSERT INTO search_files VALUES (1, 'MEMORY.md', 9, 9, x'00', 1)",
        "INSERT INTO search_entries VALUES (1, 1, 'MEMORY.md', NULL, NULL, 0, 1, 0)",
        "INSERT INTO search_words (rowid, owner, words) VALUES (1, 's1', 'tea')",
        "INSERT INTO tombstones VALUES ('person:telegram:1:7', 'hash', 'likes tea', :then)",
        (
            "INSERT INTO memory_changes VALUES"
            " (1, 'person:telegram:1:7', 'remembered', 1, 'hash', 'r1', 'u', :then)"
        ),
        "INSERT INTO memory_snapshots VALUES (1, 1, 1, 'likes tea', :then)",
    ),
    8: ("INSERT INTO policies VALUES ('telegram', '7', '', 'paused: no', 1, :then)",),
    9: (
        "INSERT INTO flushed VALUES (1, 1, 1, 1, NULL, :then)",
        "INSERT INTO read_days VALUES ('a', '2026-11-29', 1, 'f00')",
        "INSERT INTO nights VALUES ('a', '2026-11-29', :then, 'same', '', 0, 0, 0, 0, 0, 0)",
    ),
    11: ("INSERT INTO dialogues VALUES (1, 'telegram', '1', '7', 'u', NULL, '{}', :then)",),
    12: (
        "INSERT INTO private_talks VALUES ('telegram', '1', '7', 'token', :then)",
        "INSERT INTO memory_off VALUES ('person:telegram:1:7', 'u', :then)",
    ),
    13: (
        "INSERT INTO admissions VALUES ('x', '9', 'in', 'Eve', NULL, 'p', 'y', :then, NULL)",
        "INSERT INTO pairings VALUES (1, 'x', '9', 'Eve', NULL, 'f', 'open', :then, '', NULL, '', '')",
        "INSERT INTO invites VALUES (1, 'telegram', 'f00', 5, 'operator', :then, :then, NULL)",
        "INSERT INTO invite_uses VALUES (1, '9', :then)",
        "INSERT INTO wrong_codes VALUES ('telegram:9', :then)",
        "INSERT INTO known_groups VALUES ('x', '1', '-5', 'asked', '', '', 0, '9', '', '', '', '', '')",
    ),
    17: ("INSERT INTO refused_images VALUES (1, 1, 'm', 'r1', x'00', 1, :then)",),
    19: ("INSERT INTO unread_places VALUES ('x', '1', '5', '', :then)",),
}


@pytest.fixture(autouse=True)
def as_outside_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """New files are migrated too, not copied (`tests.databases`)."""
    monkeypatch.setattr("memory.database.migrate", migrate)


def test_what_other_tests_copy_is_what_all_migrations_make(tmp_path: Path) -> None:
    found: list[list[tuple[object, ...]]] = []
    for make in (migrate, copied):
        with closing(sqlite3.connect(tmp_path / make.__name__, isolation_level=None)) as made:
            made.execute("PRAGMA journal_mode = WAL")
            make(made, tmp_path)
            rows = made.execute(
                "SELECT type, name, sql FROM sqlite_master ORDER BY name"
            ).fetchall()
            for pragma in ("user_version", "journal_mode", "auto_vacuum", "page_size", "encoding"):
                rows += made.execute(f"PRAGMA {pragma}").fetchall()
            found.append(rows)
    assert found[0] == found[1]


@contextmanager
def schema(path: Path, number: int) -> Iterator[sqlite3.Connection]:
    """A database as Galata made it when `number` was its newest schema, with data in every table."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA foreign_keys = ON")
    values = {"then": THEN, "question": encode(user_text("What is it?"))}
    for migration in (one for one in migrations() if one.number <= number):
        for statement in statements(migration.sql):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {migration.number}")
        for insert in DATA.get(migration.number, ()):
            connection.execute(insert, values)
    try:
        yield connection
    finally:
        connection.close()


def tables(connection: sqlite3.Connection) -> dict[str, int]:
    names = [
        row[0]
        for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if not row[0].startswith("sqlite_")
    ]
    return {
        name: connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in names
    }


def made_schema(path: Path, number: int) -> dict[str, int]:
    """Make it; how many rows each of its tables has."""
    with schema(path, number) as connection:
        return tables(connection)


def copies(folder: Path) -> list[Path]:
    return [one for one in folder.iterdir() if KEPT_NAME.search(one.name)]


def contents(path: Path) -> dict[str, bytes]:
    """What is in a database's files."""
    found = [one for one in path.parent.iterdir() if one.name.startswith(path.name)]
    return {one.name: one.read_bytes() for one in found}


def opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)


@pytest.mark.parametrize("number", OLDER)
async def test_every_earlier_schema_becomes_the_newest_and_loses_nothing(
    tmp_path: Path, number: int
) -> None:
    path = tmp_path / "galata.db"
    before = made_schema(path, number)
    assert all(before.values()), "each table of that time holds something"
    database = await Database.open(path)
    try:
        conversations, inbox = Conversations(database), Inbox(database)
        context = await conversations.context(1)
        note = "before that" if number >= 3 else None
        assert context.boundary == Boundary("new", 2, None, note)
        assert [stored.run_id for stored in context.messages] == ["r1", "r2"]
        assert [row.run_id for row in await inbox.open_turns("telegram:1:7")] == ["r2", None]
        assert (await database.read("PRAGMA integrity_check"))[0][0] == "ok"
        assert await database.read("PRAGMA foreign_key_check") == []
    finally:
        await database.close()
    connection = opened(path)
    after = tables(connection)
    assert schema_of(connection) == NEWEST
    connection.close()
    assert {name: after[name] for name in before} == before


@pytest.mark.parametrize("number", OLDER)
async def test_it_is_the_same_schema_as_a_new_one(tmp_path: Path, number: int) -> None:
    path, fresh = tmp_path / "galata.db", tmp_path / "fresh.db"
    made_schema(path, number)
    for one in (path, fresh):
        await (await Database.open(one)).close()
    shapes: list[set[tuple[str, ...]]] = []
    for one in (path, fresh):
        connection = opened(one)
        shapes.append(set(connection.execute("SELECT type, name, sql FROM sqlite_master")))
        connection.close()
    assert shapes[0] == shapes[1]


async def test_what_was_there_is_kept_and_one_line_says_what_changes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "galata.db"
    before = made_schema(path, 2)
    for _ in range(2):
        await (await Database.open(path)).close()
    (copy,) = copies(tmp_path)
    connection = opened(copy)
    assert (schema_of(connection), tables(connection)) == (2, before)
    connection.close()
    assert copy.stat().st_mode & 0o777 == 0o600
    (line,) = (record.getMessage() for record in caplog.records if "schema" in record.getMessage())
    assert f"schema 2 becomes {NEWEST} (context, outbox" in line
    assert copy.name in line


async def test_a_new_database_needs_no_copy(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await (await Database.open(tmp_path / "galata.db")).close()
    assert not copies(tmp_path)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_without_room_for_the_copy_the_database_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "galata.db"
    before = made_schema(path, 2)
    # As on a full disk: no file can grow beyond a few pages.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before_signal = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
    try:
        with pytest.raises(StoreUnavailable, match="full"):
            await Database.open(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before_signal)
    connection = opened(path)
    assert (schema_of(connection), tables(connection)) == (2, before)
    connection.close()
    assert not copies(tmp_path)


async def test_a_newer_schema_is_refused_by_name_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "galata.db"
    with schema(path, 1) as connection:
        connection.execute(f"PRAGMA user_version = {NEWEST + 1}")
    with pytest.raises(StoreTooNew, match=f"schema {NEWEST + 1}, this Galata knows {NEWEST}"):
        await Database.open(path)
    assert not copies(tmp_path)


async def test_a_read_only_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        await Database.open(tmp_path / "missing" / "galata.db")


@pytest.mark.parametrize("to_write", [False, True])
async def test_a_command_beside_a_running_bot_changes_no_schema(
    tmp_path: Path, to_write: bool
) -> None:
    """The bot may be of the earlier version, and would find columns that it does not know."""
    path = tmp_path / "galata.db"
    before = made_schema(path, OLDER[-1])
    with pytest.raises(StoreTooOld, match=f"schema {OLDER[-1]}, this Galata needs {NEWEST}"):
        await Database.open_beside(path, to_write=to_write)
    connection = opened(path)
    assert (schema_of(connection), tables(connection)) == (OLDER[-1], before)
    connection.close()
    assert not copies(tmp_path)


@pytest.mark.parametrize("to_write", [False, True])
async def test_a_command_refuses_a_newer_schema_and_makes_no_database(
    tmp_path: Path, to_write: bool
) -> None:
    path = tmp_path / "galata.db"
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        await Database.open_beside(path, to_write=to_write)
    assert not path.exists()
    with schema(path, 1) as connection:
        connection.execute(f"PRAGMA user_version = {NEWEST + 1}")
    with pytest.raises(StoreTooNew):
        await Database.open_beside(path, to_write=to_write)


async def test_what_only_reads_changes_no_byte_also_after_a_crash(tmp_path: Path) -> None:
    """A killed bot leaves its write-ahead log, whose end a reader sees and leaves where it is."""
    made, path = tmp_path / "made.db", tmp_path / "a b?#%.db"
    bot = await Database.open(made)
    await bot.write(lambda c: c.execute("INSERT INTO notices VALUES ('a', 'b')"))
    for ending in ("", "-wal"):
        shutil.copyfile(f"{made}{ending}", f"{path}{ending}")
    await bot.close()
    files = contents(path)
    assert len(files) == 2
    reader = await Database.open_beside(path)
    assert [tuple(row) for row in await reader.read("SELECT * FROM notices")] == [("a", "b")]
    with pytest.raises(StoreUnavailable, match="readonly"):
        await reader.write(lambda c: c.execute("DELETE FROM notices"))
    await reader.close()
    assert {one: found for one, found in contents(path).items() if one in files} == files


async def test_a_command_reads_and_writes_while_the_bot_does(tmp_path: Path) -> None:
    path = tmp_path / "galata.db"
    bot = await Database.open(path)
    reader = await Database.open_beside(path)
    writer = await Database.open_beside(path, to_write=True)
    await bot.write(lambda c: c.execute("INSERT INTO notices VALUES ('bot', 'b')"))
    await writer.write(lambda c: c.execute("INSERT INTO notices VALUES ('command', 'b')"))
    for each in (bot, reader, writer):
        found = await each.read("SELECT key FROM notices ORDER BY key")
        assert [row[0] for row in found] == ["bot", "command"]
        await each.close()
