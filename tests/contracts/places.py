"""Chats in which processes of ours come and go. The n-th part of an `answer` consists of the n-th
letter, whatever the platform's limits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace

from channels.base import (
    Address,
    OutboundDocument,
    OutboundReply,
    ReplyJournal,
    ReplySink,
    Resumed,
    StopControl,
)
from channels.slack.channel import SlackChannel
from channels.telegram.channel import TelegramChannel
from tests.channels.slack.conftest import make_channel as make_slack
from tests.channels.telegram.conftest import make_channel as make_telegram
from tests.servers import slack_faults, telegram_faults
from tests.servers.slack import SlackServer
from tests.servers.slack_render import Json
from tests.servers.telegram import TelegramServer
from tests.servers.telegram_params import Params

LETTERS = "abcdefgh"
STOP = StopControl("Stop", "run-1")
_UPDATE = 3_700  # of the markdown that one update of a Slack message takes
NOTE = "You may have this already."


@dataclass(frozen=True)
class Seen:
    """A message of the bot as a person sees it. `id` as a journal knows it, None for a file."""

    id: str | None
    text: str
    buttons: int
    file: bool

    @property
    def part(self) -> str:
        """The letter of the part that it shows, a dot for a file, else nothing."""
        bare = self.text.replace(NOTE, "").strip()
        return "." if self.file else bare[0] if bare[:1] * 20 == bare[:20] and bare else ""

    @property
    def noted(self) -> bool:
        """Whether it says that the part may have come before."""
        return NOTE in self.text


class Place(ABC):
    """One chat."""

    part_size: int
    documents = True
    previews = True

    def answer(self, parts: int, documents: int = 0, *, previewed: bool = False) -> OutboundReply:
        """A reply of so many messages, the first of which can take the place of a preview."""
        letters = (letter * self.part_size for letter in LETTERS[:parts])
        files = tuple(OutboundDocument(f"{n}.txt", "x") for n in range(documents))
        return OutboundReply("\n\n".join(letters), files)

    @abstractmethod
    def open(self, journal: ReplyJournal | None, resumed: Resumed | None = None) -> ReplySink:
        """A sink of a process of its own."""

    @property
    @abstractmethod
    def seen(self) -> list[Seen]:
        """The bot's messages, oldest first."""

    @abstractmethod
    def requests(self) -> int:
        """How many requests have arrived."""

    @abstractmethod
    def leaves(self, request: int) -> str:
        """The letter of the part that this request sends as a new message, a dot for a file, else
        nothing."""

    @abstractmethod
    async def wait_for(self, look: Callable[[], object]) -> None:
        """Until `look` is true."""

    @abstractmethod
    def changed(self) -> None:
        """Whoever waits looks again."""

    @abstractmethod
    def cut(self, number: int, *, acted: bool) -> Callable[[], bool]:
        """The `number`-th request (from 1) hangs, before or after it has taken effect. Tells
        whether it has come."""

    @abstractmethod
    def flood(self, part: str) -> None:
        """The next new message of this part has to wait."""

    @abstractmethod
    def refuse(self, part: str) -> None:
        """The new message of this part is refused, as plain text too."""

    @abstractmethod
    def lose(self, part: str) -> None:
        """The new message of this part arrives, but its answer does not."""

    @abstractmethod
    async def out_of_reach(self) -> None:
        """No new message reaches the platform."""

    @abstractmethod
    async def within_reach(self) -> None:
        """They do again."""

    @abstractmethod
    def delete_all(self) -> None:
        """Somebody takes the bot's messages away."""

    @property
    def letters(self) -> str:
        """The parts that stand in the chat."""
        return "".join(one.part for one in self.seen)

    @property
    def buttons(self) -> int:
        """How many buttons stand in the chat."""
        return sum(one.buttons for one in self.seen)


