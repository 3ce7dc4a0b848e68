"""The menu of commands, as the bridge has it: Telegram takes it in every language."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pydantic import SecretStr
from telegram import BotCommand

from bridge.commands.table import MENU
from bridge.configuration.settings import Channels, Config, Telegram
from bridge.limits.kinds import Known
from bridge.limits.policies import PolicyLayers, chat_policies
from bridge.registry import build_channels
from bridge.texts import FALLBACK, Texts
from channels.telegram.channel import MAX_MENU_COMMANDS
from memory.chats.reach import Chats
from memory.database import Database
from tests.channels.telegram.conftest import Inbox
from tests.servers.telegram import TelegramServer
from tests.servers.telegram_bot import make_bot


async def test_every_language_has_the_whole_menu(
    server: TelegramServer, inbox: Inbox, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    root = server.base_url.removesuffix("/bot")
    settings = Telegram(token=SecretStr(server.token), base_url=root)
    texts = Texts.load()
    config = Config(channels=Channels(telegram=settings))
    database = await Database.open(tmp_path / "galata.db")
    chats = Chats(database)
    policies = chat_policies(PolicyLayers(), tmp_path, database, chats, Known())
    channel = build_channels(config, texts, database, chats, policies)["telegram"]
    await database.close()
    listening = asyncio.create_task(channel.listen(inbox.receive))
    await server.wait_for_poll()
    async with make_bot(server) as bot:
        for language in texts.catalogue:
            code = None if language == FALLBACK else language
            shown = await bot.get_my_commands(language_code=code)
            wanted = [BotCommand(name, texts.say(language, f"menu_{name}")) for name in MENU]
            assert list(shown) == wanted
    assert len(server.calls_to("setMyCommands")) == len(texts.catalogue)
    assert "menu" not in caplog.text
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    await channel.aclose()


def test_the_menu_is_short_enough_to_be_read() -> None:
    assert len(MENU) <= MAX_MENU_COMMANDS
    assert len(set(MENU)) == len(MENU)
