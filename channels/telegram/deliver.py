"""The requests of one reply, in one chat and topic, with what each refusal calls for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from telegram import (
    InlineKeyboardMarkup,
    InputFile,
    LinkPreviewOptions,
    MessageEntity,
    ReplyParameters,
)
from telegram.constants import ChatAction
from telegram.error import ChatMigrated, TelegramError

from channels.base import Address, OutboundDocument
from channels.chunking import Part
from channels.errors import ChannelUnavailable, ReplyRefused
from channels.parts import Passage
from channels.telegram.api import Bot
from channels.telegram.errors import Meaning, delivery_failed, meaning_of, name_of
from channels.telegram.limiter import PREVIEWS, Dropped, Urgency

log = logging.getLogger(__name__)

T = TypeVar("T")

# Waits in seconds between attempts of a request that has not left, or that may be repeated.
_AGAIN_S = (0.3, 1.0, 2.0, 4.0, 8.0, 15.0)
_PREVIEW_READ_S = 10.0  # a final reply waits for the preview that is under way, so not for long
_ANSWER_READ_S = 20.0  # giving up too early leaves a reply uncertain
_NO_LINK_PREVIEW = LinkPreviewOptions(is_disabled=True)


class Delivery:
    """Sends and edits in the place of `to`.

    A topic that is gone is left out from then on, in the same chat; a group that moved is followed.
    A refused text is sent once more as plain text. Previews are never tried again; where `urgency`
    is a `Passage`, nothing is once its reply is halted. Raises `ChannelUnavailable`,
    `DeliveryError`, `Dropped` (previews only), and `Halted`.
    """

    def __init__(self, bot: Bot, to: Address) -> None:
        self._bot = bot
        self._chat = int(to.chat)
        self._thread = None if to.thread is None else int(to.thread)

    async def send(
        self,
        part: Part,
        *,
        urgency: Urgency,
        reply_to: str | None = None,
        keyboard: InlineKeyboardMarkup | None = None,
        silent: bool = False,
    ) -> int | None:
        """Send a new message; its id, or None when Telegram sees nothing in the text."""

        async def request(plain: bool) -> int:
            message = await self._bot.send_message(
                self._chat,
                part.text,
                entities=() if plain else _entities(part),
                message_thread_id=self._thread,
                reply_parameters=None if plain else _reply(reply_to),
                reply_markup=keyboard,
                disable_notification=silent,
                link_preview_options=_NO_LINK_PREVIEW,
                read_timeout=_read_timeout(urgency),
                rate_limit_args=urgency,
            )
            return message.message_id

        return await self._insist(request, urgency, repeatable=False)

    async def edit(
        self,
        message_id: int,
        part: Part,
        *,
        urgency: Urgency,
        keyboard: InlineKeyboardMarkup | None = None,
    ) -> bool:
        """Put `part` in place of a message's text; without `keyboard` its buttons go. False when
        the message is gone; one that cannot be edited is deleted, since its buttons would stay."""

        async def request(plain: bool) -> bool:
            try:
                await self._bot.edit_message_text(
                    part.text,
                    self._chat,
                    message_id,
                    entities=() if plain else _entities(part),
                    reply_markup=keyboard,
                    link_preview_options=_NO_LINK_PREVIEW,
                    read_timeout=_read_timeout(urgency),
                    rate_limit_args=urgency,
                )
            except TelegramError as error:
                match meaning_of(error):
                    case Meaning.NOT_MODIFIED:
                        return True
                    case Meaning.MESSAGE_GONE | Meaning.MIGRATED:
                        return False
                    case Meaning.NOT_EDITABLE:
                        await self._remove(message_id)
                        return False
                    case _:
                        raise
            return True

        return bool(await self._insist(request, urgency, repeatable=True))

    async def send_document(
        self,
        document: OutboundDocument,
        *,
        passage: Passage,
        reply_to: str | None,
        keyboard: InlineKeyboardMarkup | None,
        silent: bool,
    ) -> int:
        """Send a text file; its message's id."""
        content = document.text.encode("utf-8", "replace")

        async def request(plain: bool) -> int:
            message = await self._bot.send_document(
                self._chat,
                InputFile(content, filename=document.name),
                message_thread_id=self._thread,
                reply_parameters=None if plain else _reply(reply_to),
                reply_markup=keyboard,
                disable_notification=silent,
                rate_limit_args=passage,
            )
            return message.message_id

        sent = await self._insist(request, passage, repeatable=False)
        if sent is None:
            raise ReplyRefused("Telegram: the file is empty")
        return sent

    async def delete(self, message_id: int) -> None:
        """Delete a message of the bot: at once, or when a flooded chat is open again."""
        await self._tidy(
            lambda urgency: self._bot.delete_message(
                self._chat, message_id, rate_limit_args=urgency
            )
        )

    async def _remove(self, message_id: int) -> None:
        try:
            await self._bot.delete_message(self._chat, message_id, rate_limit_args="control")
        except (TelegramError, Dropped) as error:
            log.warning("message %d stays as it is: %s", message_id, type(error).__name__)

    async def remove_buttons(self, message_id: int) -> None:
        """Leave a message of the bot without buttons: at once, or when a flooded chat is open
        again."""
        await self._tidy(
            lambda urgency: self._bot.edit_message_reply_markup(
                self._chat, message_id, rate_limit_args=urgency
            )
        )

    async def offer_buttons(self, message_id: int, keyboard: InlineKeyboardMarkup) -> None:
        """Put buttons under a message of the bot, at once; nothing happens when that fails."""
        try:
            await self._bot.edit_message_reply_markup(
                self._chat, message_id, reply_markup=keyboard, rate_limit_args="control"
            )
        except (TelegramError, Dropped) as error:
            log.debug("buttons were not shown: %s", type(error).__name__)

    async def typing(self) -> None:
        """Show "typing" for 5 seconds; nothing happens when that fails."""
        try:
            await self._bot.send_chat_action(
                self._chat,
                ChatAction.TYPING,
                message_thread_id=self._thread,
                rate_limit_args="typing",
            )
        except (TelegramError, Dropped) as error:
            log.debug("typing was not shown: %s", type(error).__name__)

    async def _tidy(self, request: Callable[[Urgency], Awaitable[object]]) -> None:
        try:
            try:
                await self._again(lambda: request("control"), Passage(), repeatable=True)
            except Dropped:
                await self._again(lambda: request("answer"), Passage(), repeatable=True)
        except TelegramError as error:
            if meaning_of(error) not in (Meaning.MESSAGE_GONE, Meaning.NOT_MODIFIED):
                raise delivery_failed(error) from None

    async def _insist(
        self, request: Callable[[bool], Awaitable[T]], urgency: Urgency, *, repeatable: bool
    ) -> T | None:
        """Run `request(plain)`, and again as each refusal calls for, each kind of them once."""
        passage = urgency if isinstance(urgency, Passage) else Passage()
        plain = moved = False
        while True:
            try:
                if urgency in PREVIEWS:
                    return await request(plain)
                return await self._again(lambda: request(plain), passage, repeatable=repeatable)  # noqa: B023
            except TelegramError as error:
                meaning = meaning_of(error)
                if meaning is Meaning.EMPTY:
                    return None
                if meaning is Meaning.THREAD_GONE and self._thread is not None:
                    self._thread = None
                elif isinstance(error, ChatMigrated) and not moved:
                    self._chat, moved = error.new_chat_id, True
                elif meaning is Meaning.REFUSED and not plain:
                    log.warning("a message was refused and is sent as plain text")
                    log.debug("refused: %s", error.message)
                    plain = True
                elif repeatable and meaning is Meaning.UNCERTAIN:  # an edit: until it succeeds
                    raise ChannelUnavailable(
                        f"Telegram cannot be reached ({name_of(error)})"
                    ) from None
                else:
                    raise delivery_failed(error) from None
                await passage.stayed()

    async def _again(
        self, request: Callable[[], Awaitable[T]], passage: Passage, *, repeatable: bool
    ) -> T:
        """Run `request` until it reaches Telegram, a limited number of times."""
        for wait_s in (*_AGAIN_S, None):
            passage.check()
            try:
                return await request()
            except TelegramError as error:
                meaning = meaning_of(error)
                if meaning is Meaning.NOT_SENT:
                    await passage.stayed()
                elif meaning is not Meaning.UNCERTAIN or not repeatable:
                    raise
                if wait_s is None:
                    raise
            async with passage.interruptible():
                await asyncio.sleep(wait_s)
        raise AssertionError("the last try returns or raises")


def _entities(part: Part) -> list[MessageEntity]:
    return [
        MessageEntity(span.type, span.offset, span.length, url=span.url, language=span.language)
        for span in part.spans
    ]


def _reply(message_id: str | None) -> ReplyParameters | None:
    if not message_id:
        return None
    return ReplyParameters(int(message_id), allow_sending_without_reply=True)


def _read_timeout(urgency: Urgency) -> float:
    return _PREVIEW_READ_S if urgency in PREVIEWS else _ANSWER_READ_S
