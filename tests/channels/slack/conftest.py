"""An app of ours in the local workspace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from pydantic import SecretStr

from channels.base import InboundMessage
from channels.slack.catch_up import Places
from channels.slack.channel import SlackChannel
from channels.slack.connection import ConnectionTiming
from channels.slack.reply import ReplyTiming
from channels.slack.settings import SlackSettings
from tests.servers.slack import SlackServer

QUICK = ReplyTiming(interval_s=0.01, stop_after_s=0.02, repeats_s=(0.01, 0.01))
WATCHFUL = ConnectionTiming(connect_s=0.5, lost_after_s=0.3, look_s=0.02, ping_s=0.05)


def make_channel(
    server: SlackServer,
    *,
    bot_token: str | None = None,
    app_token: str | None = None,
    connecting: ConnectionTiming | None = None,
    replying: ReplyTiming = QUICK,
    places: Places | None = None,
) -> SlackChannel:
    settings = SlackSettings(
        bot_token=SecretStr(bot_token or server.bot_token),
        app_token=SecretStr(app_token or server.app_token),
        base_url=server.base_url,
    )
    return SlackChannel(
        settings,
        places=places,
        connecting=connecting or ConnectionTiming(),
        replying=replying,
    )


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer() as running:
        yield running
        assert running.violations == []


@pytest.fixture
async def channel(server: SlackServer) -> AsyncIterator[SlackChannel]:
    made = make_channel(server)
    yield made
    await made.aclose()


@dataclass
class Inbox:
    """What `receive` was given. It raises `faults` first, and waits while `open` is not set."""

    server: SlackServer
    messages: list[InboundMessage] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    attempts: int = 0
    listens: bool = False
    open: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.open.set()

    async def wants(self, message: InboundMessage) -> bool:
        """Of what is not addressed to the bot."""
        return self.listens

    async def receive(self, message: InboundMessage) -> None:
        self.attempts += 1
        self.server.changed()
        await self.open.wait()
        if self.faults:
            raise self.faults.pop(0)
        self.messages.append(message)
        self.server.changed()

    async def wait_for(self, count: int) -> list[InboundMessage]:
        await self.server.wait_for(lambda: len(self.messages) >= count)
        return self.messages

    @property
    def stored(self) -> dict[str, InboundMessage]:
        """As the store keeps them: each event once, the first that came."""
        kept: dict[str, InboundMessage] = {}
        for message in self.messages:
            kept.setdefault(f"{message.address.chat} {message.event}", message)
        return kept


@pytest.fixture
async def inbox(server: SlackServer) -> Inbox:
    return Inbox(server)


@pytest.fixture
async def listening(
    server: SlackServer, channel: SlackChannel, inbox: Inbox
) -> AsyncIterator[asyncio.Task[None]]:
    """The channel, connected by Socket Mode."""
    task = asyncio.create_task(channel.listen(inbox.receive))
    await server.wait_for_connection()
    yield task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
