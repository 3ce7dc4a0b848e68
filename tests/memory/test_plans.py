"""What is asked at each start, each turn and each look of an operator does not look through all that
is stored."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory.backlog import BacklogStore
from memory.chats.reach import ChatPlace
from memory.database import Database
from memory.inbox import Inbox
from memory.operators.overview import Overview
from memory.outbox import Outbox
from memory.runs import Runs
from memory.usage import UsageStore

CHANNELS = ("telegram", "slack")
KEY = "telegram:b:1"

ASKED: dict[str, tuple[str, Callable[[Database], Awaitable[Any]]]] = {
    "replies": ("outbox_open", lambda d: Outbox(d).open_replies(CHANNELS)),
    "lost runs": ("runs_open", lambda d: Runs(d).lost(CHANNELS)),
    "acts": ("inbox_open", lambda d: Inbox(d).open_acts()),
    "sessions": ("inbox_open", lambda d: Inbox(d).open_sessions(CHANNELS)),
    "a session's turns": ("inbox_open", lambda d: Inbox(d).open_turns(KEY)),
    "how many wait": ("inbox_open", lambda d: Inbox(d).waiting(KEY)),
    "a chat's backlog": (
        "inbox_open",
        lambda d: BacklogStore(d).waiting(ChatPlace("telegram", "b", "1")),
    ),
}


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[Database]:
    opened = await Database.open(tmp_path / "galata.db")
    yield opened
    await opened.close()


async def plan(
    database: Database,
    ask: Callable[[Database], Awaitable[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> list[str]:
    """The steps of the queries that `ask` leads to."""
    asked: list[tuple[str, Iterable[Any]]] = []
    read, look = database.read, database.look

    async def noted(sql: str, parameters: Iterable[Any] = ()) -> Any:
        asked.append((sql, parameters))
        return await read(sql, parameters)

    class Noting:
        def __init__(self, connection: sqlite3.Connection) -> None:
            self._connection = connection

        def execute(self, sql: str, parameters: Iterable[Any] = ()) -> sqlite3.Cursor:
            asked.append((sql, parameters))
            return self._connection.execute(sql, tuple(parameters))

    async def noted_look(operation: Callable[[Any], Any]) -> Any:
        return await look(lambda connection: operation(Noting(connection)))

    with monkeypatch.context() as patched:
        patched.setattr(database, "read", noted)
        patched.setattr(database, "look", noted_look)
        await ask(database)
    return [
        row["detail"]
        for sql, values in asked
        for row in await read(f"EXPLAIN QUERY PLAN {sql}", values)
    ]


@pytest.mark.parametrize("what", ASKED)
async def test_what_is_open_is_found_by_an_index_of_what_is_open(
    database: Database, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, ask = ASKED[what]
    steps = await plan(database, ask, monkeypatch)
    assert any(f"USING INDEX {index}" in step for step in steps), steps


async def test_a_channels_last_message_is_found_without_sorting_all_of_them(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = await plan(database, lambda d: Overview(d).last_message("slack"), monkeypatch)
    assert not any("TEMP B-TREE" in step for step in steps), steps


async def test_what_all_chats_have_cost_is_read_from_an_index_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each model call, over all calls of a month."""
    since = datetime(2026, 11, 1, tzinfo=UTC)
    steps = await plan(database, lambda d: UsageStore(d).cost_since(since), monkeypatch)
    assert any("USING COVERING INDEX usage_by_time" in step for step in steps), steps
    assert any("USING INDEX usage_reserved" in step for step in steps), steps
