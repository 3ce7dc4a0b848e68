"""One reply in the making: "typing", a preview by edits of one message, the final text in place."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from telegram import InlineKeyboardMarkup

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
from channels.chunking import Part, split
from channels.errands import Errands
from channels.errors import ChannelError, NotStored, ReplyRefused, Uncertain, Unreachable
from channels.parts import Finishing, Halt, Parts, Passage
from channels.preview import Preview
from channels.telegram.api import Bot
from channels.telegram.compose import MAX_UNITS, Item, compose, dump, load
from channels.telegram.deliver import Delivery
from channels.telegram.keyboard import keyboard_of, stop_keyboard
from channels.telegram.limiter import Dropped
from channels.telegram.render import render
from channels.text import is_visible

log = logging.getLogger(__name__)

_PRIVATE_INTERVAL_S = 1.6  # of three messages in as many seconds, edits too, one is the answer's
_GROUP_INTERVAL_S = 3.0  # 20 a minute
_TYPING_AFTER_S = 0.3
_TYPING_S = 5.0  # Telegram shows it that long
_STOP_AFTER_S = 1.5  # then the Stop button is there, whether or not there is any text
_DISCARD_S = 30.0  # what takes longer goes on beside
_TIDY_S = 1.0

_NOTHING_YET = Part("…")


class TelegramReply(Finishing):
    """A `ReplySink`. Only one message is ever used as preview; a frame that cannot be sent is
    skipped, and the next one tries again.

    A bot cannot look for its own messages. Where a reply has a journal, its preview therefore begins
    as a bare sign that there will be more: words and the Stop button follow when its id is stored,
    so that a crash in between leaves neither of them behind. So does the button under a first part
    that had no preview.

    Of several parts the first keeps the Stop button until the last one is out; the last one has the
    buttons of the reply.
    """

    def __init__(
        self,
        bot: Bot,
        to: Address,
        *,
        reply_to: str | None,
        stop: StopControl | None,
        errands: Errands,
        journal: ReplyJournal | None = None,
        resumed: Resumed | None = None,
        silent: bool = False,
    ) -> None:
        self._silent = silent  # its preview
        self._delivery = Delivery(bot, to)
        self._reply_to = reply_to
        self._keyboard = None if stop is None else stop_keyboard(stop)
        self._journal = journal
        self._interval_s = _PRIVATE_INTERVAL_S if to.private else _GROUP_INTERVAL_S
        self._preview = Preview(self._frame, interval_s=self._interval_s, limit=MAX_UNITS)
        self._preview_lost = False
        self._message_id: int | None = None  # of the preview, then of the first part
        self._kept = True  # whether the journal has it
        self._stoppable = False  # whether that message has the Stop button
        self._shown: Part | None = None
        self._stop_later = False  # it gets the button when its id is stored
        self._adopted = False  # it was made by an earlier process, and this one has not changed it
        if resumed is not None and resumed.preview_id is not None:
            self._message_id = int(resumed.preview_id)
            self._stoppable = stop is not None
            self._adopted = True
        self._noted: int | None = None  # the part whose note is out, as a message of its own
        self._halt = Halt()
        self._parts = Parts(self._halt, journal)
        self._ended = asyncio.Event()
        if stop is not None:
            self._preview.refresh_in(_STOP_AFTER_S)
        self._errands = errands
        errands.start(self._type(), "typing")

    def show(self, more: str) -> None:
        """Append to the preview."""
        self._preview.show(more)

    async def compose(self, reply: OutboundReply) -> tuple[str, ...]:
        """Its messages; nothing more is shown."""
        await self._stop_showing()
        return tuple(map(dump, compose(reply)))

    async def deliver(self, parts: Sequence[ReplyPart], *, note: str = "") -> Delivered:
        """Deliver, in place of the preview. Of several parts each is sent even if one before was
        refused or is uncertain; that is raised at the end."""
        await self._stop_showing()
        items = [load(part.body) for part in parts]
        self._take_over_first(parts, items)

        async def one(number: int, part: ReplyPart, passage: Passage) -> str | None:
            item = items[number]
            await self._offer_stop()
            if part.state == "again" and note:
                item = await self._with_note(number, item, note, passage)
            return _text_of(await self._deliver(number, item, len(items) > 1, passage))

        await self._parts.send(parts, one)
        texts = any(isinstance(item.content, Part) for item in items)
        keep = texts or bool(items and not self._parts.begun)
        await self._tidy(keep=keep, wait_s=0.0 if self._halt.is_set else _TIDY_S)
        return self._parts.outcome()

    def halt(self) -> None:
        """Leave the rest unsent, also of the preview."""
        self._halt.set()
        self._ended.set()

    async def discard(self) -> None:
        """Remove the preview."""
        await self._stop_showing()
        await self._tidy(keep=False, wait_s=_DISCARD_S)

    def _take_over_first(self, parts: Sequence[ReplyPart], items: Sequence[Item]) -> None:
        """The first of several parts that an earlier process has sent may have the Stop button."""
        first = parts[0].message_id if parts else None
        if first is None or self._parts.begun or not isinstance(items[0].content, Part):
            return
        self._message_id = int(first)
        self._stoppable = len(parts) > 1 and self._keyboard is not None

    async def _deliver(
        self, number: int, item: Item, several: bool, passage: Passage
    ) -> int | None:
        """The message's id. The first of several, if it is a text, has the Stop button until the
        last one is out."""
        first = number == 0
        reply_to = self._reply_to if first else None
        buttons = keyboard_of(item.buttons)
        if isinstance(item.content, OutboundDocument):
            return await self._delivery.send_document(
                item.content,
                passage=passage,
                reply_to=reply_to,
                keyboard=buttons,
                silent=item.silent,
            )
        stop = self._keyboard if first and several else None
        if first and await self._replace_preview(item.content, stop or buttons, passage):
            self._stoppable = stop is not None
            return self._message_id
        at_once = stop if self._journal is None else None
        sent = await self._delivery.send(
            item.content,
            urgency=passage,
            reply_to=reply_to,
            keyboard=at_once or buttons,
            silent=item.silent,
        )
        if first:
            self._message_id, self._stoppable = sent, at_once is not None
            self._stop_later = stop is not at_once
        return sent

    async def _offer_stop(self) -> None:
        """Put the Stop button under a first part that has left without it, since nobody could find
        the button of a message whose id is not stored."""
        message_id = self._message_id
        if not self._stop_later or message_id is None or self._keyboard is None:
            return
        self._stop_later, self._stoppable = False, True
        await self._delivery.offer_buttons(message_id, self._keyboard)

    async def _with_note(self, number: int, item: Item, note: str, passage: Passage) -> Item:
        """The note stands above the part, or where that has no room in a message before it."""
        noted = item.noted(note)
        if noted is not None or self._noted == number:
            return noted or item
        try:
            await self._delivery.send(Part(note), urgency=passage.of_an_edit, silent=item.silent)
        except (ReplyRefused, Uncertain) as error:  # the part itself has still its turn
            log.warning("the note on part %d: %s", number + 1, type(error).__name__)
        self._noted = number
        return item

    async def _replace_preview(
        self, part: Part, keyboard: InlineKeyboardMarkup | None, passage: Passage
    ) -> bool:
        """Whether `part` stands in its place now. Raises `NotStored` as long as nobody else could find
        the message: a second one would come beside it."""
        if self._message_id is None:
            return False
        if not await self._is_kept():
            raise NotStored("which message shows the answer cannot be kept")
        edit = passage.of_an_edit
        if await self._delivery.edit(self._message_id, part, urgency=edit, keyboard=keyboard):
            return True
        self._message_id, self._stoppable = None, False
        return False

    async def _frame(self, text: str) -> None:
        """Bring the preview up to date. Called by `Preview`, never twice at once."""
        part = _first_part(text)
        if self._preview_lost or self._halt.is_set or part == self._shown:
            return
        try:
            await self._put(part)
        except Dropped:
            self._preview.refresh_in(self._interval_s)
        except Unreachable:
            self._preview_lost = True
        except Uncertain:
            # A message without a known id may be there: no second one.
            self._preview_lost = self._message_id is None
        except ChannelError as error:
            log.debug("a preview frame was skipped: %s", type(error).__name__)
            self._preview.refresh_in(self._interval_s)

    async def _put(self, part: Part) -> None:
        if self._message_id is None:
            await self._begin_preview(part)
        if not await self._is_kept():
            self._preview.refresh_in(self._interval_s)
        elif part != self._shown and self._message_id is not None:
            await self._change_preview(self._message_id, part)

    async def _begin_preview(self, part: Part) -> None:
        """As a bare sign, if a journal is to know it first."""
        bare = self._journal is not None
        if self._journal is not None:
            await self._journal.showing()
        begun = await self._delivery.send(
            _NOTHING_YET if bare else part,
            urgency="beginning" if bare else "preview",
            reply_to=self._reply_to,
            keyboard=None if bare else self._keyboard,
            silent=self._silent,
        )
        self._message_id = begun
        if begun is None:
            return
        if self._journal is None:
            self._shown, self._stoppable = part, self._keyboard is not None
        else:
            self._kept = False

    async def _is_kept(self) -> bool:
        """Whether another process would find the preview; where the store failed it is tried again."""
        if not self._kept and self._journal is not None and self._message_id is not None:
            self._kept = await self._journal.previewed(str(self._message_id))
        return self._kept

    async def _change_preview(self, message_id: int, part: Part) -> None:
        edited = await self._delivery.edit(
            message_id,
            part,
            urgency="following" if self._shown is None else "preview",
            keyboard=self._keyboard,
        )
        adopted, self._adopted = self._adopted, False
        if edited:
            self._shown, self._stoppable = part, self._keyboard is not None
            return
        self._message_id, self._stoppable, self._preview_lost = None, False, not adopted
        if adopted:  # an earlier process had taken it away
            await self._put(part)

    async def _type(self) -> None:
        """Show "typing" until there is something to see; not at once, since asking the model comes
        first and an answer may be quicker."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), _TYPING_AFTER_S)
        while self._shown is None and not self._ended.is_set():
            await self._delivery.typing()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), _TYPING_S)

    async def _stop_showing(self) -> None:
        """Nothing of the preview is sent after this returns."""
        self._ended.set()
        await self._preview.close()

    async def _tidy(self, *, keep: bool, wait_s: float) -> None:
        """Take away the preview, or if its text is to be kept its Stop button. What the platform
        does not allow within `wait_s` seconds is done when it does."""
        message_id = self._message_id
        if message_id is None or (keep and not self._stoppable):
            return
        self._message_id, self._stoppable = None, False
        errand = self._errands.start(self._take_away(message_id, keep), "tidying up")
        self._tidying = errand
        await asyncio.wait([errand], timeout=wait_s)

    async def _take_away(self, message_id: int, keep: bool) -> None:
        try:
            if keep:
                await self._delivery.remove_buttons(message_id)
            else:
                await self._delivery.delete(message_id)
        except ChannelError as error:
            log.warning("message %d was not tidied up: %s", message_id, type(error).__name__)


def _first_part(text: str) -> Part:
    if not is_visible(text):
        return _NOTHING_YET
    rendered = render(text)
    first = split(rendered.text, rendered.spans)[0]
    return first if is_visible(first.text) else _NOTHING_YET


def _text_of(message_id: int | None) -> str | None:
    return None if message_id is None else str(message_id)
