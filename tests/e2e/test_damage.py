"""A database that is damaged while the bot runs: told, ended, and what waits is answered afterwards."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import aiohttp

from bridge.configuration.settings import Config, Health
from bridge.inbound import entry
from bridge.session import session_of
from channels.base import Address, InboundMessage, Sender
from memory.database import Database
from memory.inbox import Inbox
from tests.bridge.operation.test_health import free_port
from tests.e2e.bed import App, config, llm_server, running, telegram_settings
from tests.servers.telegram import Chat, TelegramServer

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


async def test_who_has_asked_hears_once_that_the_question_is_lost(tmp_path: Path) -> None:
    """The file is found damaged at a start; only the log said so."""
    async with TelegramServer() as telegram, llm_server() as llm:
        ana, bo = telegram.user("Ana"), telegram.user("Bo", language_code="zh")
        hers, his = telegram.private(ana), telegram.private(bo)
        owners = (str(ana.id), str(bo.id))
        made = config(llm, telegram=telegram_settings(telegram, owners=owners))
        await leave_open(tmp_path / "galata.db", telegram, hers, his, his)
        ruin_table(tmp_path / "galata.db", "jobs")
        for _ in range(2):
            async with running(made, tmp_path):
                await telegram.wait_for(lambda: bool(hers.texts and his.texts))
                llm.answer("Here I am.")
                hers.send("and now?")
                await hers.wait_for_text("Here I am.")
        lost = [text for text in hers.texts if "not answered is lost with it" in text]
        assert len(lost) == 1
        assert len(his.texts) == 1
        assert "请再问一次" in his.texts[0]


async def leave_open(path: Path, telegram: TelegramServer, *chats: Chat) -> None:
    """What a process leaves that was killed while these had asked something."""
    database = await Database.open(path)
    for number, chat in enumerate(chats):
        account = telegram.token.split(":")[0]
        person = str(chat.id)
        message = InboundMessage(
            Address("telegram", account, person, None, True),
            f"m:{number}",
            str(number),
            Sender(person, "", "zh" if number else "en"),
            datetime.now(UTC),
            "are you there?",
        )
        place = session_of(message.address, person, "shared")
        await Inbox(database).put_question(entry(message, place, "turn"))
    await database.close()


def ruin_table(path: Path, table: str) -> None:
    """Overwrite a table's first page."""
    with closing(sqlite3.connect(path)) as other:
        (page,) = other.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)
        ).fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\xff" * PAGE)


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
