"""The one reply of a run on its way out: tried again while the platform is out of reach, and stopped
between its parts when its run's token is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from agent.cancel import CancelToken
from bridge.errors import ErrorReporter
from channels.base import Delivered, OutboundReply, ReplySink
from channels.errors import ChannelError, ChannelUnavailable, Unreachable

log = logging.getLogger(__name__)

# Seconds between the tries to deliver an answer while its platform is out of reach.
WAITS_S = (1, 2, 5, 10, 30, 60)


class Delivery:
    """`open_reply` begins a reply in the chat; `what` names it in the log and in error reports."""

    def __init__(
        self,
        open_reply: Callable[[], ReplySink],
        token: CancelToken,
        errors: ErrorReporter,
        what: str,
    ) -> None:
        self._open_reply = open_reply
        self._token = token
        self._errors = errors
        self._what = what
        self.sink = open_reply()

    async def finish(self, text: str, *, stoppable: bool) -> Delivered | None:
        """Deliver the reply. What of it is out, when it was stopped before its end; else None.
        Raises `ChannelUnavailable` when its platform stays out of reach."""
        watch = asyncio.create_task(self._halt_when_stopped()) if stoppable else None
        try:
            delivered = await self._tell(self.sink, text, stoppable=stoppable)
        finally:
            if watch is not None:
                watch.cancel()
        stopped = delivered is not None and delivered.sent < delivered.of
        return delivered if stopped else None

    async def notice(self, text: str) -> None:
        """A short message of its own."""
        try:
            await self._tell(self._open_reply(), text, stoppable=False)
        except ChannelUnavailable as error:
            log.warning("%s: a notice could not be delivered: %s", self._what, error)

    async def discard(self) -> None:
        """No reply comes."""
        await self.sink.discard()

    async def _halt_when_stopped(self) -> None:
        await self._token.wait()
        self.sink.halt()

    async def _tell(self, sink: ReplySink, text: str, *, stoppable: bool) -> Delivered | None:
        """What was delivered; None when the chat cannot have it, which is reported."""
        try:
            return await self._persistently(sink, OutboundReply(text), stoppable=stoppable)
        except Unreachable:
            log.info("%s: the chat cannot be reached; the answer is stored", self._what)
        except ChannelUnavailable:
            raise
        except ChannelError as error:
            await self._errors.report(error, f"delivery of {self._what}")
        return None

    async def _persistently(
        self, sink: ReplySink, reply: OutboundReply, *, stoppable: bool
    ) -> Delivered:
        """A platform that is out of reach is tried again, and goes on with what is left."""
        for wait_s in WAITS_S:
            try:
                return await sink.finish(reply)
            except ChannelUnavailable as error:
                log.warning("%s: %s; tried again", self._what, error)
                await self._pause(error.retry_after_s or wait_s, stoppable=stoppable)
        return await sink.finish(reply)

    async def _pause(self, seconds: float, *, stoppable: bool) -> None:
        """Wait; where the reply can be stopped, no longer than until then."""
        if not stoppable:
            await asyncio.sleep(seconds)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._token.wait()
