"""One reply in the making: a preview by updates of one message, the final text in its place."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from channels.base import Address, OutboundDocument, OutboundReply, StopControl
from channels.errors import ChannelError, ReplyRefused, Uncertain, Unreachable
from channels.preview import Preview
from channels.slack.api import SlackApi
from channels.slack.deliver import REPEATS_S, Delivery
from channels.slack.errors import MessageGone
from channels.slack.notice import SlackNotice
from channels.slack.pace import Dropped
from channels.slack.render import POST_UNITS, UPDATE_UNITS, Content, pieces, preview

log = logging.getLogger(__name__)

_DISCARD_S = 30.0


@dataclass(frozen=True, slots=True)
class ReplyTiming:
    """Seconds: between two updates (50 a minute is Slack's limit), until the Stop button is there
    whether or not there is any text, for one update of the preview (the answer waits for it), and
    the pauses before a request is repeated."""

    interval_s: float = 1.2
    stop_after_s: float = 1.5
    frame_s: float = 4.0
    repeats_s: tuple[float, ...] = REPEATS_S


DEFAULT_TIMING: Final = ReplyTiming()


class SlackReply:
    """A `ReplySink`. Only one message is ever used as preview; a frame that cannot be sent is
    skipped, and the next one tries again.

    `finish` may be called again with the same reply after it raised `ChannelUnavailable`: it goes
    on with what has not been sent. `otherwise` takes the reply where the bot is no member.
    """

    def __init__(
        self,
        api: SlackApi,
        to: Address,
        *,
        reply_to: str | None,
        stop: StopControl | None,
        otherwise: SlackNotice | None = None,
        timing: ReplyTiming = DEFAULT_TIMING,
    ) -> None:
        self._delivery = Delivery(api, to, repeats_s=timing.repeats_s)
        self._reply_to = reply_to
        self._stop = stop
        self._otherwise = otherwise
        self._interval_s = timing.interval_s
        self._frame_s = timing.frame_s
        self._preview = Preview(self._frame, interval_s=timing.interval_s, limit=UPDATE_UNITS)
        self._ts: str | None = None
        self._lost = False
        self._hopeless = False
        self._shown: Content | None = None
        self._items: list[Content | OutboundDocument] | None = None
        self._sent = 0  # items of the final reply
        if stop is not None:
            self._preview.refresh_in(timing.stop_after_s)

    def show(self, more: str) -> None:
        """Append to the preview."""
        self._preview.show(more)

    async def finish(self, reply: OutboundReply) -> None:
        """Deliver, the first part in place of the preview. Of several parts each is sent even if
        one before was refused or is uncertain; that is raised at the end."""
        await self._stop_showing()
        if self._items is None:
            first_units = POST_UNITS if self._ts is None else UPDATE_UNITS
            parts = pieces(reply.markdown, first_units=first_units)
            self._items = [*parts, *reply.documents]
        try:
            trouble = await self._deliver_all(self._items)
        except Unreachable:
            if self._otherwise is None:
                raise
            await self._otherwise.finish(reply)
            return
        await self._remove_preview()  # nothing took its place
        if trouble is not None:
            raise trouble

    async def discard(self) -> None:
        """Remove the preview."""
        await self._stop_showing()
        await self._remove_preview()

    async def _deliver_all(
        self, items: list[Content | OutboundDocument]
    ) -> ReplyRefused | Uncertain | None:
        trouble: ReplyRefused | Uncertain | None = None
        while self._sent < len(items):
            item = items[self._sent]
            try:
                if isinstance(item, OutboundDocument):
                    await self._delivery.upload(item)
                else:
                    await self._deliver(item)
            except (ReplyRefused, Uncertain) as error:
                log.warning("part %d of %d: %s", self._sent + 1, len(items), type(error).__name__)
                trouble = trouble or error
            self._sent += 1
        return trouble

    async def _deliver(self, part: Content) -> None:
        """In place of the preview; refused there, as a new message, which takes more than an
        update does; refused again, once more as plain text."""
        if self._ts is not None and await self._replace_preview(self._ts, part):
            return
        try:
            await self._delivery.post(part, "answer")
        except ReplyRefused as error:
            log.warning("once more as plain text: %s", error)
            await self._delivery.post(part.plain, "answer")

    async def _replace_preview(self, ts: str, part: Content) -> bool:
        try:
            await self._delivery.update(ts, part, "answer")
        except MessageGone:
            self._ts = None
            return False
        except ReplyRefused as error:
            log.warning("in a new message instead of the preview: %s", error)
            return False  # the preview is removed at the end
        self._ts = None
        return True

    async def _frame(self, text: str) -> None:
        """Bring the preview up to date. Called by `Preview`, never twice at once."""
        content = preview(text, self._stop)
        if self._lost or self._hopeless or content == self._shown:
            return
        try:
            async with asyncio.timeout(self._frame_s):
                await self._put(content)
        except Dropped:
            self._preview.refresh_in(self._interval_s)
        except MessageGone:
            self._ts, self._hopeless = None, True
        except (Unreachable, ReplyRefused) as error:
            log.info("no preview: %s", error)
            self._hopeless = True
        except (Uncertain, TimeoutError):
            self._lost = self._ts is None  # a message whose ts we do not know: no second one
        except ChannelError as error:
            log.debug("a preview frame was skipped: %s", error)
            self._preview.refresh_in(self._interval_s)

    async def _put(self, content: Content) -> None:
        if self._ts is None:
            self._ts = await self._delivery.post(content, "preview")
        else:
            await self._delivery.update(self._ts, content, "preview")
        self._shown = content

    async def _stop_showing(self) -> None:
        """Nothing of the preview is sent after this returns; its message is known if there is
        one."""
        await self._preview.close()
        if self._lost and self._stop is not None:
            self._lost = False
            self._ts = await self._delivery.find(self._stop.request_id, after=self._reply_to)

    async def _remove_preview(self) -> None:
        ts, self._ts = self._ts, None
        if ts is None:
            return
        try:
            async with asyncio.timeout(_DISCARD_S):
                await self._delivery.delete(ts)
        except (ChannelError, TimeoutError) as error:
            log.warning("preview %s was not removed: %s", ts, type(error).__name__)
