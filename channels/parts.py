"""A reply of several messages on its way: one after the other, until it is done or halted.

What is under way is never broken off, since nobody could say what became of it; what waits for its
turn ends at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from channels.base import Delivered
from channels.errors import ChannelUnavailable, ReplyRefused, Uncertain

log = logging.getLogger(__name__)

Item = TypeVar("Item")


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


class Parts:
    """The delivery of one reply, which may take several tries: where it is, and what arrived."""

    def __init__(self, halt: Halt) -> None:
        self._halt = halt
        self._next = 0
        self._arrived = 0
        self._of = 0
        self._trouble: ReplyRefused | Uncertain | None = None

    @property
    def begun(self) -> bool:
        """Whether one had its turn."""
        return self._next > 0

    async def send(
        self, items: Sequence[Item], deliver: Callable[[int, Item], Awaitable[None]]
    ) -> None:
        """`deliver(index, item)` for each that had no turn yet, also after one that was refused or
        is uncertain; returns when all had one, or when halted. Raises `ChannelUnavailable` (the
        next call begins with the same item) and what else `deliver` raises."""
        self._of = len(items)
        while self._next < self._of:
            try:
                self._halt.check()
                await deliver(self._next, items[self._next])
                self._arrived += 1
            except Halted:
                return
            except ChannelUnavailable:
                if self._halt.is_set:
                    return
                raise
            except (ReplyRefused, Uncertain) as error:
                name = type(error).__name__
                log.warning("part %d of %d: %s", self._next + 1, self._of, name)
                self._trouble = self._trouble or error
            self._next += 1

    def outcome(self) -> Delivered:
        """What arrived. Raises the first `ReplyRefused` or `Uncertain` unless a halt has left parts
        unsent: then nobody waits for them."""
        if self._trouble is not None and self._next == self._of:
            raise self._trouble
        return Delivered(self._arrived, self._of)
