"""From a talk in Telegram over the day file into `MEMORY.md`, and what people see of it."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bridge.cli.running import ask_running
from bridge.memory_jobs import CONSOLIDATION
from memory.database import Database
from memory.jobs import Jobs
from tests.e2e.bed import config, llm_server, running, telegram_settings
from tests.servers.telegram import TelegramServer

FACT = "prefers metric units"


def files(data: Path, pattern: str) -> str:
    return "".join(path.read_text() for path in sorted((data / "memory").glob(pattern)))


def proposal(text: str) -> str:
    return json.dumps({"changes": [{"do": "add", "text": text, "sources": ["s1"]}]})


async def answered(chat: Any, text: str, shown: str) -> str:
    chat.send(text)
    return str((await chat.wait_for_text(lambda said: shown in said)).text)


async def test_what_was_said_is_noted_tidied_told_and_known(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, llm_server() as llm:
        ana = telegram.user("Ana", language_code="en")
        chat = telegram.private(ana)
        owned = telegram_settings(telegram, owners=[str(ana.id)])
        async with running(config(llm, telegram=owned), tmp_path):
            await telegram.wait_for_poll()
            llm.answer("Noted.")
            await answered(chat, f"Ana {FACT}", "Noted.")
            await telegram.wait_for(lambda: not chat.messages[-1].buttons)
            llm.answer(f"## Units\n- [1] Ana {FACT}.")
            await answered(chat, "/new", "new conversation")
            await telegram.wait_for(lambda: FACT in files(tmp_path, "*/2*.md"))
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
            llm.answer("Welcome.")
            await answered(chat, "thanks", "Welcome.")  # by then the first answer is stored
            account = telegram.bot.id
            database = await Database.open_beside(tmp_path / "galata.db", to_write=True)
            scope = f"person:telegram:{account}:{chat.id}"
            await Jobs(database).once(CONSOLIDATION, scope, datetime(2100, 1, 1, tzinfo=UTC))
            await database.close()
            llm.answer(f"- [1] Ana {FACT}.")
            llm.answer(proposal(f"Ana {FACT}"))
            assert await asyncio.to_thread(ask_running, tmp_path, "memory_tidy") == {"changed": 1}
            assert FACT in files(tmp_path, "*/MEMORY.md")
