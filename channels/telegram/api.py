"""Building the Bot API client: one bot, its limiter, and a connection of its own for polling."""

from __future__ import annotations

import os
from dataclasses import dataclass

import httpx
from telegram.ext import ExtBot

from channels.telegram.limiter import Limiter, Urgency
from channels.telegram.moves import Moves
from channels.telegram.request import AiohttpRequest, Patience
from channels.telegram.settings import TelegramSettings

DEFAULT_BASE_URL = "https://api.telegram.org"

# Seconds. Reading is long for sending, since giving up too early leaves a reply uncertain.
_PATIENCE = Patience(connect_s=10.0, write_s=20.0, upload_s=60.0, read_s=20.0)
_CONNECTIONS = 64

Bot = ExtBot[Urgency]


@dataclass(frozen=True, slots=True)
class Api:
    """The bot, and the request object that only `getUpdates` uses, so that it can be rebuilt
    alone. Both are open from the start; `aclose` closes them."""

    bot: Bot
    polling: AiohttpRequest
    sending: AiohttpRequest
    moves: Moves

    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        await self.polling.shutdown()
        await self.sending.shutdown()


def build_api(settings: TelegramSettings) -> Api:
    """A client for the bot of `settings`. Nothing is sent yet."""
    # PTB's documented switch: durations in errors are timedelta, as in its next major version;
    # otherwise each refusal for flooding gives a deprecation warning.
    os.environ.setdefault("PTB_TIMEDELTA", "true")
    root = (settings.base_url or DEFAULT_BASE_URL).rstrip("/")
    context = httpx.create_ssl_context()  # shared: loading the certificates takes 20 ms
    proxy = settings.proxy.get_secret_value() if settings.proxy is not None else None
    sending = AiohttpRequest(context, _PATIENCE, most=_CONNECTIONS, proxy=proxy)
    polling = AiohttpRequest(context, _PATIENCE, most=1, proxy=proxy)
    moves = Moves()
    bot: Bot = ExtBot(
        settings.token.get_secret_value(),
        base_url=f"{root}/bot",
        base_file_url=f"{root}/file/bot",
        request=sending,
        get_updates_request=polling,
        rate_limiter=Limiter(moves),
    )
    return Api(bot, polling, sending, moves)
