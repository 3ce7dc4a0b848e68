"""A bot of ours on the local Bot API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from pydantic import SecretStr

from channels.base import InboundMessage
from channels.errors import NotStored
from channels.telegram.channel import TelegramChannel
from channels.telegram.settings import TelegramSettings
from tests.servers.telegram import TelegramServer

MENU = {None: [("ask", "Ask something")], "zh": [("ask", "提问")]}


def make_channel(server: TelegramServer, token: str | None = None) -> TelegramChannel:
    root = server.base_url.removesuffix("/bot")
    settings = TelegramSettings(token=SecretStr(token or server.token), base_url=root)
    return TelegramChannel(settings, menu=MENU)


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as running:
        yield running


@pytest.fixture
async def channel(server: TelegramServer) -> AsyncIterator[TelegramChannel]:
    made = make_channel(server)
    yield made
    await made.aclose()


@dataclass
class Inbox:
    """What `receive` was given. It raises `faults` first, and waits while `open` is not set. What comes
    `behind` is never taken in, as in the bridge."""

    server: TelegramServer
    messages: list[InboundMessage] = field(default_factory=list)
    tried: list[InboundMessage] = field(default_factory=list)
    behind: list[InboundMessage] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    attempts: int = 0
    open: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.open.set()

    async def receive(self, message: InboundMessage) -> None:
        if message.behind:
            self.behind.append(message)
            self.server.changed()
            raise NotStored("what came before it is not stored")
        self.attempts += 1
        self.tried.append(message)
        self.server.changed()
        await self.open.wait()
        if self.faults:
            raise self.faults.pop(0)
        self.messages.append(message)
        self.server.changed()

    async def wait_for(self, count: int) -> list[InboundMessage]:
        await self.server.wait_for(lambda: len(self.messages) >= count)
        return self.messages


@pytest.fixture
async def inbox(server: TelegramServer) -> Inbox:
    return Inbox(server)


@pytest.fixture
async def listening(
    server: TelegramServer, channel: TelegramChannel, inbox: Inbox
) -> AsyncIterator[asyncio.Task[None]]:
    """The channel, connected and polling."""
    task = asyncio.create_task(channel.listen(inbox.receive))
    await server.wait_for_poll()
    yield task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
