"""The local Bot API server keeps Telegram's rules, seen through python-telegram-bot's Bot."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import telegram
from telegram import InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity
from telegram.request import HTTPXRequest

from tests.servers.telegram import TelegramServer


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as running:
        yield running


@pytest.fixture
async def bot(server: TelegramServer) -> AsyncIterator[telegram.Bot]:
    async with make_bot(server) as made:
        yield made


def make_bot(server: TelegramServer, token: str | None = None) -> telegram.Bot:
    return telegram.Bot(
        token or server.token,
        base_url=server.base_url,
        base_file_url=server.base_file_url,
        request=HTTPXRequest(connection_pool_size=8),
        get_updates_request=HTTPXRequest(read_timeout=5),
    )


async def test_a_text_comes_in_and_an_answer_is_seen(
    server: TelegramServer, bot: telegram.Bot
) -> None:
    ana = server.user("Ana", language_code="en")
    chat = server.private(ana)
    waiting = asyncio.create_task(bot.get_updates(timeout=5))
    await server.wait_for(lambda: server.updates.polled)
    chat.send("hello `x`")
    (update,) = await waiting
    assert update.message is not None
    assert update.message.text == "hello x"
    assert update.message.entities == (MessageEntity("code", 6, 1),)
    keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("Stop", callback_data="s")]])
    sent = await bot.send_message(chat.id, "…", reply_markup=keyboard)
    await bot.edit_message_text("done", chat.id, sent.message_id)
    message = await chat.wait_for_text("done")
    assert message.history == ["…", "done"]
    assert message.buttons == []
