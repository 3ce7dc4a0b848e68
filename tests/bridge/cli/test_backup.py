"""`galata backup`, `galata restore` and `galata jobs`, as processes."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory.database import Database
from memory.jobs import Ended, Jobs, NextTime
from tests.bridge.cli.scripted import environ, piped
from tests.servers.anthropic import AnthropicServer
from tests.servers.anthropic_rules import Rules

CONFIG = """\
timezone: Europe/Berlin
model: m
providers:
  a: {kind: anthropic, api_key: "${ANTHROPIC_API_KEY}", base_url: "${ANTHROPIC_BASE_URL}"}
models:
  m: {provider: a, id: claude-haiku-5-5}
backup: {every: week}
"""


@pytest.fixture
async def llm() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer(Rules(models=("claude-haiku-5-5",))) as server:
        yield server
        assert server.refusals == []


class Place:
    def __init__(self, folder: Path, llm: AnthropicServer) -> None:
        self.folder = folder
        self.env = environ(folder, ANTHROPIC_API_KEY=llm.api_key, ANTHROPIC_BASE_URL=llm.base_url)
        (folder / "config.yaml").write_text(CONFIG)

    async def galata(
        self, *words: str, typed: str = "", anew: bool = False
    ) -> tuple[int, str, str]:
        return await piped(*words, cwd=self.folder, env=self.env, typed=typed, anew=anew)


@pytest.fixture
def place(tmp_path: Path, llm: AnthropicServer) -> Place:
    return Place(tmp_path, llm)


WITH = ("--config", "config.yaml")
NIGHT = datetime(2026, 11, 30, 4, 30, tzinfo=UTC)
DAY = timedelta(days=1)


async def test_a_conversation_goes_on_from_a_backup(place: Place, llm: AnthropicServer) -> None:
    llm.answer("Noted.")
    await place.galata("chat", *WITH, typed="My cat is called Momo.\n")
    code, out, _ = await place.galata("backup", ".", *WITH)
    assert code == 0
    archive = out.split(":")[0]
    assert llm.api_key.encode() not in (place.folder / archive).read_bytes()
    code, out, errors = await place.galata("restore", archive, "--data", "new")
    assert (code, errors) == (0, "")
    assert "2 messages" in out
    assert (place.folder / "new").stat().st_mode & 0o777 == 0o700
    assert llm.api_key not in (place.folder / "new" / "config.yaml").read_text()
    llm.answer("Momo.")
    code, out, _ = await place.galata("chat", *WITH, "--data", "new", typed="Its name?\n")
    assert (code, out) == (0, "Momo.\n")
    assert "My cat is called Momo." in str(llm.requests[-1])


async def test_a_backup_is_made_of_a_bot_whose_configuration_has_faults(
    place: Place, llm: AnthropicServer
) -> None:
    llm.answer("Hello.")
    await place.galata("chat", *WITH, typed="hi\n")
    (place.folder / "config.yaml").write_text("modle: x\n")
    code, out, errors = await place.galata("backup", "b.tar.gz", *WITH)
    assert (code, out.split(":")[0]) == (0, "b.tar.gz")
    assert "without the configuration" in errors


async def test_what_cannot_be_done_ends_with_1_and_one_line(
    place: Place, llm: AnthropicServer
) -> None:
    code, _, errors = await place.galata("backup", "b.tar.gz", *WITH, anew=True)
    assert (code, errors.count("\n")) == (1, 1)
    assert "which --data" in errors
    code, _, errors = await place.galata("restore", "missing.tar.gz", "--data", "new")
    assert (code, errors) == (1, "missing.tar.gz is not there\n")
    (place.folder / "x.tar.gz").write_text("no archive")
    code, _, errors = await place.galata("restore", "x.tar.gz", "--data", "new")
    assert (code, errors.count("\n")) == (1, 1)
    assert os.listdir(place.folder / "new") == ["galata.lock"]


async def test_jobs_are_listed_with_their_times_and_outcomes(place: Place) -> None:
    code, _, errors = await place.galata("jobs", *WITH, anew=True)
    assert (code, errors.count("\n")) == (1, 1)
    (place.folder / "data").mkdir(mode=0o700)
    database = await Database.open(place.folder / "data" / "galata.db")
    code, out, _ = await place.galata("jobs", *WITH)
    assert (code, out.count("\n")) == (0, 1), "the bot has not been started yet"
    jobs = Jobs(database)
    for kind in ("retention", "backup"):
        await jobs.plan(kind, "", "30 4 * * *", "UTC", lambda _: NextTime(NIGHT, NIGHT.date()))
    await jobs.once("flush", "telegram:1:7", NIGHT - DAY)
    flush, backup, _ = await jobs.all()
    await jobs.begin(flush, NIGHT - DAY)
    done = Ended(NIGHT - DAY, "done", "b.tar.gz, 1.0 MB", NextTime(NIGHT), None, 0)
    await jobs.end(backup, done)
    await database.close()
    code, out, _ = await place.galata("jobs", *WITH)
    assert code == 0
    assert re.split(r"\n|  +", out.rstrip("\n")) == [
        "job", "next", "last", "outcome",
        "flush telegram:1:7", "2026-11-29 04:30 UTC", "-", "running since 2026-11-29 04:30 UTC",
        "backup", "2026-11-30 04:30 UTC", "2026-11-29 04:30 UTC", "done: b.tar.gz, 1.0 MB",
        "retention", "2026-11-30 04:30 UTC", "-", "-",
    ]  # fmt: skip