@dataclass(eq=False)
class _TelegramCut(telegram_faults.Fault):
    """The call of that number, "typing" not counted."""

    number: int = 0

    def fits(self, method: str, params: Params) -> bool:
        if method == "sendchataction":
            return False
        self.number -= 1
        return self.number == 0


class TelegramPlace(Place):
    part_size = 4_000  # a note has room beside it

    def __init__(self, server: TelegramServer, *, private: bool) -> None:
        self._server = server
        ana = server.user("Ana")
        self.chat = server.private(ana) if private else server.group("Team", members=[ana])
        self._question = self.chat.send("hi")
        self.channels: list[TelegramChannel] = []

    def open(self, journal: ReplyJournal | None, resumed: Resumed | None = None) -> ReplySink:
        channel = make_telegram(self._server)
        self.channels.append(channel)
        private = self.chat.kind == "private"
        to = Address("telegram", "123456", str(self.chat.id), None, private)
        return channel.open_reply(
            to, reply_to=str(self._question.id), stop=STOP, journal=journal, resumed=resumed
        )

    @property
    def seen(self) -> list[Seen]:
        return [
            Seen(str(one.id), one.text, len(one.buttons), "document" in one.data)
            for one in self.chat.bot_messages
        ]

    def requests(self) -> int:
        return len(self._server.calls)

    def leaves(self, request: int) -> str:
        call = self._server.calls[request]
        text = str(call.params.get("text", ""))
        if call.method == "sendDocument":
            return "."
        return Seen(None, text, 0, False).part if call.method == "sendMessage" else ""

    async def wait_for(self, look: Callable[[], object]) -> None:
        await self._server.wait_for(look)

    def changed(self) -> None:
        self._server.changed()

    def cut(self, number: int, *, acted: bool) -> Callable[[], bool]:
        fault = _TelegramCut("*", stall=True, acted=acted, number=number)
        self._server.faults.add(fault)
        return lambda: fault.used > 0

    def flood(self, part: str) -> None:
        self._server.fail_next("sendMessage", status=429, text=part * 20)

    def refuse(self, part: str) -> None:
        self._server.fail_next(
            "sendMessage", status=400, description="Bad Request: odd", text=part * 20, count=2
        )

    def lose(self, part: str) -> None:
        self._server.fail_next("sendMessage", drop=True, acted=True, text=part * 20)

    async def out_of_reach(self) -> None:
        await self._server.stop()

    async def within_reach(self) -> None:
        await self._server.start()

    def delete_all(self) -> None:
        for one in self.chat.bot_messages:
            self.chat.delete(one)


@dataclass(eq=False)
class _SlackCut(slack_faults.Fault):
    """The call of that number."""

    number: int = 0

    def fits(self, method: str, params: Json) -> bool:
        self.number -= 1
        return self.number == 0


