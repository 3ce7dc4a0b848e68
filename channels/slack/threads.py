"""What was said in a thread before the bot was called into it.

A "yes" below somebody's message means nothing without that message. Only a thread that the bot has
not yet answered in is read: of others the conversation is known.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import Any

from channels.base import InboundMessage
from channels.slack.api import SlackApi
from channels.slack.errors import FAILURES, code_of
from channels.slack.markup import mentioned, readable
from channels.slack.parse import Bot
from channels.slack.people import People

log = logging.getLogger(__name__)

_MESSAGES = 15  # what Slack gives apps outside its directory at once
_CHARACTERS = 4_000
_KEPT = 2_000  # threads known to be conversations with the bot


class Threads:
    """`wait_s`: how long a message waits for its thread, in seconds."""

    def __init__(self, api: SlackApi, people: People, *, wait_s: float = 1.0) -> None:
        self._api = api
        self._people = people
        self._wait_s = wait_s
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()

    async def before(self, message: InboundMessage, bot: Bot) -> str | None:
        """The thread's first messages before this one, a line each, cut at 4,000 characters; None
        where there are none, they are known, or do not come in time. Never raises."""
        thread = message.address.thread
        if thread is None or thread == message.message_id:
            return None
        if (message.address.chat, thread) in self._known:
            return None
        try:
            async with asyncio.timeout(self._wait_s):
                return await self._read(message, bot)
        except FAILURES as error:
            log.info("thread %s was not read: %s", thread, code_of(error))
            return None

    def stored(self, message: InboundMessage) -> None:
        """The message is in the conversation with the bot, and what was said before it too."""
        thread = message.address.thread
        if thread is None or not message.addressed:
            return
        self._known[message.address.chat, thread] = None
        self._known.move_to_end((message.address.chat, thread))
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)

    async def _read(self, message: InboundMessage, bot: Bot) -> str | None:
        thread = message.address.thread
        answer = await self._api.read(
            "conversations.replies",
            {
                "channel": message.address.chat,
                "ts": thread,
                "latest": message.message_id,
                "limit": _MESSAGES,
            },
        )
        earlier = [one for one in answer.get("messages", ()) if one.get("ts") != message.message_id]
        if any(one.get("user") == bot.user_id and one.get("ts") != thread for one in earlier):
            return None
        return await self._lines(earlier, bot)

    async def _lines(self, messages: list[dict[str, Any]], bot: Bot) -> str | None:
        texts = [str(one.get("text") or "") for one in messages]
        writers = [str(one.get("user") or one.get("bot_id") or "?") for one in messages]
        ids = [w for w in writers if w.startswith(("U", "W"))]
        people = await self._people.look_up(
            dict.fromkeys([*ids, *(u for text in texts for u in mentioned(text))])
        )
        names = {user: person.name for user, person in people.items()} | {bot.user_id: "you"}
        lines = [
            f"{names.get(writer, 'Somebody')}: {readable(text, names)}"
            for writer, text in zip(writers, texts, strict=True)
            if text.strip()
        ]
        return "\n".join(lines)[:_CHARACTERS] or None
