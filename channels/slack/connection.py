"""The way that Slack reaches us: a websocket with a watchdog, or HTTP requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast

from aiohttp import web
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp

from channels.errors import ChannelFailed, ChannelUnavailable
from channels.slack.api import SlackApi

log = logging.getLogger(__name__)

PATH: Final = "/slack/events"
_HOST = "127.0.0.1"
_CLOSE_S = 2.0
_TASKS = ("message_processor", "current_session_monitor", "message_receiver")

Step = Callable[[], Awaitable[None]]
Seen = Callable[[str | None], None]  # told which connection there is; None without one


@dataclass(frozen=True, slots=True)
class ConnectionTiming:
    """Seconds: for the first connection, without a connection until it is given up, between two
    looks at it, and between the SDK's pings (it reconnects after four without an answer)."""

    connect_s: float = 15.0
    lost_after_s: float = 30.0
    look_s: float = 1.0
    ping_s: float = 10.0


DEFAULT_TIMING: Final = ConnectionTiming()


async def run_socket(
    api: SlackApi, app: AsyncApp, app_token: str, timing: ConnectionTiming, seen: Seen
) -> None:
    """Receive by Socket Mode until cancelled; `seen` is told at each look at the connection.

    Raises `ChannelUnavailable` when there is no connection for `lost_after_s` (the SDK's client
    tries to mend it by itself, but with a ticket that was refused it would do so for ever), and
    `ChannelFailed`.
    """
    ticket_url = await api.open_connection()  # with a bad token the SDK would never return
    handler = AsyncSocketModeHandler(
        app, app_token, web_client=api.client, proxy=api.proxy, ping_interval=timing.ping_s
    )
    handler.client.proxy = api.proxy  # not what the environment says
    handler.client.wss_uri = ticket_url
    try:
        try:
            async with asyncio.timeout(timing.connect_s):
                await cast("Step", handler.connect_async)()
        except TimeoutError:
            raise ChannelUnavailable("Slack's websocket cannot be opened") from None
        log.info("listening by Socket Mode")
        await _watch(handler, timing, seen)
    finally:
        seen(None)
        await _close(handler)


async def run_http(app: AsyncApp, port: int, look_s: float, seen: Seen) -> None:
    """Receive signed requests at `/slack/events` of a local port until cancelled; `seen` is told while
    it is open, each `look_s` seconds (whether Slack reaches it cannot be known). Raises `ChannelFailed`
    when the port is in use."""
    runner = web.AppRunner(app.web_app(PATH), access_log=None, shutdown_timeout=_CLOSE_S)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, _HOST, port).start()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ChannelFailed(f"channels.slack.http_port: {port}: {reason}") from None
        log.info("listening on port %d", port)
        while True:
            seen(f"port {port}")
            await asyncio.sleep(look_s)
    finally:
        seen(None)
        await runner.cleanup()


async def _watch(handler: AsyncSocketModeHandler, timing: ConnectionTiming, seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    last = loop.time()
    while True:
        connected = await handler.client.is_connected()
        seen(await handler.client.session_id() if connected else None)
        if connected:
            last = loop.time()
        elif loop.time() - last > timing.lost_after_s:
            raise ChannelUnavailable(f"no connection to Slack for {timing.lost_after_s:.0f} s")
        await asyncio.sleep(timing.look_s)


async def _close(handler: AsyncSocketModeHandler) -> None:
    """Close the connection and end the SDK's tasks, also when the other side does not answer."""
    client = handler.client
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await cast("Step", handler.close_async)()
    finally:
        named: list[asyncio.Future[Any] | None] = [getattr(client, name) for name in _TASKS]
        tasks = [task for task in named if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await client.aiohttp_client_session.close()
