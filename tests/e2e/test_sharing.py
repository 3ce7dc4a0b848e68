"""Two Telegram groups with one memory: what was said in one is noted, tidied by night and known in the
other, and nowhere else."""

from __future__ import annotations

import asyncio
from pathlib import Path

from memory.settings import MemorySettings
from tests.e2e.bed import config, llm_server, running, telegram_settings
from tests.e2e.test_nights import at_rest, files, proposal
from tests.servers.telegram import Chat, TelegramServer, User

FACT = "the launch is on Friday"
IDS = ("-100501", "-100502", "-100503")


async def asked(chat: Chat, ana: User, text: str, shown: str) -> str:
    seen = len(chat.messages)
    chat.send(text, sender=ana)
    said = await chat.wait_for_message(
        lambda message: shown in message.text and message in chat.messages[seen:]
    )
    return said.text


async def test_a_memory_of_two_groups(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, llm_server() as llm:
        ana = telegram.user("Ana", language_code="en")
        groups = [telegram.group(f"G{id_}", members=[ana], id=int(id_)) for id_ in IDS]
        team, crew, odd = groups
        private = telegram.private(ana)
        owned = telegram_settings(telegram, owners=[str(ana.id)], allowed=list(IDS))
        shared = MemorySettings(shared=("telegram:-100501", "telegram:-100502"))
        made = config(llm, telegram=owned).model_copy(update={"memory": shared})
        async with running(made, tmp_path):
            await telegram.wait_for_poll()
            llm.answer("Noted.")
            await asked(team, ana, f"/ask note that {FACT}", "Noted.")
            await at_rest(tmp_path)
            llm.answer(f"## Launch\n- [1] {FACT}.")
            await asked(team, ana, "/new", "new conversation")
            while FACT not in files(tmp_path, "shared/2*.md"):  # noqa: ASYNC110 - no server sees it
                await asyncio.sleep(0.01)
            llm.answer(proposal(FACT))
            await asked(crew, ana, "/memory tidy", "Tidied: 1 added.")
            assert FACT in files(tmp_path, "shared/MEMORY.md")
            for chat, known in ((crew, True), (team, True), (odd, False), (private, False)):
                llm.answer("Well.")
                await asked(chat, ana, "/ask when is it?", "Well.")
                await at_rest(tmp_path)
                assert ("Overnight: 1 added" in chat.bot_messages[-1].text) is known
                assert (FACT in str(llm.requests[-1].body)) is known
                shown = await asked(chat, ana, "/memory", "see what I know")
                assert (FACT in shown) is known
                assert shown.startswith("This group shares its memory") is known
            assert files(tmp_path, "group-*/*.md") == ""
