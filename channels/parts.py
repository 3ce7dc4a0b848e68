"""A reply of several messages on its way: one after the other, until it is done or halted.

What is under way is never broken off, since nobody could say what became of it; what waits for its
turn ends at once.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from channels.base import Delivered, OutboundReply, ReplyJournal, ReplyPart
from channels.errors import ChannelUnavailable, NotStored, ReplyRefused, Uncertain

log = logging.getLogger(__name__)


class Halted(Exception):
    """Raised where a halt was met: what was about to be sent stays unsent."""


class Halt:
    """A sign that the rest of a reply is not wanted. Once set, it stays; one event loop.

    Always true as a value: PTB drops `rate_limit_args` that are not.
    """

    __slots__ = ("_set", "_waits")

    def __init__(self) -> None:
        self._set = False
        self._waits: set[asyncio.Timeout] = set()

    @property
    def is_set(self) -> bool:
        """Whether the rest is not wanted."""
        return self._set

    def set(self) -> None:
        """End every wait under this sign."""
        if self._set:
            return
        self._set = True
        for wait in self._waits:
            wait.reschedule(0.0)  # the loop's clock is past that

    def check(self) -> None:
        """Raises `Halted` when the sign is set."""
        if self._set:
            raise Halted

    @asynccontextmanager
    async def interruptible(self) -> AsyncGenerator[None]:
        """What is awaited in the block ends with `Halted` as soon as the sign is set; behind the
        block it is not set. For waiting only: a request would be broken off."""
        self.check()
        wait = asyncio.timeout(None)
        try:
            async with wait:
                self._waits.add(wait)
                try:
                    yield
                finally:
                    self._waits.discard(wait)
        except TimeoutError:
            if not wait.expired():
                raise
            raise Halted from None
        self.check()


class Passage:
    """The way out of one request: what waits before it ends when its reply is halted, and the reply's
    journal hears of a new message directly before it leaves.

    Always true as a value, as `Halt`.
    """

    __slots__ = ("_halt", "_journal", "_left", "_number")

    def __init__(
        self, halt: Halt | None = None, journal: ReplyJournal | None = None, number: int = 0
    ) -> None:
        self._halt = Halt() if halt is None else halt
        self._journal = journal
        self._number = number
        self._left = False

    def check(self) -> None:
        """Raises `Halted` when the reply is halted."""
        self._halt.check()

    def interruptible(self) -> AbstractAsyncContextManager[None]:
        """See `Halt.interruptible`."""
        return self._halt.interruptible()

    async def leaving(self) -> None:
        """To be awaited directly before each try; nothing may come between. Raises `NotStored`: then
        it must not leave."""
        if self._journal is not None:
            await self._journal.leaving(self._number)
            self._left = True

    async def stayed(self) -> None:
        """The try, if there was one, has come to nothing for certain. To be awaited before whatever
        waits; the journal hears it once."""
        if self._journal is not None and self._left:
            self._left = False
            await self._journal.stayed(self._number)

    @property
    def of_an_edit(self) -> Passage:
        """The same for a request that may be repeated until it succeeds: no journal needs it."""
        return Passage(self._halt)


Deliver = Callable[[int, ReplyPart, Passage], Awaitable[str | None]]


class Parts:
    """The delivery of one reply, which may take several tries: where it is, and what arrived."""

    def __init__(self, halt: Halt, journal: ReplyJournal | None = None) -> None:
        self._halt = halt
        self._journal = journal
        self._next = 0
        self._arrived = 0
        self._of = 0
        self._trouble: ReplyRefused | Uncertain | None = None

    @property
    def begun(self) -> bool:
        """Whether one had its turn."""
        return self._next > 0

    async def send(self, parts: Sequence[ReplyPart], deliver: Deliver) -> None:
        """`deliver(number, part, passage)`, which returns the message's id, for each that had no turn
        yet, also after one that was refused or is uncertain; returns when all had one, or when
        halted. Raises `ChannelUnavailable` and `NotStored` (the next call begins with the same part)
        and what else `deliver` raises."""
        self._of = len(parts)
        while self._next < self._of:
            part = parts[self._next]
            if part.state == "sent":  # in an earlier process
                self._arrived += 1
            elif part.state == "lost":
                self._trouble = self._trouble or Uncertain("a part was lost in an earlier process")
            elif not await self._goes_out(part, deliver):
                return
            self._next += 1

    async def _goes_out(self, part: ReplyPart, deliver: Deliver) -> bool:
        """Whether the part had its turn; false when the reply was halted before."""
        number = self._next
        passage = Passage(self._halt, self._journal, number)
        try:
            self._halt.check()
            message_id = await deliver(number, part, passage)
        except Halted:
            await passage.stayed()
            return False
        except (ChannelUnavailable, NotStored):
            await passage.stayed()
            if self._halt.is_set:
                return False
            raise
        except (ReplyRefused, Uncertain) as error:
            log.warning("part %d of %d: %s", number + 1, self._of, type(error).__name__)
            self._trouble = self._trouble or error
            if self._journal is not None:
                uncertain = isinstance(error, Uncertain)
                await self._journal.ended(number, "uncertain" if uncertain else "refused", None)
            return True
        self._arrived += 1
        if self._journal is not None:
            await self._journal.ended(number, "sent", message_id)
        return True

    def outcome(self) -> Delivered:
        """What arrived. Raises the first `ReplyRefused` or `Uncertain` unless a halt has left parts
        unsent: then nobody waits for them."""
        if self._trouble is not None and self._next == self._of:
            raise self._trouble
        return Delivered(self._arrived, self._of)


class Finishing(ABC):
    """The `finish` of every sink: what it composes is delivered, and kept nowhere. `_tidying` is set by
    a sink that takes away its Stop button beside."""

    __slots__ = ("_composed", "_tidying")

    _composed: tuple[str, ...]
    _tidying: asyncio.Task[None]

    @abstractmethod
    async def compose(self, reply: OutboundReply) -> tuple[str, ...]:
        """See `ReplySink.compose`."""

    @abstractmethod
    async def deliver(self, parts: Sequence[ReplyPart], *, note: str = "") -> Delivered:
        """See `ReplySink.deliver`."""

    @property
    def tidy(self) -> bool:
        """See `ReplySink.tidy`."""
        tidying: asyncio.Task[None] | None = getattr(self, "_tidying", None)
        return tidying is None or tidying.done()

    async def tidied(self) -> None:
        """See `ReplySink.tidied`."""
        if not self.tidy:
            await asyncio.wait([self._tidying])

    async def finish(self, reply: OutboundReply) -> Delivered:
        """See `ReplySink.finish`. The same reply may be finished again after it raised."""
        composed: tuple[str, ...] | None = getattr(self, "_composed", None)
        if composed is None:
            composed = self._composed = await self.compose(reply)
        return await self.deliver([ReplyPart(body) for body in composed])


def numbered(number: int, of: int) -> str:
    """What a text ends with that is one of several parts; `number` from 0."""
    return f"\n\n{number + 1}/{of}" if of > 1 else ""


NUMBER_ROOM = len(numbered(998, 999))
