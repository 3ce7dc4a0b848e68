"""Replies on their way out: stored in the outbox first, then delivered by one owner, in order at each
destination, and gone on with after a crash.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Literal
from weakref import WeakValueDictionary

from agent.cancel import CancelToken
from agent.messages import Message
from bridge.errors import ErrorReporter
from bridge.texts import Say, Texts
from channels.base import (
    Address,
    Channel,
    Delivered,
    InboundMessage,
    OutboundReply,
    ReplyPart,
    ReplySink,
    Resumed,
    StopControl,
)
from channels.errors import (
    ChannelError,
    ChannelUnavailable,
    NotStored,
    Uncertain,
    Unreachable,
)
from memory.chats.reach import ChatPlace
from memory.conversations import SessionPlace
from memory.errors import StoreDamaged, StoreError
from memory.outbox import NewReply, Outbox, OutboxReply, PartState, ReplyOutcome, StoredPart
from memory.runs import Lost, Runs, Settlement

log = logging.getLogger(__name__)

# Seconds between the tries to deliver an answer while its platform is out of reach; the last repeats.
WAITS_S = (1, 2, 5, 10, 30, 60)
NOTICES_MORE = 10  # tries, a minute apart, to tell a chat that something has not arrived

ACT = "act:"  # how the key of a reply to a command begins; a run's is the run's id

Asks = tuple[int, Sequence[int]]


class ReplyLog:
    """The `ReplyJournal` of one reply: its preview belongs to the run `key`, its parts to the outbox.
    `asks`: the session and the inbox rows of a run that has not begun yet.

    The last part is marked when the reply is closed, in one go: a crash in between leaves it as on its
    way, which is what it then is.
    """

    def __init__(self, runs: Runs, outbox: Outbox, key: str, asks: Asks | None) -> None:
        self._runs = runs
        self._outbox = outbox
        self._key = key
        self._asks = asks
        self._reply: OutboxReply | None = None
        self._last: tuple[int, PartState, str | None] | None = None
        self.preview_id: str | None = None
        self.outcome: ReplyOutcome = "incomplete"

    def stored(self, reply: OutboxReply) -> None:
        """The reply has its row: from now on its parts are marked."""
        self._reply = reply

    @property
    def last(self) -> tuple[int, PartState, str | None] | None:
        """How the last part stands, if it had its turn."""
        return self._last

    def begun(self) -> None:
        """The run has begun: it can be found by its messages."""
        self._asks = None

    async def showing(self) -> None:
        """See `ReplyJournal`."""
        if self._asks is None:
            return
        session, inbox_ids = self._asks
        try:
            await self._runs.take(session, self._key, inbox_ids)
        except StoreError as error:
            raise NotStored(str(error)) from error
        self._asks = None

    async def previewed(self, message_id: str) -> bool:
        """See `ReplyJournal`."""
        self.preview_id = message_id
        return await self._quietly(self._runs.previewed(self._key, message_id))

    async def leaving(self, number: int) -> None:
        """See `ReplyJournal`."""
        if self._reply is None:
            return
        state: PartState = "resending" if self._came_before(number) else "sending"
        try:
            await self._outbox.mark(self._reply.id, number, state)
        except StoreError as error:
            raise NotStored(str(error)) from error

    async def stayed(self, number: int) -> None:
        """See `ReplyJournal`."""
        if self._reply is not None:
            state: PartState = "sending" if self._came_before(number) else "open"
            await self._quietly(self._outbox.mark(self._reply.id, number, state))

    async def ended(
        self, number: int, how: Literal["sent", "uncertain", "refused"], message_id: str | None
    ) -> None:
        """See `ReplyJournal`."""
        if self._reply is None:
            return
        if number == len(self._reply.parts) - 1:
            self._last = (number, how, message_id)
        else:
            await self._quietly(self._outbox.mark(self._reply.id, number, how, message_id))

    async def keep_last(self) -> None:
        """Mark the last part now: the reply is closed later."""
        if self._reply is not None and self._last is not None:
            await self._quietly(self._outbox.mark(self._reply.id, *self._last))

    def _came_before(self, number: int) -> bool:
        return self._reply is not None and self._reply.parts[number].state == "sending"

    async def _quietly(self, write: Awaitable[None]) -> bool:
        """Whether it is stored, or nothing ever will be: nobody goes on with a reply out of a database
        that is set aside."""
        try:
            await write
        except StoreDamaged as error:
            log.warning("the way of reply %s is not stored: %s", self._key, error)
        except StoreError as error:
            log.warning("the way of reply %s is not stored: %s", self._key, error)
            return False
        return True


class Deliveries:
    """Delivers what is in the outbox. Runs' answers keep their order at each destination. `gone` is
    told of a chat that cannot be reached; `beside(work, name)` starts what nobody waits for."""

    def __init__(
        self,
        outbox: Outbox,
        runs: Runs,
        channels: Mapping[str, Channel],
        texts: Texts,
        language: Callable[[InboundMessage], str],
        errors: ErrorReporter,
        gone: Callable[[Address, Unreachable], Awaitable[None]],
        beside: Callable[[Coroutine[Any, Any, None], str], None],
    ) -> None:
        self._gone = gone
        self._beside = beside
        self._outbox = outbox
        self._runs = runs
        self._channels = channels
        self._texts = texts
        self._language = language
        self._errors = errors
        self._order: WeakValueDictionary[Address, asyncio.Lock] = WeakValueDictionary()

    def in_order(self, to: Address) -> asyncio.Lock:
        """What a reply to this destination waits for."""
        return self._order.setdefault(to, asyncio.Lock())

    def log_of(self, key: str, asks: Asks | None = None) -> ReplyLog:
        """A journal for the reply of this run or act."""
        return ReplyLog(self._runs, self._outbox, key, asks)

    async def resume(self, reply: OutboxReply) -> None:
        """Go on with what an earlier process has left."""
        to, place = destination(reply), (reply.reply_to, reply.preview_id, reply.language)
        async with self.in_order(to):
            sink, journal = self._again(to, reply.key, *place)  # it shows something while it waits
            await self.deliver(reply, sink, journal, None)
            await self.close(reply, sink, journal)

    async def tidy_up(self, place: ChatPlace) -> None:
        """A chat can be reached again: Stop buttons that were left there go. Its answers stay stored
        for /resend."""
        for reply in await self._outbox.take_unreachable(place.channel, place.account, place.chat):
            sink, _ = self._again(
                destination(reply), reply.key, reply.reply_to, reply.preview_id, reply.language
            )
            sink.halt()
            try:
                await sink.deliver([_part(part) for part in reply.parts])
            except ChannelError as error:
                log.warning("reply %s was not tidied up: %s", reply.key, error)

    async def end_lost(
        self, lost: Lost, message: InboundMessage, text: str, end: Sequence[tuple[int, Message]]
    ) -> None:
        """Settle a lost run, `message` the newest of those that it was to answer, with its last
        messages: what it had shown is ended with `text`."""
        to, run, language = message.address, lost.run, self._language(message)
        reply_to = message.message_id or None
        sink, journal = self._again(to, run.run_id, reply_to, run.preview_id, language)
        reply = NewReply(
            run.run_id,
            to.private,
            reply_to,
            language,
            await sink.compose(OutboundReply(text)),
            run.preview_id,
        )
        over = Settlement(lost.session, run.run_id, "cancelled", end, ())
        stored = await self._runs.settle(over, reply)
        async with self.in_order(to):
            await self.deliver(stored, sink, journal, None)
            await self.close(stored, sink, journal)

    async def answer(
        self, message: InboundMessage, place: SessionPlace, act: int, said: OutboundReply
    ) -> None:
        """Answer a command, whose row in the inbox is `act`, and close that. `message`: the command."""
        key, to, reply_to = f"{ACT}{act}", message.address, message.message_id or None
        journal = self.log_of(key)
        sink = self._channels[to.channel].open_reply(to, reply_to=reply_to, journal=journal)
        parts, language = await sink.compose(said), self._language(message)
        reply = NewReply(key, to.private, reply_to, language, parts)
        await self._send(place, reply, act, sink, journal)

    async def announce(
        self,
        message: InboundMessage,
        key: str,
        said: OutboundReply,
        store: Callable[[NewReply], Awaitable[int]],
    ) -> None:
        """Tell the chat of something once, whatever happens in between. `store` puts the reply into the
        outbox, in one transaction with what it tells of, and gives its row there."""
        to, reply_to = message.address, message.message_id or None
        journal = self.log_of(key)
        sink = self._channels[to.channel].open_reply(to, reply_to=reply_to, journal=journal)
        parts, language = await sink.compose(said), self._language(message)
        stored = await self._outbox.get(
            await store(NewReply(key, to.private, reply_to, language, parts))
        )
        async with self.in_order(to):
            await self.deliver(stored, sink, journal, None)
            await self.close(stored, sink, journal)

    async def resend(
        self, message: InboundMessage, place: SessionPlace, act: int, session: int
    ) -> bool:
        """Deliver the session's last answer once more, from storage; false when there is none."""
        async with self.in_order(message.address):  # behind an answer that is still going out
            last = await self._outbox.last_answer(session)
            if last is None or not last.parts:
                return False
            key, language = f"{ACT}{act}", self._language(message)
            journal = self.log_of(key)
            channel = self._channels[message.address.channel]
            sink = channel.open_reply(destination(last), reply_to=last.reply_to, journal=journal)
            parts = tuple(part.body for part in last.parts)
            reply = NewReply(key, last.private, last.reply_to, language, parts)
            await self._send(place, reply, act, sink, journal)
        return True

    async def _send(
        self, place: SessionPlace, reply: NewReply, act: int, sink: ReplySink, journal: ReplyLog
    ) -> None:
        stored = await self._outbox.add(place, reply, closes=[act])
        await self.deliver(stored, sink, journal, None)
        await self.close(stored, sink, journal)

    def _again(
        self, to: Address, key: str, reply_to: str | None, preview_id: str | None, language: str
    ) -> tuple[ReplySink, ReplyLog]:
        """A reply that an earlier process has begun."""
        journal = self.log_of(key)
        sink = self._channels[to.channel].open_reply(
            to,
            reply_to=reply_to,
            stop=StopControl(Say(self._texts, language)("stop"), key),
            journal=journal,
            resumed=Resumed(preview_id),
        )
        return sink, journal

    async def deliver(
        self, reply: OutboxReply, sink: ReplySink, journal: ReplyLog, token: CancelToken | None
    ) -> Delivered | None:
        """Deliver a stored reply, as long as it takes; `token` stops it between its parts. What of it
        is out, when it was stopped before its end; else None. It is still to be closed."""
        journal.stored(reply)
        if reply.halted:
            sink.halt()
        watch = None if token is None else asyncio.create_task(_halt_when_stopped(token, sink))
        try:
            delivered, journal.outcome = await self._told(reply, sink, token)
        finally:
            if watch is not None:
                watch.cancel()
        return delivered if journal.outcome == "halted" else None

    async def close(self, reply: OutboxReply, sink: ReplySink, journal: ReplyLog) -> None:
        """The reply is dealt with; its row is closed when its Stop button is gone too, so that a start
        after a crash takes that away."""
        if sink.tidy:
            await self._close(reply, journal)
            return
        await journal.keep_last()
        self._beside(self._close_when_tidy(reply, sink, journal), "closing a reply")

    async def _close_when_tidy(
        self, reply: OutboxReply, sink: ReplySink, journal: ReplyLog
    ) -> None:
        await sink.tidied()
        await self._close(reply, journal)

    async def _close(self, reply: OutboxReply, journal: ReplyLog) -> None:
        """Nothing is left to deliver. As long as that cannot be stored it is tried again: the next
        start would send the last part once more."""
        for wait_s in chain(WAITS_S, repeat(WAITS_S[-1])):
            try:
                return await self._outbox.close(reply.id, journal.outcome, journal.last)
            except StoreDamaged:
                return log.warning("reply %s is out; its row is lost with the database", reply.key)
            except StoreError as error:
                log.warning("reply %s is out, which is not stored yet: %s", reply.key, error)
            await asyncio.sleep(wait_s)
        raise AssertionError("it is tried for ever")

    async def _told(
        self, reply: OutboxReply, sink: ReplySink, token: CancelToken | None
    ) -> tuple[Delivered | None, ReplyOutcome]:
        parts = [_part(part) for part in reply.parts]
        note = Say(self._texts, reply.language)("may_be_twice")
        try:
            delivered = await self._persistently(sink, parts, note, token)
        except Unreachable as error:
            log.info("reply %s: the chat cannot be reached; the answer is stored", reply.key)
            await self._gone(destination(reply), error)
            return None, "unreachable"
        except Exception as error:  # noqa: BLE001 - a border: reported and told, and the run ends
            await self._tell_of(error, reply)
            return None, "incomplete"
        return delivered, "delivered" if delivered.complete else "halted"

    async def _tell_of(self, error: Exception, reply: OutboxReply) -> None:
        """Something of the reply has not arrived, or nobody can say whether it has."""
        error_id = await self._errors.report(error, f"delivery of {reply.key}")
        channel = self._channels[reply.place.channel]
        say = Say(self._texts, reply.language, channel.capabilities)
        # /resend sends answers of the model: what answers a command is had by the command.
        missing = "act_may_be_missing" if reply.key.startswith(ACT) else "may_be_missing"
        text = say(missing if isinstance(error, Uncertain) else "error", id=error_id)
        # What kept the reply from arriving may go on for a while: the word about it may come twice,
        # but it comes.
        for wait_s in (*WAITS_S, *WAITS_S[-1:] * NOTICES_MORE):
            sink = channel.open_reply(destination(reply), reply_to=reply.reply_to)
            if await notify(sink, text, f"reply {reply.key}"):
                return
            await asyncio.sleep(wait_s)

    async def _persistently(
        self, sink: ReplySink, parts: list[ReplyPart], note: str, token: CancelToken | None
    ) -> Delivered:
        """A platform that is out of reach, or a store that cannot write, is waited for."""
        waits = iter(WAITS_S)
        while True:
            try:
                return await sink.deliver(parts, note=note)
            except (ChannelUnavailable, NotStored) as error:
                log.warning("an answer is not out yet: %s; tried again", error)
                asked_s = getattr(error, "retry_after_s", None)
                await _pause(asked_s or next(waits, WAITS_S[-1]), token)


