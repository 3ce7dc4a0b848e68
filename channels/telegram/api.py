"""Building the Bot API client: one bot, its limiter, and a connection of its own for polling."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass

import httpx
from telegram.ext import ExtBot
from telegram.request import HTTPXRequest

from channels.telegram.limiter import Limiter, Urgency
from channels.telegram.moves import Moves
from channels.telegram.settings import TelegramSettings

DEFAULT_BASE_URL = "https://api.telegram.org"

# Seconds. Reading is long for sending, since giving up too early leaves a reply uncertain.
_CONNECT_S = 10.0
_READ_S = 20.0
_WRITE_S = 20.0
_POOL_S = 10.0
_CONNECTIONS = 64
# Each request looks at every idle connection of the pool: with many of them that took more of the
# loop's time than the request itself.
_IDLE = 8

Bot = ExtBot[Urgency]


@dataclass(frozen=True, slots=True)
class Api:
    """The bot, and the request object that only `getUpdates` uses, so that it can be rebuilt
    alone. Both are open from the start; `aclose` closes them."""

    bot: Bot
    polling: HTTPXRequest
    sending: HTTPXRequest
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
    sending = _request(settings, context, connections=_CONNECTIONS)
    polling = _request(settings, context, connections=1)
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


def _request(
    settings: TelegramSettings, context: ssl.SSLContext, *, connections: int
) -> HTTPXRequest:
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=_IDLE)
    return HTTPXRequest(
        connection_pool_size=connections,
        connect_timeout=_CONNECT_S,
        read_timeout=_READ_S,
        write_timeout=_WRITE_S,
        pool_timeout=_POOL_S,
        proxy=settings.proxy.get_secret_value() if settings.proxy is not None else None,
        # Not what the environment says: HTTPS_PROXY is not our configuration, and a SOCKS one there
        # would need a library that we do not have.
        httpx_kwargs={"limits": limits, "verify": context, "trust_env": False},
    )
