"""One reply in the making: "typing", a preview by edits of one message, the final text in place."""

from __future__ import annotations

import asyncio
import logging
import unicodedata
from contextlib import suppress

from telegram import InlineKeyboardButton, InlineKeyboardMarkup

from channels.base import Address, OutboundDocument, OutboundReply, StopControl
from channels.chunking import Part, split
from channels.errors import ChannelError, ReplyRefused, Uncertain, Unreachable
from channels.preview import Preview
from channels.telegram.api import Bot
from channels.telegram.deliver import Delivery
from channels.telegram.limiter import Dropped
from channels.telegram.render import render

log = logging.getLogger(__name__)

MAX_UNITS = 4096  # core.telegram.org/bots/api#sendmessage
_MAX_CALLBACK_BYTES = 64  # core.telegram.org/bots/api#inlinekeyboardbutton

_PRIVATE_INTERVAL_S = 1.0  # one message a second in a chat, edits too
_GROUP_INTERVAL_S = 3.0  # 20 a minute
_TYPING_AFTER_S = 0.3
_TYPING_S = 5.0  # Telegram shows it that long
_STOP_AFTER_S = 1.5  # then the Stop button is there, whether or not there is any text
_DISCARD_S = 30.0

_NOTHING_YET = Part("…")


class TelegramReply:
    """A `ReplySink`. Only one message is ever used as preview; a frame that cannot be sent is
    skipped, and the next one tries again.

    `finish` may be called again with the same reply after it raised `ChannelUnavailable`: it goes
    on with what has not been sent.
    """

    def __init__(
        self, bot: Bot, to: Address, *, reply_to: str | None, stop: StopControl | None
    ) -> None:
        self._delivery = Delivery(bot, to)
        self._reply_to = reply_to
        self._keyboard = None if stop is None else _stop_keyboard(stop)
        self._interval_s = _PRIVATE_INTERVAL_S if to.private else _GROUP_INTERVAL_S
        self._preview = Preview(self._frame, interval_s=self._interval_s, limit=MAX_UNITS)
        self._preview_lost = False
        self._message_id: int | None = None
        self._shown: Part | None = None
        self._sent = 0  # parts and documents of the final reply
        self._ended = asyncio.Event()
        if stop is not None:
            self._preview.refresh_in(_STOP_AFTER_S)
        self.typing = asyncio.create_task(self._type(), name="typing")

    def show(self, more: str) -> None:
        """Append to the preview."""
        self._preview.show(more)

    async def finish(self, reply: OutboundReply) -> None:
        """Deliver, in place of the preview. Of several parts each is sent even if one before was
        refused or is uncertain; that is raised at the end."""
        await self._stop_showing()
        rendered = render(reply.markdown)
        parts = [part for part in split(rendered.text, rendered.spans) if _is_visible(part.text)]
        items: list[Part | OutboundDocument] = [*parts, *reply.documents]
        trouble: ReplyRefused | Uncertain | None = None
        for index in range(self._sent, len(items)):
            try:
                await self._deliver(items[index], first=index == 0, silent=reply.silent)
            except (ReplyRefused, Uncertain) as error:
                log.warning("part %d of %d: %s", index + 1, len(items), type(error).__name__)
                trouble = trouble or error
            self._sent = index + 1
        if not parts:
            await self._remove_preview()
        if trouble is not None:
            raise trouble

    async def discard(self) -> None:
        """Remove the preview."""
        await self._stop_showing()
        await self._remove_preview()

    async def _deliver(self, item: Part | OutboundDocument, *, first: bool, silent: bool) -> None:
        reply_to = self._reply_to if first else None
        if isinstance(item, OutboundDocument):
            await self._delivery.send_document(item, reply_to=reply_to, silent=silent)
            return
        if first and self._message_id is not None:
            if await self._delivery.edit(self._message_id, item, urgency="answer"):
                return
            self._message_id = None
        await self._delivery.send(item, urgency="answer", reply_to=reply_to, silent=silent)

    async def _frame(self, text: str) -> None:
        """Bring the preview up to date. Called by `Preview`, never twice at once."""
        part = _first_part(text)
        if self._preview_lost or part == self._shown:
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
            self._message_id = await self._delivery.send(
                part, urgency="preview", reply_to=self._reply_to, keyboard=self._keyboard
            )
        elif not await self._delivery.edit(
            self._message_id, part, urgency="preview", keyboard=self._keyboard
        ):
            self._message_id, self._preview_lost = None, True
        self._shown = part

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

    async def _remove_preview(self) -> None:
        message_id, self._message_id = self._message_id, None
        if message_id is None:
            return
        try:
            async with asyncio.timeout(_DISCARD_S):
                await self._delivery.delete(message_id)
        except (ChannelError, TimeoutError) as error:
            log.warning("preview %d was not removed: %s", message_id, type(error).__name__)


def _first_part(text: str) -> Part:
    rendered = render(text)
    parts = split(rendered.text, rendered.spans)
    return parts[0] if parts and _is_visible(parts[0].text) else _NOTHING_YET


def _is_visible(text: str) -> bool:
    """Telegram refuses a text of nothing but white space and invisible format characters."""
    return any(not sign.isspace() and unicodedata.category(sign) != "Cf" for sign in text)


def _stop_keyboard(stop: StopControl) -> InlineKeyboardMarkup:
    data = f"stop:{stop.request_id}"
    if len(data.encode()) > _MAX_CALLBACK_BYTES:
        raise ValueError(f"a request id of at most {_MAX_CALLBACK_BYTES - 5} bytes fits a button")
    return InlineKeyboardMarkup([[InlineKeyboardButton(stop.label, callback_data=data)]])
