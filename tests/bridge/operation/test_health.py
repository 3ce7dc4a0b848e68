"""`/healthz`, `/readyz` and `/metrics` of a whole bot, over HTTP."""

from __future__ import annotations

import asyncio
import re
import socket
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from bridge.configuration.settings import Config, Health
from memory import database
from tests.e2e.bed import config, llm_server, running, telegram_settings
from tests.servers.telegram import TelegramServer


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_MS", 100)


class World:
    """A bot with an open health port."""

    def __init__(self, telegram: TelegramServer, port: int, data: Path) -> None:
        self.telegram = telegram
        self.port = port
        self.data = data

    async def get(self, path: str) -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.port}{path}"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return response.status, await response.text()

    async def until(self, path: str, status: int, beginning: str = "") -> str:
        async with asyncio.timeout(10):
            while True:
                try:
                    found, text = await self.get(path)
                except aiohttp.ClientConnectorError:
                    found, text = 0, ""
                if found == status and text.startswith(beginning):
                    return text
                await asyncio.sleep(0.01)


@asynccontextmanager
async def world(data: Path, port: int) -> AsyncGenerator[World]:
    async with TelegramServer() as telegram, llm_server() as llm:
        llm.answer("Hello, Ana.")
        ana = telegram.user("Ana")
        made = config(llm, telegram=telegram_settings(telegram, owners=(str(ana.id),)))
        made = Config.model_validate({**dict(made), "health": Health(port=port)})
        async with running(made, data):
            await telegram.wait_for_poll()
            chat = telegram.private(ana)
            chat.send("hello")
            await chat.wait_for_text("Hello, Ana.")
            yield World(telegram, port, data)


@pytest.fixture
async def bot(tmp_path: Path) -> AsyncGenerator[World]:
    async with world(tmp_path, free_port()) as made:
        yield made


async def test_health_is_true_only_while_the_channel_receives(
    bot: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("channels.supervise.FIRST_WAIT_S", 0.01)
    assert await bot.until("/healthz", 200) == "ok\n"
    assert await bot.until("/readyz", 200) == "ok\n"
    conflict = bot.telegram.fail_next("getUpdates", status=409, count=1_000)
    bot.telegram.end_poll()
    await bot.until("/healthz", 503, "telegram: another process receives messages with the token")
    assert (await bot.get("/readyz"))[0] == 503
    conflict.left = 0
    await bot.until("/healthz", 200)


async def test_a_database_that_cannot_be_written_is_not_ready(impatient: None, bot: World) -> None:
    await bot.until("/readyz", 200)
    with closing(sqlite3.connect(bot.data / "galata.db")) as other:
        other.execute("BEGIN EXCLUSIVE")
        status, text = await bot.get("/readyz")
        assert status == 503
        assert text.startswith("database: ")
        other.rollback()
    await bot.until("/readyz", 200)


def numbers(text: str) -> dict[tuple[str, str | None], float]:
    """Metrics by name and channel."""
    return {
        (sample.name, sample.labels.get("channel")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_metrics_are_what_prometheus_reads_and_name_nobody(bot: World) -> None:
    text = ""
    values: dict[tuple[str, str | None], float] = {("galata_cost_month_usd", None): 0.0}
    while not values["galata_cost_month_usd", None]:  # it is booked when the answer is out
        text = await bot.until("/metrics", 200)
        values = numbers(text)
    assert values["galata_channel_receiving", "telegram"] == 1
    assert values["galata_channel_last_message_timestamp_seconds", "telegram"] > 1.7e9
    for name in ("runs", "messages_waiting", "replies_undelivered", "errors_last_hour"):
        assert (f"galata_{name}", None) in values
    assert values["galata_tasks", None] > 1
    assert values["galata_disk_free_bytes", None] > 0
    assert values["process_resident_memory_bytes", None] > 1e6
    assert re.search(r'galata_info\{version="[0-9.]+"\} 1\.0', text)
    assert bot.telegram.token not in text


async def test_the_port_is_for_this_machine_and_ends_with_the_bot(tmp_path: Path) -> None:
    port = free_port()
    async with world(tmp_path, port) as bot:
        await bot.until("/healthz", 200)
        with socket.socket() as other:
            other.bind(("127.0.0.2", port))  # fails where the port is taken on every address
    with socket.socket() as other, pytest.raises(ConnectionRefusedError):
        other.connect(("127.0.0.1", port))


async def test_a_port_in_use_is_logged_and_the_bot_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        async with world(tmp_path, taken.getsockname()[1]):
            pass
    assert "health.port: " in caplog.text
