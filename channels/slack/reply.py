"""One reply in the making: a preview by updates of one message, the final text in its place."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from channels.base import (
    Address,
    Delivered,
    OutboundDocument,
    OutboundReply,
    ReplyJournal,
    ReplyPart,
    Resumed,
    StopControl,
)
from channels.errands import Errands
from channels.errors import (
    ChannelError,
    ChannelUnavailable,
    ReplyRefused,
    Uncertain,
    Unreachable,
)
from channels.parts import Finishing, Halt, Parts, Passage
from channels.preview import Preview
from channels.slack.api import SlackApi
from channels.slack.deliver import REPEATS_S, Delivery
from channels.slack.errors import MessageGone
from channels.slack.notice import SlackNotice
from channels.slack.pace import Dropped
from channels.slack.render import (
    POST_UNITS,
    UPDATE_UNITS,
    Content,
    dump,
    load,
    pieces,
    preview,
)

log = logging.getLogger(__name__)

_DISCARD_S = 30.0  # what takes longer goes on beside
_TIDY_S = 1.0


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


class SlackReply(Finishing):
    """A `ReplySink`. Only one message is ever used as preview; a frame that cannot be sent is
    skipped, and the next one tries again.

    Of several parts the first keeps the Stop button until the last one is out. `otherwise` takes the
    reply where the bot is no member. A preview whose `ts` is not known is found by its Stop button.
    """

    def __init__(
        self,
        api: SlackApi,
        to: Address,
        *,
        reply_to: str | None,
        stop: StopControl | None,
        errands: Errands,
        otherwise: SlackNotice | None = None,
        journal: ReplyJournal | None = None,
        resumed: Resumed | None = None,
        timing: ReplyTiming = DEFAULT_TIMING,
    ) -> None:
        self._delivery = Delivery(api, to, repeats_s=timing.repeats_s)
        self._reply_to = reply_to
        self._stop = stop
        self._errands = errands
        self._otherwise = otherwise
        self._elsewhere = False  # `otherwise` has taken over
        self._interval_s = timing.interval_s
        self._frame_s = timing.frame_s
        self._preview = Preview(self._frame, interval_s=timing.interval_s, limit=UPDATE_UNITS)
        self._journal = journal
        # Of the preview, while nothing has taken its place.
        self._ts: str | None = None if resumed is None else resumed.preview_id
        self._first: tuple[str, Content] | None = None  # the first part, if it has the Stop button
        self._lost = False  # one was posted, and its `ts` is not known
        self._unknown = resumed is not None and self._ts is None  # there may be one
        self._stale: list[str] = []  # others with our Stop button
        self._adopted = resumed is not None  # this process has not changed it
        self._hopeless = False
        self._tried: Content | None = None  # the newest frame, arrived or not, without its button
        self._shown: Content | None = None
        self._halt = Halt()
        self._parts = Parts(self._halt, journal)
        if stop is not None:
            self._preview.refresh_in(timing.stop_after_s)

    def show(self, more: str) -> None:
        """Append to the preview."""
        self._preview.show(more)

    async def compose(self, reply: OutboundReply) -> tuple[str, ...]:
        """Its messages, the first of a size that can take the preview's place."""
        await self._stop_showing()
        if self._otherwise is not None and self._ts is None:  # of a size that it takes too
            return await self._otherwise.compose(reply)
        first_units = POST_UNITS if self._ts is None else UPDATE_UNITS
        parts = pieces(reply.markdown, reply.buttons, first_units=first_units)
        return (*map(dump, parts), *map(dump, reply.documents))

    async def deliver(self, parts: Sequence[ReplyPart], *, note: str = "") -> Delivered:
        """Deliver, the first part in place of the preview. Of several parts each is sent even if
        one before was refused or is uncertain; that is raised at the end."""
        await self._stop_showing()
        if self._otherwise is not None and self._elsewhere:
            return await self._otherwise.deliver(parts, note=note)
        items = [load(part.body) for part in parts]
        await self._take_over_first(parts, items)

        async def one(number: int, part: ReplyPart, passage: Passage) -> str | None:
            item = items[number]
            above = note if part.state == "again" else ""
            if isinstance(item, OutboundDocument):
                await self._delivery.upload(item, passage, note=above)
                return None
            noted = item.noted(above) if above else item
            return await self._deliver(number, noted, len(items) > 1, passage)

        try:
            await self._parts.send(parts, one)
        except Unreachable:
            if self._otherwise is None:
                raise
            self._elsewhere = True
            return await self._otherwise.deliver(parts, note=note)
        keep = bool(items) and not self._parts.begun
        await self._tidy(keep=keep, wait_s=0.0 if self._halt.is_set else _TIDY_S)
        return self._parts.outcome()

    def owns(self, ts: str) -> bool:
        """Whether this message is still to change."""
        return ts == self._ts or (self._first is not None and ts == self._first[0])

    def halt(self) -> None:
        """Leave the rest unsent, also of the preview."""
        self._halt.set()
        if self._otherwise is not None:
            self._otherwise.halt()

    async def discard(self) -> None:
        """Remove the preview."""
        await self._stop_showing()
        await self._tidy(keep=False, wait_s=_DISCARD_S)

    async def _take_over_first(
        self, parts: Sequence[ReplyPart], items: Sequence[Content | OutboundDocument]
    ) -> None:
        """The first of several parts that an earlier process has sent may have the Stop button; one
        of which nobody knows whether it was sent is found by it."""
        if self._parts.begun or not parts or not isinstance(items[0], Content):
            return
        if parts[0].state == "again" and len(parts) > 1:
            await self._look_for_preview()
        first = parts[0].message_id
        if first is not None:
            self._first = (first, items[0]) if len(parts) > 1 else None
            self._ts = None if self._ts == first else self._ts

    async def _deliver(self, number: int, item: Content, several: bool, passage: Passage) -> str:
        """In place of the preview; refused there, as a new message, which takes more than an
        update does; refused again, once more as plain text. The message's `ts`."""
        first = number == 0
        shown = item.stoppable(self._stop) if first and several else item
        if first and self._ts is not None:
            replaced = await self._replace_preview(self._ts, shown, item, passage)
            if replaced is not None:
                return replaced
        try:
            ts = await self._delivery.post(shown, passage)
        except ReplyRefused as error:
            log.warning("once more as plain text: %s", error)
            await passage.stayed()
            return await self._delivery.post(item.plain, passage)
        self._remember(ts, shown, item)
        return ts

    async def _replace_preview(
        self, ts: str, shown: Content, item: Content, passage: Passage
    ) -> str | None:
        """The preview's `ts`; None when it cannot have this in its place."""
        try:
            await self._delivery.update(ts, shown, passage.of_an_edit)
        except MessageGone:
            other = await self._instead_of(ts)
            return other and await self._replace_preview(other, shown, item, passage)
        except ReplyRefused as error:
            log.warning("in a new message instead of the preview: %s", error)
            return None  # the preview is removed at the end
        self._ts = None
        self._remember(ts, shown, item)
        return ts

    def _remember(self, ts: str, shown: Content, item: Content) -> None:
        """What becomes of a message that has a Stop button for now."""
        if shown != item:
            self._first = (ts, item)

    async def _frame(self, text: str) -> None:
        """Bring the preview up to date. Called by `Preview`, never twice at once."""
        if self._unknown:
            await self._look_for_preview()
        bare = preview(text)
        content = bare.stoppable(self._stop)
        if self._lost or self._hopeless or self._halt.is_set or content == self._shown:
            return
        if self._unknown:
            self._preview.refresh_in(self._interval_s)
            return
        self._tried = bare
        try:
            async with asyncio.timeout(self._frame_s):
                await self._put(content)
        except Dropped:
            self._preview.refresh_in(self._interval_s)
        except (Unreachable, ReplyRefused) as error:
            log.info("no preview: %s", error)
            self._hopeless = True
        except (Uncertain, TimeoutError):
            self._lost = self._ts is None  # a message whose ts we do not know: no second one
        except ChannelError as error:
            log.debug("a preview frame was skipped: %s", error)
            self._preview.refresh_in(self._interval_s)

    async def _put(self, content: Content) -> None:
        if self._ts is not None:
            await self._change(self._ts, content)
        if self._unknown:
            self._preview.refresh_in(self._interval_s)
            return
        if self._ts is None:
            if self._journal is not None:
                await self._journal.showing()
            self._ts = await self._delivery.post(content, "preview")
            if self._journal is not None:
                await self._journal.previewed(self._ts)
        self._adopted = False
        self._shown = content

    async def _change(self, ts: str, content: Content) -> None:
        """One that an earlier process had taken away is begun anew."""
        try:
            await self._delivery.update(ts, content, "preview")
        except MessageGone:
            if not self._adopted:
                raise
            other = await self._instead_of(ts)
            if other is not None:
                await self._change(other, content)

    async def _instead_of(self, ts: str) -> str | None:
        """What we knew as the preview cannot be one any more. An earlier process may have begun another
        and died before that was kept: its `ts`."""
        self._stale.append(ts)
        self._ts = None
        if self._adopted:
            self._adopted, self._unknown = False, True
            await self._look_for_preview()
        return self._ts

    async def _stop_showing(self) -> None:
        """Nothing of the preview is sent after this returns; its message is known if there is
        one."""
        await self._preview.close()
        if self._lost or self._unknown:
            await self._look_for_preview()

    async def _look_for_preview(self) -> None:
        """One whose `ts` is not known has our Stop button. Where that cannot be seen now, it is
        looked for again."""
        found: list[str] = []
        if self._stop is not None:
            try:
                found = await self._delivery.find(self._stop.request_id, after=self._reply_to)
            except (ChannelUnavailable, Uncertain) as error:
                log.info("a preview cannot be looked for: %s", error)
                return
            except ChannelError as error:
                log.info("no preview can be looked for: %s", error)
        self._lost = self._unknown = False
        known = {*self._stale, *(self._first or ())[:1]}
        others = [ts for ts in found if ts not in known]
        if others:
            self._ts, *more = others
            self._stale += more
            if self._journal is not None:  # its button goes, and it could not be found again
                await self._journal.previewed(self._ts)

    async def _tidy(self, *, keep: bool, wait_s: float) -> None:
        """Take away the Stop button, and the preview, or if its text is to be kept its button. What
        Slack does not allow within `wait_s` seconds is done when it does."""
        if self._lost or self._unknown:
            await self._look_for_preview()
        final: dict[str, Callable[[], Awaitable[None]]] = {
            ts: partial(self._delivery.delete, ts) for ts in self._stale
        }
        if self._first is not None:
            ts, content = self._first
            final[ts] = partial(self._delivery.update, ts, content, "answer")
        if self._ts is not None:
            final[self._ts] = self._end_of_preview(self._ts, keep=keep)
        self._stale, self._first, self._ts = [], None, None
        if final:
            errand = self._errands.start(self._take_away(final), "tidying up")
            self._tidying = errand
            await asyncio.wait([errand], timeout=wait_s)

    def _end_of_preview(self, ts: str, *, keep: bool) -> Callable[[], Awaitable[None]]:
        if not keep:
            return partial(self._delivery.delete, ts)
        if self._tried is None:  # all that it shows is of an earlier process
            return partial(self._delivery.remove_buttons, ts)
        return partial(self._delivery.update, ts, self._tried, "answer")

    async def _take_away(self, final: dict[str, Callable[[], Awaitable[None]]]) -> None:
        for ts, act in final.items():
            try:
                await act()
            except MessageGone:
                log.debug("message %s is gone already", ts)
            except ChannelError as error:
                log.warning("message %s was not tidied up: %s", ts, type(error).__name__)
