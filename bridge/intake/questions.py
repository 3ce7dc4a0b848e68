"""Questions: taken in for their session's lane, or refused with one sentence."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

from bridge.beside import Beside
from bridge.inbound import entry
from bridge.intake.backlog import Backlog
from bridge.lanes import Lanes
from bridge.limits.admission import Admission
from bridge.limits.caps import Reach
from bridge.limits.policies import ChatPolicies
from bridge.runs.notices import Notices
from bridge.runs.outage import Outages
from bridge.runs.question import MOST_CHARACTERS
from bridge.runs.stopping import key_of
from bridge.runs.turns import RETRY, Turns
from channels.base import InboundMessage
from memory.conversations import SessionPlace
from memory.inbox import Full, Inbox

KEPT: Final = timedelta(seconds=20)  # a message that is older when it comes in was kept


class Questions:
    """What a lane gets to answer. `queue_length`: messages that may wait in one session."""

    def __init__(
        self,
        inbox: Inbox,
        lanes: Lanes,
        turns: Turns,
        outages: Outages,
        backlog: Backlog,
        notices: Notices,
        beside: Beside,
        admission: Admission,
        policies: ChatPolicies,
        queue_length: int,
    ) -> None:
        self._inbox = inbox
        self._lanes = lanes
        self._turns = turns
        self._outages = outages
        self._backlog = backlog
        self._notices = notices
        self._beside = beside
        self._admission = admission
        self._policies = policies
        self._queue_length = queue_length
        self._began = datetime.now(UTC)
        self._cut_texts: dict[tuple[str, str], float] = {}  # until when the rest may come

    async def take(self, message: InboundMessage, place: SessionPlace) -> None:
        """Store it and wake its lane. Raises `StoreError`."""
        problem = await self._problem(message, place)
        if problem is not None:
            await self.refuse(message, place, problem)
            return
        policy = self._policies.of(message.address, message.sender.id)
        admitted = await self._admission.admit(message, policy)
        if isinstance(admitted, Reach):
            await self.turn_away(message, place, admitted)
            return
        self._expect_the_rest(message, place)
        busy = self._must_wait(message, place.key)
        fresh = self._turns.expect(message, place.key)  # from now on it can be stopped
        try:
            asked = entry(message, place, "turn")
            id_ = await self._inbox.put_question(asked, admitted.windows)
        except BaseException:
            self._forget(message, fresh)
            raise
        if id_ is None or isinstance(id_, Full):
            self._forget(message, fresh)
            if id_ is not None:
                reach = self._admission.too_many(id_, admitted, policy)
                await self.turn_away(message, place, reach)
            return
        if busy:
            self._turns.mark(message)
        self._backlog.note(message)
        self._lanes.wake(place.key)
        if busy:
            self._beside.start(self._notices.waits(message), "waiting mark")

    def _must_wait(self, message: InboundMessage, session_key: str) -> bool:
        """For a run, for the rest of somebody else's message, or for the provider."""
        if self._lanes.active(session_key) is not None or self._outages.must_wait(session_key):
            return True
        return self._turns.gathers_from(session_key) not in (None, message.sender.id)

    async def refuse(self, message: InboundMessage, place: SessionPlace, sentence: str) -> None:
        """One sentence instead of an answer; the key is kept, so that it is said once. Raises
        `StoreError`."""
        if await self._inbox.put(entry(message, place, "refused")) is not None:
            self._beside.start(self._notices.reply(message, sentence), "refusal")

    async def turn_away(self, message: InboundMessage, place: SessionPlace, reach: Reach) -> None:
        """A limit is reached: told as the chat wants it. Raises `StoreError`."""
        if await self._inbox.put(entry(message, place, "refused")) is not None:
            self._beside.start(self._tell_limit(message, reach), "limit")

    async def _tell_limit(self, message: InboundMessage, reach: Reach) -> None:
        policy = self._policies.of(message.address, message.sender.id)
        say = self._notices.say(message)
        sentence = await self._admission.told(reach, message, policy, say)
        if sentence is not None or message.press is not None:
            await self._notices.answer(message, sentence)

    def is_rest_of_a_text(self, message: InboundMessage, place: SessionPlace) -> bool:
        """Whether it goes on with a text of the same sender that their client has cut. To be asked
        once for each message."""
        until = self._cut_texts.pop((place.key, message.sender.id), 0.0)
        return message.own_words and asyncio.get_running_loop().time() < until

    def _forget(self, message: InboundMessage, fresh: bool) -> None:
        """Not stored, or stored before: a token that was made for this delivery goes again."""
        if fresh:
            self._turns.forget([key_of(message)])

    def _expect_the_rest(self, message: InboundMessage, place: SessionPlace) -> None:
        """In a group, a text that its client has cut goes on without a mention."""
        if not message.more_expected_s or message.address.private:
            return
        now = asyncio.get_running_loop().time()
        self._cut_texts = {key: end for key, end in self._cut_texts.items() if end > now}
        self._cut_texts[place.key, message.sender.id] = now + message.more_expected_s

    def _has_waited(self, message: InboundMessage) -> bool:
        """Whether the platform kept it for us: what was sent while nobody could receive it is taken,
        however much it is."""
        return message.sent_at < self._began or datetime.now(UTC) - message.sent_at > KEPT

    async def _problem(self, message: InboundMessage, place: SessionPlace) -> str | None:
        """Why a question is not taken: one sentence, or None."""
        say = self._notices.say(message)
        if message.unreadable is not None:
            return say("unreadable", kind=message.unreadable)
        size = len(message.text)
        if size > MOST_CHARACTERS:
            return say("too_long", size=f"{size:,}", limit=f"{MOST_CHARACTERS:,}")
        words = message.command.args if message.command else message.text
        retry = message.command is not None and message.command.name == RETRY
        if not (retry or words.strip() or message.attachments or message.quote):
            return say("empty_message")
        if self._lanes.busy(place.key) and not self._has_waited(message):
            waiting = await self._inbox.waiting(place.key)
            if waiting >= self._queue_length:
                return say("queue_full", count=waiting)
        return None


def asks(message: InboundMessage) -> bool:
    """Whether it is a question: any text, `/ask` with something to ask about, and `/retry`."""
    command = message.command
    if message.press is not None or message.form is not None:
        return False
    if command is None or command.name == RETRY:
        return True
    something = command.args.strip() or message.quote or message.attachments
    return command.name == "ask" and bool(something)