class SlackPlace(Place):
    part_size = 11_000
    method = "chat.postMessage"

    def __init__(self, server: SlackServer, *, thread: bool) -> None:
        self.server = server
        self.ana = server.user("Ana")
        place = server.channel("general", members=[self.ana]) if thread else server.dm(self.ana)
        self.chat = place
        self.question = place.send("<@BOT> hi")
        self.channels: list[SlackChannel] = []
        self._outage: slack_faults.Fault | None = None

    def answer(self, parts: int, documents: int = 0, *, previewed: bool = False) -> OutboundReply:
        """An update takes less than a new message does."""
        reply = super().answer(parts, documents)
        if previewed:
            markdown = reply.markdown.replace("a" * self.part_size, "a" * _UPDATE, 1)
            return replace(reply, markdown=markdown)
        return reply

    def open(self, journal: ReplyJournal | None, resumed: Resumed | None = None) -> ReplySink:
        channel = make_slack(self.server)
        self.channels.append(channel)
        private = self.chat.kind == "im"
        thread = None if private else self.question.ts
        to = Address("slack", self.server.team_id, self.chat.id, thread, private)
        return channel.open_reply(
            to, reply_to=self.question.ts, stop=STOP, journal=journal, resumed=resumed
        )

    @property
    def seen(self) -> list[Seen]:
        return [
            Seen(None if one.files else one.ts, one.shown, len(one.buttons), bool(one.files))
            for one in self.chat.log
            if one.user == self.server.bot.id and not one.deleted
        ]

    def requests(self) -> int:
        return len(self.server.calls)

    def leaves(self, request: int) -> str:
        call = self.server.calls[request]
        if call.method == "files.getUploadURLExternal":
            return "."
        text = str(call.params.get("text", ""))
        return Seen(None, text, 0, False).part if call.method == self.method else ""

    async def wait_for(self, look: Callable[[], object]) -> None:
        await self.server.wait_for(look)

    def changed(self) -> None:
        self.server.changed()

    def cut(self, number: int, *, acted: bool) -> Callable[[], bool]:
        fault = _SlackCut("*", stall=True, acted=acted, number=number)
        self.server.faults.add(fault)
        return lambda: fault.used > 0

    def flood(self, part: str) -> None:
        fault = slack_faults.Fault(
            self.method, error="ratelimited", status=429, retry_after=0.05, text=part * 20
        )
        self.server.faults.add(fault)

    def refuse(self, part: str) -> None:
        self.server.fail_next(self.method, error="invalid_blocks", text=part * 20, count=2)

    def lose(self, part: str) -> None:
        self.server.fail_next(self.method, drop=True, acted=True, text=part * 20)

    async def out_of_reach(self) -> None:
        self._outage = self.server.fail_next(self.method, error="service_unavailable", count=1_000)

    async def within_reach(self) -> None:
        assert self._outage is not None
        self._outage.left = 0

    def delete_all(self) -> None:
        for one in self.chat.from_bot:
            self.chat.delete(one)


class NoticePlace(SlackPlace):
    """What one person alone is shown."""

    part_size = 2_700
    method = "chat.postEphemeral"
    documents = previews = False

    def open(self, journal: ReplyJournal | None, resumed: Resumed | None = None) -> ReplySink:
        channel = make_slack(self.server)
        self.channels.append(channel)
        to = Address("slack", self.server.team_id, self.chat.id, None, private=False)
        return channel.open_reply(
            to, reply_to=f"ephemeral:{self.ana.id}:gone", journal=journal, resumed=resumed
        )


@asynccontextmanager
async def telegram_private() -> AsyncGenerator[Place]:
    async with _telegram(private=True) as place:
        yield place


@asynccontextmanager
async def telegram_group() -> AsyncGenerator[Place]:
    async with _telegram(private=False) as place:
        yield place


@asynccontextmanager
async def _telegram(*, private: bool) -> AsyncGenerator[Place]:
    async with TelegramServer(privacy_mode=False) as server:
        place = TelegramPlace(server, private=private)
        yield place
        for channel in place.channels:
            await channel.aclose()


@asynccontextmanager
async def slack_dm() -> AsyncGenerator[Place]:
    async with _slack(lambda server: SlackPlace(server, thread=False)) as place:
        yield place


@asynccontextmanager
async def slack_thread() -> AsyncGenerator[Place]:
    async with _slack(lambda server: SlackPlace(server, thread=True)) as place:
        yield place


@asynccontextmanager
async def notice() -> AsyncGenerator[Place]:
    async with _slack(lambda server: NoticePlace(server, thread=True)) as place:
        yield place


@asynccontextmanager
async def _slack(make: Callable[[SlackServer], SlackPlace]) -> AsyncGenerator[Place]:
    async with SlackServer() as server:
        place = make(server)
        yield place
        for channel in place.channels:
            await channel.aclose()


OpenPlace = Callable[[], AbstractAsyncContextManager[Place]]
PLACES: tuple[OpenPlace, ...] = (telegram_private, telegram_group, slack_dm, slack_thread)
"""Where a reply has a preview, and is gone on with."""
ALL: tuple[OpenPlace, ...] = (*PLACES, notice)
