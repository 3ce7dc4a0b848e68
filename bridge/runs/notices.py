"""What the bridge says outside of answers: notices, and the marks of messages that have to wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from bridge.runs.stopping import key_of
from bridge.texts import Say, Texts
from channels.base import Button, Channel, InboundMessage, Mark, OutboundReply
from channels.errors import ChannelError, ChannelUnavailable, Uncertain
from memory.errors import StoreError
from memory.inbox import Inbox

# Seconds between the tries of a mark that the platform does not take just now: a flooded chat is often
# open again after a second. To take one away is not so urgent.
MARK_AGAIN_S = (0.5, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
UNMARK_AGAIN_S = (1.0, 5.0, 20.0)

log = logging.getLogger(__name__)

# Seconds between the tries of a sentence that may not have arrived: that it comes twice is better than
# silence.
AGAIN_S = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


@dataclass(slots=True)
class _Marking:
    """A reaction on its way."""

    needless: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def is_needless_within(self, seconds: float) -> bool:
        """Wait so long at most; whether its message waits no more."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.needless.wait()
        return self.needless.is_set()


class Notices:
    """Speaks to the sender of a message, in the chat's language or else in their own."""

    def __init__(
        self,
        channels: Mapping[str, Channel],
        texts: Texts,
        language: Callable[[InboundMessage], str | None],
        quiet: Callable[[InboundMessage], bool],
        inbox: Inbox,
    ) -> None:
        """`language`: that of a message's chat, or None where each person's own counts. `quiet`:
        whether its chat wants no sound now."""
        self._channels = channels
        self._texts = texts
        self._language = language
        self.quiet = quiet
        self._inbox = inbox
        self._marking: dict[tuple[str, str, str], _Marking] = {}  # reactions on their way

    def language(self, message: InboundMessage) -> str:
        """The language in which the message is answered."""
        return self._texts.language(self._language(message), message.sender.language)

    def say(self, message: InboundMessage) -> Say:
        """The catalogue in that language, for the message's channel."""
        channel = self._channels[message.address.channel]
        return Say(self._texts, self.language(message), channel.capabilities)

    async def reply(
        self,
        message: InboundMessage,
        sentence: str,
        buttons: Sequence[Button] = (),
        *,
        silent: bool = False,
    ) -> None:
        """A reply to the message, until it is there; a chat that cannot have it is only logged."""
        silent = silent or self.quiet(message)
        for wait_s in (*AGAIN_S, None):
            told = await self._try(message, sentence, buttons, silent=silent)
            if told is not None or wait_s is None:
                return
            await asyncio.sleep(wait_s)

    async def tell(self, message: InboundMessage, sentence: str) -> bool:
        """One try, and whether it arrived."""
        return bool(await self._try(message, sentence, (), silent=self.quiet(message)))

    async def _try(
        self, message: InboundMessage, sentence: str, buttons: Sequence[Button], *, silent: bool
    ) -> bool | None:
        """Whether it arrived; None when nobody can say, or it may arrive later."""
        channel = self._channels[message.address.channel]
        sink = channel.open_reply(message.address, reply_to=message.message_id or None)
        try:
            delivered = await sink.finish(_reply(sentence, buttons, silent=silent))
        except (Uncertain, ChannelUnavailable) as error:
            log.warning("a notice may not have arrived: %s", error)
            return None
        except ChannelError as error:
            log.warning("a notice could not be delivered: %s", error)
            return False
        return delivered.complete

    async def answer(
        self,
        message: InboundMessage,
        sentence: str | None,
        buttons: Sequence[Button] = (),
        *,
        spent: bool = False,
    ) -> None:
        """Answer a command or press; a press is always answered, so that its button comes to rest."""
        if message.press is not None:
            channel = self._channels[message.address.channel]
            await channel.answer_press(message, sentence or "", spent=spent)
        elif sentence:
            await self.reply(message, sentence, buttons)

    async def replace(self, message: InboundMessage, reply: OutboundReply) -> bool:
        """Put a reply in the place of the message that was pressed; whether that could be."""
        return await self._channels[message.address.channel].replace(message, reply)

    async def waits(self, message: InboundMessage) -> None:
        """Acknowledge a message that has to wait: by a reaction, as soon as the platform takes one, or
        where it does not allow that by a short line."""
        if await self._mark(message, MARK_AGAIN_S) == "refused":
            await self.reply(message, self.say(message)("waiting"))

    async def seen(self, message: InboundMessage) -> bool:
        """Acknowledge it by a reaction; whether the platform took that at once."""
        return await self._mark(message, ()) == "taken"

    async def _mark(self, message: InboundMessage, pauses_s: Sequence[float]) -> Mark:
        place = _place_of(message)
        marking = self._marking[place] = _Marking()
        try:
            mark = await self._try_to_mark(message)
            for pause_s in pauses_s:
                if mark != "later" or await marking.is_needless_within(pause_s):
                    break
                mark = await self._try_to_mark(message)
            return mark
        finally:
            if self._marking.get(place) is marking:
                del self._marking[place]
            marking.ended.set()

    async def _try_to_mark(self, message: InboundMessage) -> Mark:
        """Only a mark that whoever starts after a crash knows of: nobody else would take it away."""
        if not await self._keep(message, marked=True):
            return "later"
        channel = self._channels[message.address.channel]
        return await channel.mark_waiting(message.address, message.message_id, True)

    async def waits_no_more(self, message: InboundMessage) -> None:
        """Take the reaction away; never before it is there. Where the platform does not take that now,
        it is tried again for a while."""
        marking = self._marking.get(_place_of(message))
        if marking is not None:
            marking.needless.set()
            await marking.ended.wait()
        channel = self._channels[message.address.channel]
        for pause_s in (*UNMARK_AGAIN_S, None):
            mark = await channel.mark_waiting(message.address, message.message_id, False)
            if mark != "later" or pause_s is None:
                break
            await asyncio.sleep(pause_s)
        await self._keep(message, marked=False)

    async def _keep(self, message: InboundMessage, *, marked: bool) -> bool:
        """For whoever starts after a crash; whether that could be stored."""
        try:
            await self._inbox.mark(key_of(message), marked)
        except StoreError as error:
            log.warning("a mark of waiting is not stored: %s", error)
            return False
        return True


def _reply(sentence: str, buttons: Sequence[Button], *, silent: bool) -> OutboundReply:
    return OutboundReply(sentence, buttons=tuple(buttons), silent=silent)


def _place_of(message: InboundMessage) -> tuple[str, str, str]:
    return (message.address.channel, message.address.chat, message.message_id)
