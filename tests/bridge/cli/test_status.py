"""`galata status` beside a running bot, and where none runs."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bridge.cli.status import lines
from tests.bridge.cli.scripted import environ, piped
from tests.bridge.cli.test_signals import running
from tests.servers.anthropic import AnthropicServer
from tests.servers.telegram import Chat, TelegramServer


@pytest.fixture
async def llm() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer() as server:
        yield server


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        yield server


@pytest.fixture
def chat(telegram: TelegramServer, llm: AnthropicServer, tmp_path: Path) -> Chat:
    owner = telegram.user("Ana")
    (tmp_path / "c.yaml").write_text(f"""\
timezone: UTC
model: m
providers:
  p: {{kind: anthropic, api_key: {llm.api_key}, base_url: {llm.base_url}}}
models:
  m: {{provider: p, id: test-model}}
channels:
  telegram:
    token: {telegram.token}
    base_url: {telegram.base_url.removesuffix("/bot")}
    owners: [{owner.id}]
""")
    return telegram.private(owner)


async def status(folder: Path, *words: str) -> tuple[int, str, str]:
    return await piped("status", "--data", "d", *words, cwd=folder, env=environ(folder))


async def test_it_tells_what_the_running_bot_does_and_then_what_is_stored(
    telegram: TelegramServer, llm: AnthropicServer, chat: Chat, tmp_path: Path
) -> None:
    reply = llm.answer("A long answer.").stall_after(1)
    limits = tmp_path / "d" / "groups" / "telegram" / f"{chat.id}.yaml"
    limits.parent.mkdir(parents=True)
    limits.write_text("pasued: yes\n")
    async with running(telegram, tmp_path) as process:
        chat.send("hello")
        await reply.reached.wait()
        code, out, errors = await status(tmp_path, "--json")
        assert (code, errors) == (0, "")
        told = json.loads(out)
        assert told["pid"] == process.pid
        (channel,) = told["channels"]
        assert (channel["name"], channel["receiving"]) == ("telegram", True)
        assert channel["last_message"] > told["started"]
        (queue,) = told["queues"]
        assert (queue["running"], queue["waiting"]) == (1, 0)
        assert str(chat.id) in queue["session"]
        assert told["errors"] == {"count": 0, "newest": []}
        code, out, errors = await status(tmp_path)
        assert (code, errors) == (0, "")
        assert f"process {process.pid}" in out
        assert "telegram: receives since" in out
        faults = "files of chats' limits have faults; what held before holds on:\n  "
        fault = f"d/groups/telegram/{chat.id}.yaml:1:1 pasued: unknown key, did you mean paused?\n"
        assert faults + fault in out
        process.send_signal(signal.SIGKILL)
        await process.wait()
    code, out, errors = await status(tmp_path, "--json")
    assert code == 1
    assert errors == "no galata runs on d: start it first (galata run); this is what is stored:\n"
    left = json.loads(out)
    assert (left["pid"], left["channels"][0]["receiving"]) == (None, None)
    assert left["channels"][0]["last_message"] == channel["last_message"]
    assert left["queues"][0]["session"] == queue["session"]


@pytest.mark.parametrize(
    ("description", "cause"),
    [
        ("Conflict: terminated by other getUpdates request; make sure", "another process"),
        ("Conflict: can't use getUpdates method while webhook is active", "a webhook is set"),
    ],
)
async def test_it_names_what_keeps_a_channel_from_receiving(
    telegram: TelegramServer, chat: Chat, tmp_path: Path, description: str, cause: str
) -> None:
    async with running(telegram, tmp_path):
        telegram.fail_next("getUpdates", status=409, description=description, count=100)
        telegram.end_poll(409, description)
        code, out = 0, ""
        while cause not in out:
            code, out, _ = await status(tmp_path)
        assert code == 1
        assert "telegram: DOWN since" in out
        assert "channels.telegram.token" in out
        assert telegram.token not in out


async def test_a_folder_without_a_database_is_told(tmp_path: Path) -> None:
    words = ("status", "--data", "d")
    code, out, errors = await piped(*words, cwd=tmp_path, env=environ(tmp_path), anew=True)
    assert (code, out) == (1, "")
    assert errors.endswith("d/galata.db is not there: which --data does the bot run on?\n")


def test_the_words_for_a_person() -> None:
    channel = {"name": "slack", "receiving": False, "since": "2026-11-30T10:00:00.5+00:00"}
    channel |= {"reason": "refused", "gave_up": True}
    told: Any = {
        "version": "1.0",
        "pid": 7,
        "started": "2026-11-28T09:58:00+00:00",
        "channels": [{**channel, "last_message": None}],
        "queues": [
            {
                "session": "slack:T1:C1",
                "running": 1,
                "waiting": 2,
                "undelivered": 3,
                "since": "2026-11-30T11:00:00+00:00",
            }
        ],
        "errors": {"count": 9, "newest": ["ABCD", "EFGH"]},
        "refused": ["c.yaml:3:1 pasued: unknown key"],
    }
    now = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
    assert list(lines(told, now)) == [
        "galata 1.0, process 7, up 2 d 2 h 2 min",
        "slack: DOWN since 2026-11-30 10:00:00 UTC, gave up: refused; last message -",
        "at work:",
        "  slack:T1:C1: 1 running, 2 waiting, 3 undelivered, since 2026-11-30 11:00:00 UTC",
        "the configuration has faults; what held before holds on:",
        "  c.yaml:3:1 pasued: unknown key",
        "errors in the last hour: 9 (galata error ID: ABCD, EFGH)",
    ]
