"""The way in, one for Socket Mode and signed HTTP: store first, acknowledge then.

Bolt's hook before authorization is the only place from which an acknowledgement can wait for the
store: an event listener is acknowledged before it runs, middleware comes after `auth.test`, and an
event that no listener matches is never acknowledged. So this hook answers everything itself, and
Bolt goes no further.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from weakref import WeakValueDictionary

from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse

from channels.base import InboundMessage, Receive
from channels.slack.notice import ResponseUrls
from channels.slack.parse import Bot, asker, is_bare_mention, parse, people_in
from channels.slack.people import People
from channels.slack.threads import Threads
from channels.slack.twins import Twins

log = logging.getLogger(__name__)

_NOT_STORED = 503  # any status but 200: no acknowledgement, and Slack sends it again


class Intake:
    """What happens to everything that Slack sends."""

    def __init__(
        self, bot: Bot, receive: Receive, *, people: People, threads: Threads, urls: ResponseUrls
    ) -> None:
        self._bot = bot
        self._receive = receive
        self._people = people
        self._threads = threads
        self._urls = urls
        self._twins = Twins()
        self._order: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._closed = False

    def close(self) -> None:
        """Nothing is stored or acknowledged any more."""
        self._closed = True

    async def take(self, request: AsyncBoltRequest) -> BoltResponse:
        """Store a message, then acknowledge; acknowledge all else at once."""
        body: Mapping[str, Any] = request.body
        if body.get("type") == "url_verification":
            return BoltResponse(status=200, body={"challenge": body.get("challenge", "")})
        if self._closed:
            return BoltResponse(status=_NOT_STORED)
        message = self._read(body)
        if message is not None and not await self._told_better(body, message):
            try:
                await self._store(body, message)
            except Exception:  # a border: whatever failed, the message is not stored
                log.exception("%s was not stored, and is not acknowledged", message.event)
                return BoltResponse(status=_NOT_STORED)
        return BoltResponse(status=200)

    def _read(self, body: Mapping[str, Any]) -> InboundMessage | None:
        try:
            return parse(body, self._bot, {}, now=datetime.now(UTC))
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
        whole = parse(body, self._bot, people, now=message.sent_at) or message
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


def _joins_a_conversation(message: InboundMessage) -> bool:
    return message.command is None and message.press is None and not message.edited_command


def _id_of(body: Mapping[str, Any]) -> object:
    return body.get("event_id") or body.get("trigger_id") or body.get("type")
