"""The store's jobs in the whole app: planned by the configuration, carried out, ended at a stop."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bridge.config import Config
from bridge.log import Redactor
from bridge.operation.backup import backups
from bridge.operation.upkeep import BACKUP, RETENTION, Upkeep, in_thread, open_whole, patiently
from bridge.scheduler import Due, Handler
from bridge.services import turn_services
from memory.database import Database
from memory.errors import StoreUnavailable
from memory.jobs import JobRow, Jobs
from memory.settings import BackupSettings, RetentionSettings
from tests.bridge.faulty_store import locked


class Bed:
    def __init__(self, upkeep: Upkeep, database: Database, data: Path) -> None:
        self.upkeep = upkeep
        self.database = database
        self.data = data

    async def rows(self) -> dict[str, JobRow]:
        return {row.kind: row for row in await Jobs(self.database).all()}

    async def due_now(self, kind: str) -> JobRow:
        """Carry the job out as if its time had come."""
        await self.upkeep.scheduler.once(kind, datetime.now(UTC))
        await self.upkeep.scheduler.tick(datetime.now(UTC) + timedelta(seconds=1))
        await self.upkeep.scheduler.idle()
        return (await self.rows())[kind]


@asynccontextmanager
async def bed(
    data: Path,
    more: dict[str, Handler] | None = None,
    plans: dict[str, str] | None = None,
    **settings: Any,
) -> AsyncIterator[Bed]:
    os.makedirs(data, exist_ok=True)
    config = Config(timezone="Europe/Berlin", **settings)
    database = await open_whole(data / "galata.db")
    try:
        async with asyncio.TaskGroup() as group:
            services = turn_services(config, database, data, Redactor())
            upkeep = Upkeep(config, database, data, services, group, more or {}, plans or {})
            await upkeep.start()
            yield Bed(upkeep, database, data)
            await upkeep.scheduler.close()
    finally:
        await database.close()


async def test_the_clean_up_is_planned_each_night_in_the_configured_zone(tmp_path: Path) -> None:
    async with bed(tmp_path / "data") as made:
        rows = await made.rows()
        assert set(rows) == {RETENTION}
        assert (rows[RETENTION].cron, rows[RETENTION].zone) == ("30 3 * * *", "Europe/Berlin")


async def test_other_kinds_of_jobs_come_by_their_own_plan(tmp_path: Path) -> None:
    async def work(due: Due) -> str:
        return "done"

    handler = {"more": Handler(work, 60)}
    async with bed(tmp_path / "data", handler, {"more": "0 4 * * *"}) as made:
        row = (await made.rows())["more"]
        assert (row.cron, row.zone) == ("0 4 * * *", "Europe/Berlin")


async def test_backups_are_planned_when_they_are_switched_on_only(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with bed(data, backup=BackupSettings(every="week")) as made:
        assert (await made.rows())[BACKUP].cron == "30 4 * * sun"
    async with bed(data) as made:
        assert BACKUP not in await made.rows()


async def test_the_night_deletes_by_the_configuration_and_says_how_much(tmp_path: Path) -> None:
    keep = RetentionSettings(messages_days=2, transcripts_days=1)
    async with bed(tmp_path / "data", retention=keep) as made:
        services_data = made.data / "transcripts" / "a"
        services_data.mkdir(parents=True)
        for name in ("transcripts/a/x.jsonl", "galata.db.schema-2-20260101T000000"):
            path = made.data / name
            path.write_text("old")
            os.utime(path, (1, 1))
        (made.data / "galata.db.broken-20260101T000000").write_text("the operator's")
        row = await made.due_now(RETENTION)
        assert (row.outcome, row.detail) == ("done", "1 transcripts, 1 old databases")
        assert sorted(path.name for path in made.data.glob("galata.db.*")) == [
            "galata.db.broken-20260101T000000"
        ]
        assert (await made.due_now(RETENTION)).detail == "nothing is old"


async def test_a_clean_up_that_was_missed_by_days_waits_for_a_clock_that_is_right(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path / "data", retention=RetentionSettings(messages_days=1)) as made:
        await made.database.write(
            lambda connection: connection.execute(
                "INSERT INTO errors VALUES ('E', '2020-01-01', 'there', 'trace')"
            )
        )
        await made.upkeep.scheduler.once(RETENTION, datetime.now(UTC) - timedelta(days=2))
        await made.upkeep.scheduler.tick(datetime.now(UTC))
        await made.upkeep.scheduler.idle()
        assert (await made.rows())[RETENTION].detail == "left to the next night"
        assert len(await made.database.read("SELECT * FROM errors")) == 1


async def test_a_store_that_takes_no_plans_yet_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.operation.upkeep.AGAIN_S", 0.01)
    begun = asyncio.Event()

    async def work(due: Due) -> str:
        begun.set()
        return "well"

    database = await open_whole(tmp_path / "galata.db")
    await Jobs(database).once("flush", "", datetime.now(UTC))
    async with asyncio.TaskGroup() as group:
        services = turn_services(Config(), database, tmp_path, Redactor())
        handlers = {"flush": Handler(work, 60)}
        upkeep = Upkeep(Config(), database, tmp_path, services, group, handlers)
        async with locked(database, tmp_path / "galata.db"):
            assert not await upkeep.start()
            task = group.create_task(upkeep.run())
        await begun.wait()
        task.cancel()
    await database.close()


async def test_a_backup_by_the_clock_lies_in_the_data_folder(tmp_path: Path) -> None:
    async with bed(tmp_path / "data", backup=BackupSettings(keep=2)) as made:
        row = await made.due_now(BACKUP)
        (archive,) = backups(made.data / "backups")
        assert (row.outcome, row.detail.split(",")[0] if row.detail else "") == (
            "done",
            archive.name,
        )


async def test_a_backup_that_fails_is_reported_and_tried_again(tmp_path: Path) -> None:
    async with bed(tmp_path / "data", backup=BackupSettings()) as made:
        (made.data / "backups").write_text("in the way")
        row = await made.due_now(BACKUP)
        assert row.outcome == "failed"
        assert row.due_at is not None
        (trace,) = await made.database.read("SELECT id, trace FROM errors")
        assert row.detail == f"error {trace['id']}"


async def test_other_kinds_of_jobs_join(tmp_path: Path) -> None:
    done: list[Due] = []

    async def work(due: Due) -> str:
        done.append(due)
        return "well"

    async with bed(tmp_path / "data", {"flush": Handler(work, 60)}) as made:
        await made.due_now("flush")
    assert [due.kind for due in done] == ["flush"]


async def test_a_damaged_database_is_set_aside_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "galata.db").write_bytes(b"no database " * 1000)
    async with bed(data) as made:
        assert await made.database.read("SELECT * FROM messages") == []
    assert [name for name in os.listdir(data) if ".broken-" in name]
    assert "set aside" in caplog.text


async def test_a_start_waits_for_whoever_holds_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("bridge.operation.upkeep.START_AGAIN_S", (0.01,) * 1000)
    monkeypatch.setattr("memory.database.BUSY_TIMEOUT_MS", 10)
    path, stop = tmp_path / "galata.db", asyncio.Event()
    await (await open_whole(path)).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        opening = asyncio.create_task(patiently(lambda: open_whole(path), asyncio.Event()))
        stop.set()
        with pytest.raises(StoreUnavailable, match="locked"):
            await patiently(lambda: open_whole(path), stop)
        assert "tried again" in caplog.text
    await (await opening).close()


async def test_it_goes_on_until_it_is_cancelled_and_ends_what_runs(tmp_path: Path) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hang(due: Due) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError("it does not end by itself")

    database = await open_whole(tmp_path / "galata.db")
    await Jobs(database).once("flush", "", datetime.now(UTC))
    async with asyncio.TaskGroup() as group:
        config = Config()
        services = turn_services(config, database, tmp_path, Redactor())
        handlers = {"flush": Handler(hang, 60)}
        upkeep = Upkeep(config, database, tmp_path, services, group, handlers)
        task = group.create_task(upkeep.run())
        await begun.wait()
        task.cancel()
    assert ended.is_set()
    (row,) = [row for row in await Jobs(database).all() if row.kind == "flush"]
    assert (row.tries, row.began_at) == (0, None), "it comes at the next start"
    await database.close()


async def test_work_in_a_thread_is_told_to_stop(tmp_path: Path) -> None:
    begun, ended = threading.Event(), threading.Event()

    def work(stop: threading.Event) -> None:
        begun.set()
        stop.wait()
        ended.set()

    task = asyncio.create_task(in_thread(work))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await asyncio.to_thread(ended.wait, 10)
