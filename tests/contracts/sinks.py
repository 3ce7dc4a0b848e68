"""Every way in which a reply can leave, with the hands to hold it up in the middle.

The n-th part of a reply of `answer` consists of the n-th letter, whatever the platform's limits.
"""

from __future__ import annotations

import asyncio
import io
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from channels.base import Address, OutboundDocument, OutboundReply, ReplySink
from channels.console import ADDRESS, ConsoleChannel
from channels.errors import ChannelUnavailable
from channels.testing import FakeChannel
from tests.channels.slack.conftest import make_channel as make_slack
from tests.channels.telegram.conftest import make_channel as make_telegram
from tests.servers.slack import SlackServer
from tests.servers.slack_faults import Fault
from tests.servers.telegram import TelegramServer

LETTERS = "abcdefgh"
MINUTES_S = 100
HOURS_S = 10_000


class Rig(ABC):
    """One sink that nobody has finished, and the chat behind it."""

    part_size: int
    sink: ReplySink

    def answer(self, parts: int, documents: int = 0) -> OutboundReply:
        letters = (letter * self.part_size for letter in LETTERS[:parts])
        files = tuple(OutboundDocument(f"{n}.txt", "x") for n in range(documents))
        return OutboundReply("\n\n".join(letters), files)

    @abstractmethod
    def arrived(self) -> str:
        """The letters of the parts that the chat has, `.` for a document."""


class HeldRig(Rig):
    """One whose platform can keep a reply waiting."""

    @abstractmethod
    def hold(self, part: int) -> None:
        """The platform makes this part (from 0) wait for minutes."""

    @abstractmethod
    async def held(self) -> None:
        """Until the part waits."""

    @abstractmethod
    async def lose(self, reply: OutboundReply, after: int) -> None:
        """Finish; so many parts arrive, then the platform cannot be reached."""


class ConsoleRig(Rig):
    part_size = 10

    def __init__(self) -> None:
        self.out = io.StringIO()
        console = ConsoleChannel(_never, target=self.out)
        self.sink = console.open_reply(ADDRESS, reply_to=None)

    def answer(self, parts: int, documents: int = 0) -> OutboundReply:
        """The terminal knows no limit: one part of text at most."""
        reply = super().answer(parts, documents)
        return OutboundReply(reply.markdown.replace("\n", "")[: self.part_size], reply.documents)

    def arrived(self) -> str:
        lines = [line for line in self.out.getvalue().splitlines() if line.strip() not in ("", "x")]
        return "".join("." if line.startswith("---") else line[0] for line in lines)


class FakeRig(HeldRig):
    part_size = 3_998

    def __init__(self) -> None:
        self.channel = FakeChannel()
        self.sink = self.channel.open_reply(Address("fake", "bot", "1"), reply_to=None)

    def arrived(self) -> str:
        (reply,) = self.channel.replies
        return "".join("." if part.endswith(".txt") else part[0] for part in reply.parts)

    def hold(self, part: int) -> None:
        self.channel.hold_after = part

    async def held(self) -> None:
        assert self.channel.hold_after is not None
        while len(self.arrived()) < self.channel.hold_after:
            self.channel.changed.clear()
            await self.channel.changed.wait()

    async def lose(self, reply: OutboundReply, after: int) -> None:
        self.hold(after)
        finishing = asyncio.create_task(self.sink.finish(reply))
        await self.held()
        self.channel.failures.append(ChannelUnavailable("down"))
        self.channel.go_on.set()
        await finishing


class TelegramRig(HeldRig):
    part_size = 4_080

    def __init__(self, server: TelegramServer, sink: ReplySink, chat: str) -> None:
        self.server = server
        self.sink = sink
        self.chat = server.chats[int(chat)]

    def arrived(self) -> str:
        return "".join(message.text[:1] or "." for message in self.chat.bot_messages)

    def hold(self, part: int) -> None:
        wait = {"retry_after": MINUTES_S}
        self.fault = self.server.fail_next(
            "sendMessage", status=429, parameters=wait, text=LETTERS[part]
        )

    async def held(self) -> None:
        await self.server.wait_for(lambda: self.fault.used)

    async def lose(self, reply: OutboundReply, after: int) -> None:
        flooded = self.server.fail_next("sendMessage", status=429, text=LETTERS[after])
        finishing = asyncio.create_task(self.sink.finish(reply))
        await self.server.wait_for(lambda: flooded.used)
        await self.server.stop()  # before the second that it waits is over
        try:
            await finishing
        finally:
            await self.server.start()


class SlackRig(HeldRig):
    part_size = 11_000
    method = "chat.postMessage"

    def __init__(self, server: SlackServer, sink: ReplySink) -> None:
        self.server = server
        self.sink = sink
        (self.chat,) = server.conversations.values()

    def arrived(self) -> str:
        return "".join(one.shown[:1] or "." for one in self.chat.log if one.user == self.bot)

    @property
    def bot(self) -> str:
        return self.server.bot.id

    def hold(self, part: int) -> None:
        self._limit(part, MINUTES_S)

    async def held(self) -> None:
        await self.server.wait_for(lambda: self.fault.used)

    async def lose(self, reply: OutboundReply, after: int) -> None:
        self._limit(after, HOURS_S)  # longer than a channel waits
        await self.sink.finish(reply)

    def _limit(self, part: int, seconds: float) -> None:
        letter = LETTERS[part] * 9
        fault = Fault(self.method, error="ratelimited", status=429, text=letter)
        fault.retry_after = seconds
        self.fault = self.server.faults.add(fault)


class NoticeRig(SlackRig):
    part_size = 2_700
    method = "chat.postEphemeral"


@asynccontextmanager
async def console() -> AsyncGenerator[Rig]:
    yield ConsoleRig()


@asynccontextmanager
async def fake() -> AsyncGenerator[HeldRig]:
    yield FakeRig()


@asynccontextmanager
async def telegram() -> AsyncGenerator[HeldRig]:
    async with TelegramServer() as server:
        chat = str(server.private(server.user("Ana")).id)
        channel = make_telegram(server)
        sink = channel.open_reply(Address("telegram", "123456", chat), reply_to=None)
        yield TelegramRig(server, sink, chat)
        await channel.aclose()


@asynccontextmanager
async def slack() -> AsyncGenerator[HeldRig]:
    async with SlackServer() as server:
        dm = server.dm(server.user("Ana"))
        channel = make_slack(server)
        to = Address("slack", server.team_id, dm.id)
        yield SlackRig(server, channel.open_reply(to, reply_to=None))
        await channel.aclose()


@asynccontextmanager
async def notice() -> AsyncGenerator[HeldRig]:
    async with SlackServer() as server:
        ana = server.user("Ana")
        general = server.channel("general", members=[ana])
        channel = make_slack(server)
        to = Address("slack", server.team_id, general.id, None, private=False)
        yield NoticeRig(server, channel.open_reply(to, reply_to=f"ephemeral:{ana.id}:gone"))
        await channel.aclose()


HELD: tuple[Callable[[], AbstractAsyncContextManager[HeldRig]], ...] = (
    fake,
    telegram,
    slack,
    notice,
)


async def _never() -> None:
    await asyncio.Event().wait()
