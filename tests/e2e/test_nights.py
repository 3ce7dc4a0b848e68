"""From a talk in Telegram over the day file into `MEMORY.md`, and what people see of it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from bridge.cli.running import ask_running
from bridge.remembering.jobs import CONSOLIDATION
from memory.database import Database
from memory.jobs import Jobs
from tests.e2e.bed import config, llm_server, running, telegram_settings
from tests.servers.llm import LlmRequest
from tests.servers.telegram import Chat, Message, TelegramServer

FACT = "prefers metric units"


def files(data: Path, pattern: str) -> str:
    return "".join(path.read_text() for path in sorted((data / "memory").glob(pattern)))


def proposal(text: str) -> str:
    return json.dumps({"changes": [{"do": "add", "text": text, "sources": ["s1"]}]})


def night_model(request: LlmRequest) -> str:
    """One entry from the notes that it is shown; nothing to note of what was said since."""
    return proposal(f"Ana {FACT}") if FACT in str(request.messages) else "(nothing)"


async def answered(chat: Chat, text: str, shown: str) -> str:
    chat.send(text)
    said: Message = await chat.wait_for_message(lambda message: shown in message.text)
    return said.text


async def at_rest(data: Path) -> None:
    """Until what was answered is stored and settled."""
    at_work = "SELECT 1 FROM inbox WHERE state = 'open'"
    at_work += " UNION ALL SELECT 1 FROM outbox WHERE state = 'open'"
    with closing(sqlite3.connect(data / "galata.db")) as database:
        while database.execute(at_work).fetchone():  # noqa: ASYNC110 - a store has no event
            await asyncio.sleep(0.01)


async def plan_a_night(data: Path, scope: str) -> None:
    database = await Database.open_beside(data / "galata.db", to_write=True)
    await Jobs(database).once(CONSOLIDATION, scope, datetime(2100, 1, 1, tzinfo=UTC))
    await database.close()


async def test_what_was_said_is_noted_tidied_told_and_known(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, llm_server() as llm:
        ana = telegram.user("Ana", language_code="en")
        chat = telegram.private(ana)
        owned = telegram_settings(telegram, owners=[str(ana.id)])
        async with running(config(llm, telegram=owned), tmp_path):
            await telegram.wait_for_poll()
            llm.answer("Noted.")
            await answered(chat, f"Ana {FACT}", "Noted.")
            await at_rest(tmp_path)
            llm.answer(f"## Units\n- [1] Ana {FACT}.")
            await answered(chat, "/new", "new conversation")
            while FACT not in files(tmp_path, "*/2*.md"):  # noqa: ASYNC110 - no server sees it
                await asyncio.sleep(0.01)
            assert "**Ana** Ana prefers metric units. [1]" in files(tmp_path, "*/2*.md")
            llm.answer(proposal(f"Ana {FACT}"))
            assert await answered(chat, "/memory tidy", "Tidied") == "Tidied: 1 added."
            assert f", Ana) Ana {FACT}\n" in files(tmp_path, "*/MEMORY.md")
            assert "- add: **1**" in files(tmp_path, "*/changes/*.md")
            assert "Tidied: 1 added." in await answered(chat, "/memory", "Last night")
            llm.answer("Celsius, then.")
            said = await answered(chat, "How warm is it?", "Overnight")
            assert said.startswith("Celsius, then.")
            assert "Overnight: 1 added" in said
            assert FACT in json.dumps(llm.requests[-1].body["system"])
            assert await answered(chat, "/memory tidy", "nothing new")


async def test_an_operator_has_every_memory_tidied_through_the_socket(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, llm_server() as llm:
        ana = telegram.user("Ana", language_code="en")
        chat = telegram.private(ana)
        owned = telegram_settings(telegram, owners=[str(ana.id)])
        async with running(config(llm, telegram=owned), tmp_path):
            await telegram.wait_for_poll()
            assert await asyncio.to_thread(ask_running, tmp_path, "memory_tidy") == {}
            llm.answer("Noted.")
            await answered(chat, f"I {FACT}", "Noted.")
            await at_rest(tmp_path)
            await plan_a_night(tmp_path, f"person:telegram:{telegram.bot.id}:{chat.id}")
            llm.answer(f"- [1] Ana {FACT}.")
            llm.answer(proposal(f"Ana {FACT}"))
            assert await asyncio.to_thread(ask_running, tmp_path, "memory_tidy") == {"changed": 1}
            assert FACT in files(tmp_path, "*/MEMORY.md")


async def test_a_stop_ends_ones_own_tidying_and_answers_but_not_the_nights_work(
    tmp_path: Path,
) -> None:
    async with TelegramServer() as telegram, llm_server() as llm:
        ana = telegram.user("Ana", language_code="en")
        chat = telegram.private(ana)
        owned = telegram_settings(telegram, owners=[str(ana.id)])
        async with running(config(llm, telegram=owned), tmp_path):
            await telegram.wait_for_poll()
            llm.answer("Noted.")
            await answered(chat, f"I {FACT}", "Noted.")
            await at_rest(tmp_path)
            own = llm.answer("the notes").stall_after(0)
            chat.send("/memory tidy")
            await own.reached.wait()
            await answered(chat, "/cancel", "Stopped.")
            await llm.wait_for(lambda: llm.requests[-1].disconnected)
            await plan_a_night(tmp_path, f"person:telegram:{telegram.bot.id}:{chat.id}")
            nightly = llm.answer(f"- [1] Ana {FACT}.").stall_after(0)
            night = asyncio.create_task(asyncio.to_thread(ask_running, tmp_path, "memory_tidy"))
            await nightly.reached.wait()
            await answered(chat, "/cancel", "I am tidying this chat's memory; that goes on.")
            llm.answer("A long answer, indeed.").stall_after(1)
            await answered(chat, "and now?", "A long")
            assert "Stopped." in await answered(chat, "stop", "answer, i\n\nStopped.")
            llm.default = night_model
            nightly.release()
            assert await night == {"changed": 1}
            assert FACT in files(tmp_path, "*/MEMORY.md")
