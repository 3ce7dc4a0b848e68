"""The real python-telegram-bot on the local server, for tests of the server itself."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import telegram
from telegram import Message, Update
from telegram.request import HTTPXRequest

from tests.servers.telegram import TelegramServer


def make_bot(server: TelegramServer, token: str | None = None) -> telegram.Bot:
    """A Bot that is not initialised yet."""
    plain = {"verify": False}  # loading the certificate store takes longer than a test
    return telegram.Bot(
        token or server.token,
        base_url=server.base_url,
        base_file_url=server.base_file_url,
        request=HTTPXRequest(connection_pool_size=8, read_timeout=5, httpx_kwargs=plain),
        get_updates_request=HTTPXRequest(read_timeout=5, httpx_kwargs=plain),
    )


@asynccontextmanager
async def running(server: TelegramServer) -> AsyncIterator[telegram.Bot]:
    """The server started, and a Bot on it."""
    async with server, make_bot(server) as bot:
        yield bot


async def receive(bot: telegram.Bot, *, timeout: int = 0) -> list[Update]:
    """The waiting updates, confirmed."""
    updates = await bot.get_updates(timeout=timeout)
    if updates:
        await bot.get_updates(offset=updates[-1].update_id + 1, timeout=0)
    return list(updates)


async def messages(bot: telegram.Bot) -> list[Message]:
    """The messages of the waiting updates, confirmed."""
    return [update.effective_message for update in await receive(bot) if update.effective_message]


async def call(
    bot: telegram.Bot, method: str, *, token: str | None = None, **params: object
) -> tuple[int, dict[str, object]]:
    """A bare call through PTB's connection: HTTP status and JSON, for exact wordings."""
    base_url = bot.base_url if token is None else bot.base_url.replace(bot.token, token)
    response = await client(bot).post(
        f"{base_url}/{method}",
        data={k: v if isinstance(v, str) else json.dumps(v) for k, v in params.items()},
    )
    return response.status_code, response.json()


def client(bot: telegram.Bot) -> httpx.AsyncClient:
    """The HTTP client under a Bot."""
    assert isinstance(bot.request, HTTPXRequest)
    return bot.request._client
