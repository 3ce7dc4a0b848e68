"""What an operator asks the database."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory.clock import stamp
from memory.conversations import SessionPlace
from memory.database import Database
from memory.inbox import Entry, Inbox
from memory.operators.errorlog import ErrorLog
from memory.operators.overview import ChatQueue, LastRun, Overview

ANA = SessionPlace("telegram:b:1", "telegram", "b", "1", None)
TEAM = SessionPlace("slack:b:C1", "slack", "b", "C1", None)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[Database]:
    opened = await Database.open(tmp_path / "galata.db")
    yield opened
    await opened.close()


async def put(database: Database, place: SessionPlace, event: str, body: str = "{}") -> int:
    row = await Inbox(database).put(Entry(place, event, "ana", "turn", body, stamp()))
    assert row is not None
    return row


async def execute(database: Database, sql: str, *values: object) -> None:
    def op(connection: sqlite3.Connection) -> None:
        connection.execute(sql, values)

    await database.write(op)


async def test_an_empty_database_has_nothing_to_tell(database: Database) -> None:
    overview = Overview(database)
    assert await overview.channels() == []
    assert await overview.queues() == []
    assert await overview.last_message("telegram") is None
    assert await overview.last_body("telegram", "ana") is None
    assert await overview.errors_since(datetime.now(UTC) - timedelta(hours=1)) == []


async def test_runs_waiting_messages_and_replies_are_counted_by_session(
    database: Database,
) -> None:
    running = [await put(database, ANA, "m:1"), await put(database, ANA, "m:2")]
    await put(database, ANA, "m:3")
    withdrawn = await put(database, TEAM, "m:1")
    done = await put(database, TEAM, "m:2")
    for row, run_id in ((running[0], "r1"), (running[1], "r1"), (withdrawn, "r2"), (done, "r3")):
        await execute(database, "UPDATE inbox SET run_id = ? WHERE id = ?", run_id, row)
    await execute(
        database,
        "INSERT INTO runs (run_id, session_id, state, began_at) VALUES ('r2', 2, 'withdrawn', '')",
    )
    await Inbox(database).close([done], "answered")
    await execute(
        database,
        "INSERT INTO outbox (key, session_id, private, language, state, created_at)"
        " VALUES ('r3', 2, 0, 'en', 'open', ?), ('r4', 2, 0, 'en', 'done', ?)",
        *(stamp(), stamp()),
    )
    first, second = await Overview(database).queues()
    assert first == ChatQueue(ANA.key, 1, 1, 0, first.since)
    assert second == ChatQueue(TEAM.key, 0, 1, 1, second.since)
    assert first.since < second.since


async def test_the_last_message_and_what_somebody_wrote_last(database: Database) -> None:
    before = stamp()
    await put(database, ANA, "m:1", '{"n": 1}')
    await put(database, ANA, "m:2", '{"n": 2}')
    overview = Overview(database)
    assert await overview.channels() == ["telegram"]
    last = await overview.last_message("telegram")
    assert last is not None
    assert last > before
    assert await overview.last_message("slack") is None
    assert await overview.last_body("telegram", "ana") == '{"n": 2}'
    assert await overview.last_body("telegram", "bo") is None


async def test_errors_of_a_time_newest_first(database: Database) -> None:
    for error_id in ("AAAA", "BBBB"):
        await ErrorLog(database).add(error_id, "somewhere", "trace")
    await execute(
        database,
        "INSERT INTO errors VALUES ('OLD', ?, 'x', 'y')",
        stamp(datetime.now(UTC) - timedelta(hours=2)),
    )
    found = await Overview(database).errors_since(datetime.now(UTC) - timedelta(hours=1))
    assert found == ["BBBB", "AAAA"]


async def test_how_the_last_run_of_a_kind_ended(database: Database) -> None:
    overview = Overview(database)
    assert await overview.last_run("backup") is None
    await execute(database, "INSERT INTO jobs (kind, scope, due_at) VALUES ('backup', '', 'x')")
    assert await overview.last_run("backup") is None
    await execute(database, "UPDATE jobs SET outcome = 'failed', last_at = '1'")
    assert await overview.last_run("backup") == LastRun("failed", "", "1")
