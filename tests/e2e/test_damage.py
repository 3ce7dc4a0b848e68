"""A database that is damaged while the bot runs: told, ended, and what waits is answered afterwards."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import aiohttp

from bridge.configuration.settings import Config, Health
from tests.bridge.operation.test_health import free_port
from tests.e2e.bed import App, config, llm_server, telegram_settings
from tests.servers.telegram import TelegramServer

PAGE = 4096


def ruin(path: Path) -> None:
    """Overwrite all pages but the first, behind the back of whoever has the file open."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("INSERT INTO notices VALUES ('ruin', 'now')")  # nobody trusts its cache now
        assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        with path.open("r+b") as file:
            file.seek(PAGE)
            file.write(b"\xff" * (path.stat().st_size - PAGE))


async def healthz(port: int) -> tuple[int, str]:
    url = f"http://127.0.0.1:{port}/healthz"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


async def test_damage_is_told_and_ends_the_bot_and_the_next_start_answers(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, llm_server() as llm:
        ana, port = telegram.user("Ana"), free_port()
        made = config(llm, telegram=telegram_settings(telegram, owners=(str(ana.id),)))
        app = App(Config.model_validate({**dict(made), "health": Health(port=port)}), tmp_path)
        await app.start()
        await telegram.wait_for_poll()
        chat = telegram.private(ana)
        hello = llm.answer("Hello, Ana.").stall_after(0)
        chat.send("hello")
        await llm.wait_for(lambda: bool(llm.requests))
        ruin(tmp_path / "galata.db")
        alert = telegram.fail_next("sendMessage", stall=True, text="sets the file aside")
        chat.send("are you there?")
        await telegram.wait_for(lambda: any("is not stored" in text for text in chat.texts))
        await telegram.wait_for(lambda: alert.used)
        assert await healthz(port) == (503, "database: it is damaged\n")
        alert.release()
        hello.release()
        assert app.task is not None
        assert await app.task == 1
        assert "Hello, Ana." in chat.texts
        assert any("I have not answered is lost with it" in text for text in chat.texts)
        assert any("The next start sets the file aside" in text for text in chat.texts)
        assert any(name.startswith("galata.db.broken-") for name in os.listdir(tmp_path))
        llm.answer("Yes, I am.")
        await app.start()
        await chat.wait_for_text("Yes, I am.")
        assert await app.stop() == 0


async def test_a_database_that_is_taken_away_takes_no_more_and_ends_the_bot(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, llm_server() as llm:
        ana = telegram.user("Ana")
        app = App(
            config(llm, telegram=telegram_settings(telegram, owners=(str(ana.id),))), tmp_path
        )
        await app.start()
        await telegram.wait_for_poll()
        chat = telegram.private(ana)
        for ending in ("", "-wal", "-shm"):
            os.unlink(f"{tmp_path}/galata.db{ending}")
        chat.send("are you there?")
        await telegram.wait_for(lambda: any("is not stored" in text for text in chat.texts))
        assert app.task is not None
        assert await app.task == 1
        llm.answer("Yes, I am.")
        await app.start()
        await chat.wait_for_text("Yes, I am.")
        assert await app.stop() == 0