async def notify(sink: ReplySink, text: str, what: str, *, silent: bool = False) -> bool:
    """A short message of its own, kept nowhere; false when another try may bring it there."""
    try:
        await sink.finish(OutboundReply(text, silent=silent))
    except ChannelError as error:
        log.warning("%s: a notice could not be delivered: %s", what, error)
        return not isinstance(error, Uncertain | ChannelUnavailable)
    return True


def _part(part: StoredPart) -> ReplyPart:
    return ReplyPart(part.body, _STATES[part.state], part.message_id)


def destination(reply: OutboxReply) -> Address:
    """Where a stored reply goes."""
    place = reply.place
    return Address(place.channel, place.account, place.chat, place.thread, reply.private)


async def _halt_when_stopped(token: CancelToken, sink: ReplySink) -> None:
    await token.wait()
    sink.halt()


async def _pause(seconds: float, token: CancelToken | None) -> None:
    """Wait; where the reply can be stopped, no longer than until then."""
    if token is None:
        await asyncio.sleep(seconds)
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await token.wait()


_STATES: Mapping[PartState, Literal["open", "again", "sent", "lost"]] = {
    "open": "open",
    "sending": "again",
    "resending": "lost",
    "sent": "sent",
    "uncertain": "lost",
    "refused": "lost",
}
