"""How many turns a second the bridge can do: `python -m bench.turns TURNS CHATS`.

A model and a channel that take no time; the lanes, the agent loop and the database are real. Each
chat asks again as soon as it is answered.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path

from agent.estimate import Estimator, Family
from agent.messages import assistant_text
from agent.model import ChatModel
from agent.provider import (
    Completed,
    ModelRequest,
    ModelTraits,
    StreamEvent,
    TextDelta,
    Usage,
    UsageReport,
)
from bridge.access import Access, ChannelAccess
from bridge.agent_bridge import AgentBridge, BridgeSettings
from bridge.app import turn_services
from bridge.log import Redactor
from bridge.settings import Config
from channels.base import Address, Delivered, OutboundReply, StopControl
from channels.testing import FakeChannel
from memory.database import Database


class FastProvider:
    """Answers "Low tide." at once."""

    name = "fast"

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        """One call."""
        yield self._events()

    async def _events(self) -> AsyncIterator[StreamEvent]:
        usage = Usage(input_tokens=10, output_tokens=5)
        yield UsageReport(usage)
        yield TextDelta("Low tide.")
        yield Completed(assistant_text("Low tide."), "end", usage)

    async def warm(self) -> None:
        """Nothing to import."""

    async def aclose(self) -> None:
        """Nothing to close."""


@dataclass(slots=True)
class _Reply:
    done: asyncio.Event

    def show(self, more: str) -> None:
        """Nothing to see."""

    async def finish(self, reply: OutboundReply) -> Delivered:
        """The chat may go on."""
        self.done.set()
        return Delivered(1, 1)

    def halt(self) -> None:
        """Nothing is left to be sent."""

    async def discard(self) -> None:
        """Nothing to remove."""


@dataclass(slots=True)
class FastChannel(FakeChannel):
    """Delivers at once."""

    answered: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])

    def open_reply(
        self, to: Address, *, reply_to: str | None, stop: StopControl | None = None
    ) -> _Reply:
        """A reply that wakes its chat when it is finished."""
        return _Reply(self.answered[to.chat])


async def turns_per_second(turns: int, chats: int, data: Path) -> float:
    """Of `turns` turns, shared by `chats` chats that ask at the same time."""
    database = await Database.open(data / "galata.db")
    try:
        services = turn_services(Config(), database, data, Redactor())
        rules = {"fake": ChannelAccess(frozenset({"ana"}), frozenset())}
        access = Access(rules, services.people, services.chats)
        await access.load()
        channel = FastChannel()
        settings = BridgeSettings("shared", UTC, "en", queue_length=10)
        sizes = Estimator(Family.UNKNOWN)
        model = ChatModel(
            "fast", "fast-1", FastProvider(), 1000, ModelTraits(), 100_000, sizes, lambda usage: 1
        )
        async with asyncio.TaskGroup() as group:
            bridge = AgentBridge(settings, services, access, (model,), {"fake": channel}, group)
            await _chat(bridge, channel, chats, 1)
            before = time.monotonic()
            await _chat(bridge, channel, chats, turns // chats)
            spent_s = time.monotonic() - before
            await bridge.close(5)
        return turns // chats * chats / spent_s
    finally:
        await database.close()


async def _chat(bridge: AgentBridge, channel: FastChannel, chats: int, turns: int) -> None:
    async def ask(chat: str) -> None:
        answered = channel.answered[chat] = asyncio.Event()
        for _ in range(turns):
            answered.clear()
            await bridge.receive(channel.message("How is the tide?", chat=chat))
            await answered.wait()

    async with asyncio.TaskGroup() as group:
        for number in range(chats):
            group.create_task(ask(str(number)))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(turns_per_second(int(sys.argv[1]), int(sys.argv[2]), Path(folder)))
    print(json.dumps({"per_second": found}), flush=True)
