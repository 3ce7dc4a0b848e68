"""How fast requests may leave: one limiter behind every request of the bot.

Telegram's limits (core.telegram.org/bots/faq, "My bot is hitting limits"): 30 messages a second in
all, one a second in a chat with short bursts, 20 a minute in a group. `rate_limit_args` of a
request says what it is:

- `answer` waits its turn, and after a refusal for flooding tries again; a `Passage` means the same,
  until its reply is halted: that ends the wait with `Halted`;
- `preview` and `typing` never wait: they are dropped when less than a quarter of a bucket would be
  left, in a group less than two messages, so that answers always find room: "Stopped." and what it
  has dropped too;
- `beginning` is a preview that says nothing yet: it needs room for the one that follows it as well;
- `following` is that one, which brings the Stop button: all room that is there is its own;
- `control` (buttons that are taken away) goes out at once, and takes room that is there;
- `reaction` goes out at once too. It is no message, as typing is none: they take no room in a chat;
- what names no chat (the answer to a press) goes out at once.

A refusal for flooding closes that chat alone until its time is over; what does not wait is dropped
there until then. A message to a group that has another id by now goes there (`moves`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal

from aiolimiter import AsyncLimiter
from telegram.error import ChatMigrated, TelegramError
from telegram.ext import BaseRateLimiter

from channels.parts import Passage
from channels.telegram.errors import Meaning, meaning_of, wait_asked_for
from channels.telegram.moves import Moves
from channels.telegram.window import Window

log = logging.getLogger(__name__)

Rank = Literal["answer", "preview", "beginning", "following", "typing", "control", "reaction"]
Urgency = Rank | Passage
Result = bool | dict[str, Any] | list[dict[str, Any]]
Send = Callable[..., Coroutine[Any, Any, Result]]

PREVIEWS: Collection[Urgency] = ("preview", "beginning", "following")

_SHARE_FOR_ANSWERS = 0.25
_CHAT_PERIOD_S = 3.2  # the rest is for requests that travel for different times
_GROUP_PERIOD_S = 20.0
_KEPT_IN_GROUPS = 2.0  # messages
_IDLE_S = 120.0  # longer than the longest bucket takes to empty
_SWEEP_FROM = 256  # chats; below that nothing is thrown away


class Dropped(Exception):
    """A request that does not wait was not sent, so that answers are not held up, or was refused
    for flooding."""


def _chat_buckets(group: bool) -> list[AsyncLimiter | Window]:
    # Three in any three seconds: one a second, with the shortest burst in which a preview begins,
    # shows its first words, and is followed by the answer at once. A leaky bucket of three would let
    # five through, and the last ones be refused. It lets its size and its flow through in one period:
    # five in twenty seconds are never more than 20 in any minute. The window is the last to be waited
    # for, so that it counts when a request leaves.
    per_chat = Window(3, _CHAT_PERIOD_S)
    return [AsyncLimiter(5, _GROUP_PERIOD_S), per_chat] if group else [per_chat]


@dataclass(slots=True)
class _Chat:
    buckets: list[AsyncLimiter | Window]
    closed_until: float = 0.0
    used_at: float = 0.0
    requests: int = 0
    answers: int = 0  # of them, that wait for their turn
    order: asyncio.Lock = field(default_factory=asyncio.Lock)


class Limiter(BaseRateLimiter[Urgency]):
    """Passes, delays or drops the requests of one bot, in one event loop."""

    __slots__ = ("_chats", "_moves", "_overall", "_sweep_at")

    def __init__(self, moves: Moves) -> None:
        self._moves = moves
        self._overall = AsyncLimiter(30, 1)
        self._chats: dict[str, _Chat] = {}
        self._sweep_at = _SWEEP_FROM

    async def initialize(self) -> None:
        """Nothing to prepare."""

    async def shutdown(self) -> None:
        """Nothing to close."""

    async def process_request(
        self,
        callback: Send,
        args: Any,
        kwargs: dict[str, Any],
        endpoint: str,
        data: dict[str, Any],
        rate_limit_args: Urgency | None,
    ) -> Result:
        """Send when it is this request's turn. Raises `Dropped`, `Halted`, and what the request
        raises."""
        asked = data.get("chat_id")
        redirected = self._moves.redirect(data)
        try:
            answer = await self._in_turn(callback, args, kwargs, data, rate_limit_args)
        except ChatMigrated as error:
            if redirected or not self._moves.learn(data, error.new_chat_id):
                raise
            redirected = True
            answer = await self._in_turn(callback, args, kwargs, data, rate_limit_args)
        if redirected:
            self._moves.sent(asked, answer)
        return _what_is_read(endpoint, answer)

    async def _in_turn(
        self,
        callback: Send,
        args: Any,
        kwargs: dict[str, Any],
        data: dict[str, Any],
        rate_limit_args: Urgency | None,
    ) -> Result:
        chat_id = data.get("chat_id")
        if chat_id is None or rate_limit_args is None:
            return await callback(*args, **kwargs)
        chat = self._chat(str(chat_id))
        chat.requests += 1
        try:
            if rate_limit_args == "answer":
                return await self._answer(chat, Passage(), callback, args, kwargs)
            if isinstance(rate_limit_args, Passage):
                return await self._answer(chat, rate_limit_args, callback, args, kwargs)
            self._check(chat, rate_limit_args)
            await self._take_what_is_there(chat, rate_limit_args)
            return await self._send(chat, callback, args, kwargs)
        finally:
            chat.requests -= 1
            chat.used_at = _now()

    async def _answer(
        self, chat: _Chat, passage: Passage, callback: Send, args: Any, kwargs: dict[str, Any]
    ) -> Result:
        while True:
            await self._turn_of(chat, passage)
            await passage.leaving()
            try:
                return await self._send(chat, callback, args, kwargs)
            except Dropped:
                log.debug("a flooded chat: the answer waits")
                await passage.stayed()

    async def _turn_of(self, chat: _Chat, passage: Passage) -> None:
        chat.answers += 1
        try:
            async with passage.interruptible(), chat.order:
                if (wait := chat.closed_until - _now()) > 0:
                    await asyncio.sleep(wait)
                await self._take(chat)
        finally:
            chat.answers -= 1

    def _check(self, chat: _Chat, urgency: Urgency) -> None:
        """Raises `Dropped` unless this may go out now."""
        if chat.closed_until > _now():
            raise Dropped(urgency)
        if urgency in ("control", "reaction"):
            return
        if chat.answers:  # whatever room there is will be theirs
            raise Dropped(urgency)
        for bucket in (self._overall, *chat.buckets):
            if not bucket.has_capacity(_needed(urgency, bucket)):
                raise Dropped(urgency)

    async def _take(self, chat: _Chat) -> None:
        for bucket in (*chat.buckets, self._overall):
            await bucket.acquire()

    async def _take_what_is_there(self, chat: _Chat, urgency: Urgency) -> None:
        no_message = urgency in ("reaction", "typing")
        for bucket in (*(() if no_message else chat.buckets), self._overall):
            if bucket.has_capacity():
                await bucket.acquire()  # returns at once

    async def _send(self, chat: _Chat, callback: Send, args: Any, kwargs: dict[str, Any]) -> Result:
        try:
            return await callback(*args, **kwargs)
        except TelegramError as error:
            if meaning_of(error) is not Meaning.FLOOD:
                raise
            chat.closed_until = max(chat.closed_until, _now() + wait_asked_for(error))
            raise Dropped(Meaning.FLOOD) from None

    def _chat(self, chat_id: str) -> _Chat:
        chat = self._chats.get(chat_id)
        if chat is None:
            self._sweep()
            chat = self._chats[chat_id] = _Chat(_chat_buckets(group=chat_id.startswith("-")))
        return chat

    def _sweep(self) -> None:
        """Forget idle chats, each time that their number has doubled."""
        if len(self._chats) < self._sweep_at:
            return
        now = _now()
        self._chats = {
            chat_id: chat
            for chat_id, chat in self._chats.items()
            if chat.requests or chat.closed_until > now or chat.used_at > now - _IDLE_S
        }
        self._sweep_at = max(_SWEEP_FROM, 2 * len(self._chats))


def _what_is_read(endpoint: str, answer: Result) -> Result:
    """Of the message that Telegram gives back nobody reads more than its id, and PTB takes longer to
    make objects of it, and of the one that it replies to, than the request took."""
    if not isinstance(answer, dict) or "message_id" not in answer:
        return answer
    if endpoint.startswith("editMessage"):
        return True
    answer.pop("reply_to_message", None)
    return answer


def _needed(urgency: Urgency, bucket: AsyncLimiter | Window) -> float:
    """The room that has to be there for a request that is dropped without."""
    if urgency == "following":
        return 1
    counts_a_minute = bucket.time_period == _GROUP_PERIOD_S
    kept = _KEPT_IN_GROUPS if counts_a_minute else bucket.max_rate * _SHARE_FOR_ANSWERS
    return (2 if urgency == "beginning" else 1) + kept


def _now() -> float:
    return asyncio.get_running_loop().time()
