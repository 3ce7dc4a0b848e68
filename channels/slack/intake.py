"""The way in, one for Socket Mode and signed HTTP: store first, acknowledge then.

What cannot be stored now is not acknowledged, and Slack sends it again. So is what fails in another
way, but not for ever: an event that keeps failing is logged and left behind, since Slack turns an
app's events off when too many are refused.

Bolt's hook before authorization is the only place from which an acknowledgement can wait for the
store: an event listener is acknowledged before it runs, middleware comes after `auth.test`, and an
event that no listener matches is never acknowledged. So this hook answers everything itself, and
Bolt goes no further.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from weakref import WeakValueDictionary

from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse

from channels.base import InboundMessage, Receive, Wanted
from channels.errors import FormRefused, NotStored
from channels.slack.catch_up import KnownPlace
from channels.slack.notice import ResponseUrls
from channels.slack.parse import (
    Bot,
    asker,
    from_history,
    is_bare_mention,
    is_for_us,
    parse,
    people_in,
)
from channels.slack.people import People
from channels.slack.threads import Threads
from channels.slack.twins import Twins
from channels.slack.views import refusal
from channels.text import whole_strings

log = logging.getLogger(__name__)

_NOT_STORED = 503  # any status but 200: no acknowledgement, and Slack sends it again
_LOST = 200
_MOST_FAULTS = 3
_KEPT = 1_000


class Intake:
    """What happens to everything that Slack sends."""

    def __init__(
        self,
        bot: Bot,
        receive: Receive,
        wanted: Wanted,
        *,
        people: People,
        threads: Threads,
        urls: ResponseUrls,
    ) -> None:
        """`wanted`: of what is not for us."""
        self._bot = bot
        self._receive = receive
        self._wanted = wanted
        self._people = people
        self._threads = threads
        self._urls = urls
        self._twins = Twins()
        self._order: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._faults: OrderedDict[str, int] = OrderedDict()  # by the id that stays
        self._newest = datetime.min.replace(tzinfo=UTC)
        self._closed = False
        self.missed: Callable[[InboundMessage], None] = _nobody
        """Hears of each message that could not be stored; not of commands and presses, which are in no
        history."""

    def close(self) -> None:
        """Nothing is stored or acknowledged any more."""
        self._closed = True

    async def take(self, request: AsyncBoltRequest) -> BoltResponse:
        """Store a message, then acknowledge; acknowledge all else at once."""
        body: Mapping[str, Any] = whole_strings(request.body)
        if body.get("type") == "url_verification":
            return BoltResponse(status=200, body={"challenge": body.get("challenge", "")})
        if self._closed:
            return BoltResponse(status=_NOT_STORED)
        message = self._read(body)
        if message is None:
            return BoltResponse(status=200)
        try:
            if not (is_for_us(message) or await self._wanted(message)):
                return BoltResponse(status=200)
            if not await self._told_better(body, message):
                await self._store(body, message)
        except FormRefused as error:
            return BoltResponse(status=200, body=refusal(error.faults))
        except NotStored as error:
            log.warning("%s is not stored yet, and not acknowledged: %s", message.event, error)
            if "event" in body:
                self.missed(message)
            return BoltResponse(status=_NOT_STORED)
        except Exception as error:  # noqa: BLE001 - a border: a fault of ours
            return BoltResponse(status=self._failed(body, message, error))
        return BoltResponse(status=200)

    async def found(self, message: Mapping[str, Any], place: KnownPlace) -> None:
        """Take in what was read from the history. Raises what `receive` raises."""
        body = from_history(whole_strings(message), place.chat)
        read = None if body is None else self._read(body)
        if read is None or not (is_for_us(read) or await self._was_missed(read, place)):
            return  # all else was judged when it was said
        if body is not None and not self._closed:
            await self._store(body, read)

    async def _was_missed(self, message: InboundMessage, place: KnownPlace) -> bool:
        """Whether it is wanted, though not addressed, and nobody could judge it when it was said."""
        since = place.every
        return since is not None and message.sent_at >= since and await self._wanted(message)

    def _failed(self, body: Mapping[str, Any], message: InboundMessage, error: Exception) -> int:
        """The status for what could not be taken in. Commands and presses come only once, and
        without an acknowledgement Slack tells the person."""
        key = str(_id_of(body))
        times = self._faults.pop(key, 0) + 1
        lost = times >= _MOST_FAULTS
        if not lost:
            self._faults[key] = times
            while len(self._faults) > _KEPT:
                self._faults.popitem(last=False)
        # Where it happened and what kind of error: its text may quote the message.
        where = "".join(traceback.format_tb(error.__traceback__))
        what = "is lost" if lost else "is not acknowledged"
        kind = type(error).__name__
        log.error("%s %s: it cannot be taken in (%s)\n%s", message.event, what, kind, where)
        return _LOST if lost else _NOT_STORED

    def _read(self, body: Mapping[str, Any]) -> InboundMessage | None:
        """Slack tells no time of commands and presses: it is ours, but never before that of a
        message which has come already, lest a cancel should seem older than what it is to stop."""
        try:
            now = max(datetime.now(UTC), self._newest)
            message = parse(body, self._bot, {}, now=now, overhear=True)
        except (
            KeyError,
            IndexError,
            TypeError,
            ValueError,
            AttributeError,
            OverflowError,
        ) as error:
            log.warning("event %s cannot be read: %s", _id_of(body), type(error).__name__)
            return None
        if message is not None:
            self._newest = max(self._newest, message.sent_at)
        return message

    async def _told_better(self, body: Mapping[str, Any], message: InboundMessage) -> bool:
        """Whether another event tells the same and may tell more."""
        if is_bare_mention(body):
            return await self._twins.comes(message)
        if message.event.startswith("m:"):
            self._twins.has_come(message)
        return False

    async def _store(self, body: Mapping[str, Any], message: InboundMessage) -> None:
        """Messages of a conversation one after the other, since each envelope has a task of its
        own. Commands and presses never wait."""
        if message.joined or message.left:
            await self._receive(message)
            return
        if not _joins_a_conversation(message):
            await self._receive(await self._complete(body, message))
            return
        lock = self._order.setdefault(message.address.chat, asyncio.Lock())
        async with lock:
            whole = await self._complete(body, message)
            await self._receive(whole)
            self._threads.stored(whole)

    async def _complete(self, body: Mapping[str, Any], message: InboundMessage) -> InboundMessage:
        """With names, and what was said before in its thread."""
        people, before = await asyncio.gather(
            self._people.look_up(people_in(body)), self._before(message)
        )
        whole = parse(body, self._bot, people, now=message.sent_at, overhear=True) or message
        one = asker(message.message_id)
        if one is not None and body.get("response_url"):
            self._urls.keep(one.trigger, str(body["response_url"]))
        if before is None:
            return whole
        return replace(whole, quote="\n\n".join(text for text in (before, whole.quote) if text))

    async def _before(self, message: InboundMessage) -> str | None:
        if not message.addressed or not _joins_a_conversation(message):
            return None
        return await self._threads.before(message, self._bot)


def _nobody(_: InboundMessage) -> None:
    """Nothing reads it again."""


def _joins_a_conversation(message: InboundMessage) -> bool:
    return (
        all(one is None for one in (message.command, message.press, message.form))
        and not message.edited_command
    )


def _id_of(body: Mapping[str, Any]) -> object:
    return body.get("event_id") or body.get("trigger_id") or body.get("type")
