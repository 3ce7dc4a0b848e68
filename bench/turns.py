"""How many turns a second the bridge can do: `python -m bench.turns TURNS CHATS`.

A model and a channel that take no time; the lanes, the agent loop and the database are real, and each
turn is durable: at the end every message is closed, every run settled and every reply delivered in the
database, or there is no result. Each chat asks again as soon as it is answered.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
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
from bridge.access.stores import AccessStores
from bridge.agent_bridge import AgentBridge
from bridge.configuration.settings import Config
from bridge.log import Redactor
from bridge.models.chat_models import ModelChoice
from bridge.parts import BridgeSettings
from bridge.services import turn_services
from channels.base import (
    Address,
    Delivered,
    OutboundReply,
    ReplyJournal,
    ReplyPart,
    Resumed,
    StopControl,
)
from channels.parts import Finishing, Halt, Parts, Passage
from channels.testing import FakeChannel
from memory.database import Database

_DONE = {
    "inbox": "outcome = 'answered'",
    "runs": "state = 'settled'",
    "outbox": "outcome = 'delivered'",
}


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
class _Reply(Finishing):
    """Goes the way of an answer without a preview: marked in the journal, sent, marked again."""

    done: asyncio.Event
    journal: ReplyJournal | None

    def show(self, more: str) -> None:
        """Nothing to see."""

    async def compose(self, reply: OutboundReply) -> tuple[str, ...]:
        """One message."""
        return (reply.markdown,)

    async def deliver(self, parts: Sequence[ReplyPart], *, note: str = "") -> Delivered:
        """The chat may go on."""

        async def one(number: int, part: ReplyPart, passage: Passage) -> str:
            await passage.leaving()
            return "1"

        delivery = Parts(Halt(), self.journal)
        await delivery.send(parts, one)
        self.done.set()
        return delivery.outcome()

    def halt(self) -> None:
        """Nothing is left to be sent."""

    async def discard(self) -> None:
        """Nothing to remove."""


@dataclass(slots=True)
class FastChannel(FakeChannel):
    """Delivers at once. `answered`: by chat, set when it has its answer."""

    answered: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])

    def open_reply(
        self,
        to: Address,
        *,
        reply_to: str | None,
        stop: StopControl | None = None,
        journal: ReplyJournal | None = None,
        resumed: Resumed | None = None,
        silent: bool = False,
    ) -> _Reply:
        """A reply that wakes its chat when it is finished."""
        return _Reply(self.answered[to.chat], journal)


@dataclass(frozen=True, slots=True)
class FastBridge:
    """The bridge between a model and a channel that take no time."""

    bridge: AgentBridge
    channel: FastChannel
    database: Database

    async def ask(self, chat: str, turns: int) -> None:
        """Ask so often in a chat, each time when the last is answered."""
        answered = self.channel.answered[chat] = asyncio.Event()
        for _ in range(turns):
            answered.clear()
            await self.bridge.receive(self.channel.message("How is the tide?", chat=chat))
            await answered.wait()
        del self.channel.answered[chat]

    async def settled(self, turns: int) -> None:
        """Return when all work has ended. Raises `AssertionError` unless so many turns, and no other
        ones, are stored as answered and delivered."""
        await self.bridge.idle()
        for table, done in _DONE.items():
            sql = f"SELECT COUNT(*), SUM({done}) FROM {table}"
            found = tuple((await self.database.read(sql))[0])
            if found != (turns, turns):
                raise AssertionError(f"{table}: {found} instead of {turns} rows, all done")


@asynccontextmanager
async def fast_bridge(data: Path) -> AsyncGenerator[FastBridge]:
    """It runs until the block ends."""
    database = await Database.open(data / "galata.db")
    try:
        services = turn_services(Config(), database, data, Redactor())
        rules = {"fake": ChannelAccess(frozenset({"ana"}), frozenset())}
        stores = AccessStores.of(database)
        channel = FastChannel()
        access = Access(rules, services.chats, stores, {"fake": channel})
        await access.load()
        settings = BridgeSettings(UTC, queue_length=10)
        sizes = Estimator(Family.UNKNOWN)
        model = ChatModel(
            "fast", "fast-1", FastProvider(), 1000, ModelTraits(), 100_000, sizes, lambda usage: 1
        )
        async with asyncio.TaskGroup() as group:
            bridge = AgentBridge(
                settings, services, access, ModelChoice((model,)), {"fake": channel}, group
            )
            yield FastBridge(bridge, channel, database)
            await bridge.close(5)
    finally:
        await database.close()


async def turns_per_second(turns: int, chats: int, data: Path) -> float:
    """Of `turns` turns, shared by `chats` chats that ask at the same time."""
    each = turns // chats
    async with fast_bridge(data) as fast:
        await _all_ask(fast, chats, 1)
        before = time.monotonic()
        await _all_ask(fast, chats, each)
        await fast.settled(chats * (each + 1))
        return chats * each / (time.monotonic() - before)


async def _all_ask(fast: FastBridge, chats: int, turns: int) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(chats):
            group.create_task(fast.ask(str(number), turns))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(turns_per_second(int(sys.argv[1]), int(sys.argv[2]), Path(folder)))
    print(json.dumps({"per_second": found}), flush=True)
