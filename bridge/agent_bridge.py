"""The bridge between channels and the agent core.

`receive` is what channels call for each inbound message; it returns once the message is stored, so
that the channel may acknowledge it. A message then goes one of three ways: a command or press is
carried out at once, outside the lane; a question waits in the inbox for its session's lane; somebody
without access gets one sentence a day. The lane makes a turn out of the oldest open rows.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from agent.cancel import CancelTokenRegistry
from bridge.access import Access
from bridge.commands import Commands, Say, owner_code
from bridge.inbound import dump, load
from bridge.lanes import ActiveRun, Lanes
from bridge.models import ChatModel
from bridge.question import MOST_CHARACTERS, Question
from bridge.session import Scope, memory_scope, session_of
from bridge.speakers import label
from bridge.stopping import Stopping
from bridge.turn import Turn, TurnPlan, TurnServices
from channels.base import Channel, InboundMessage, OutboundReply
from channels.errors import ChannelError
from memory.clock import stamp
from memory.conversations import SessionPlace
from memory.inbox import Entry, InboxRow, Kind

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BridgeSettings:
    """What the bridge takes from the configuration. `language` None: each person's own;
    `queue_length`: messages that may wait in one session."""

    scope: Scope
    timezone: tzinfo
    language: str | None
    queue_length: int


class AgentBridge:
    """Takes messages in, and gives each session's questions to the agent one turn at a time."""

    def __init__(
        self,
        settings: BridgeSettings,
        services: TurnServices,
        access: Access,
        model: ChatModel,
        channels: Mapping[str, Channel],
        group: asyncio.TaskGroup,
    ) -> None:
        self._settings = settings
        self._services = services
        self._access = access
        self._model = model
        self._channels = channels
        self._group = group
        self._tokens = CancelTokenRegistry()
        self._ended: list[tuple[tuple[int, ...], str]] = []  # turns whose rows are to be closed
        self._stops: dict[str, list[asyncio.Event]] = {}  # stops under way, by session
        self._marked: set[int] = set()  # inbox rows whose message had to wait
        self._since = stamp()
        self._beside: set[asyncio.Task[None]] = set()  # commands and notices, beside the lanes
        self._cut_texts: dict[tuple[str, str], float] = {}  # until when the rest may come
        self._lanes = Lanes(group, self._next_turn)
        self._stopping = Stopping(access, self._lanes, self._tokens, services.inbox)
        self._commands = Commands(settings.timezone, services, access, model, self._lanes)

    # Messages in ----------------------------------------------------------------------------------

    async def receive(self, message: InboundMessage) -> None:
        """Take a message in; returns once it is stored. Raises `StoreError` when it cannot be: the
        channel then does not acknowledge it, and it comes again."""
        place = self._place(message)
        if not message.addressed and not self._concerns_us(message, place):
            return
        if message.joined_deaf:
            await self._refuse(message, place, self._text(message, "joined_deaf"))
        elif not self._access.may_talk(message.address, message.sender) or owner_code(message):
            await self._meet_stranger(message, place)  # a code must not become part of a history
        elif message.press or message.command or self._stopping.is_stop_word(message, place):
            await self._take_act(message, place)
        else:
            await self._take_question(message, place)

    async def resume(self) -> None:
        """After a start: carry out stored commands, then take up every open message."""
        for row in await self._services.inbox.open_acts():
            message = load(row.body)
            place = self._place(message)
            if self._stopping.is_stop(message, place):
                done = self._hold_lane(place.key)
                self._start(self._act_stop(message, row.id, None, done), "stored stop")
            else:
                self._start(self._act(message, row.id), "stored act")
        for session_key in await self._services.inbox.open_sessions():
            self._lanes.wake(session_key)

    async def close(self, patience_s: float) -> None:
        """Start nothing more; running answers get `patience_s` seconds, then they are interrupted
        and taken up at the next start."""
        await self._lanes.close(patience_s)

    async def idle(self) -> None:
        """Return when no lane has work and every command is carried out."""
        while self._beside or len(self._lanes):
            if self._beside:
                await asyncio.wait(self._beside)
            await self._lanes.idle()

    def _concerns_us(self, message: InboundMessage, place: SessionPlace) -> bool:
        """Group text without a mention: a bare stop word, or the rest of a text that was cut."""
        until = self._cut_texts.pop((place.key, message.sender.id), 0.0)
        rest_of_a_text = asyncio.get_running_loop().time() < until
        return rest_of_a_text or self._stopping.is_stop_word(message, place)

    async def _take_act(self, message: InboundMessage, place: SessionPlace) -> None:
        """A stop acts first and is stored then; everything else is stored first."""
        if self._asks(message):
            await self._take_question(message, place)
            return
        if not self._stopping.is_stop(message, place):
            id_ = await self._put(message, place, "act")
            if id_ is not None:
                self._start(self._act(message, id_), "act")
            return
        done = self._hold_lane(place.key)
        stopped = self._stopping.act(message, place)
        try:
            id_ = await self._put(message, place, "act")
        except BaseException:
            done.set()
            raise
        if id_ is None:
            done.set()
        else:
            self._start(self._act_stop(message, id_, stopped, done), "stop")

    def _hold_lane(self, session_key: str) -> asyncio.Event:
        """Until the event is set, the session's lane takes no message: a stop is dropping some."""
        done = asyncio.Event()
        self._stops.setdefault(session_key, []).append(done)
        return done

    @staticmethod
    def _asks(message: InboundMessage) -> bool:
        """`/ask` with something to ask about is a question like any other."""
        command = message.command
        if command is None or command.name != "ask":
            return False
        return bool(command.args.strip() or message.quote or message.attachments)

    async def _take_question(self, message: InboundMessage, place: SessionPlace) -> None:
        problem = self._problem(message)
        if problem is None and self._lanes.busy(place.key):
            waiting = await self._services.inbox.waiting(place.key)
            if waiting >= self._settings.queue_length:
                problem = self._text(message, "queue_full", count=waiting)
        if problem is not None:
            await self._refuse(message, place, problem)
            return
        busy = self._lanes.busy(place.key)
        if message.more_expected_s and not message.address.private:
            now = asyncio.get_running_loop().time()
            self._cut_texts = {key: end for key, end in self._cut_texts.items() if end > now}
            self._cut_texts[place.key, message.sender.id] = now + message.more_expected_s
        id_ = await self._put(message, place, "turn")
        if id_ is None:
            return
        if busy:
            self._marked.add(id_)
        self._lanes.wake(place.key)
        if busy:
            self._start(self._acknowledge_waiting(message), "waiting mark")

    def _problem(self, message: InboundMessage) -> str | None:
        """What forbids a question by its form: one sentence, or None."""
        if message.unreadable is not None:
            return self._text(message, "unreadable", kind=message.unreadable)
        size = len(message.text)
        if size > MOST_CHARACTERS:
            return self._text(message, "too_long", size=f"{size:,}", limit=f"{MOST_CHARACTERS:,}")
        words = message.command.args if message.command else message.text
        if not (words.strip() or message.attachments or message.quote):
            return self._text(message, "empty_message")
        return None

    async def _refuse(self, message: InboundMessage, place: SessionPlace, sentence: str) -> None:
        """One sentence instead of an answer; the key is kept, so that it is said once."""
        if await self._put(message, place, "refused") is not None:
            self._start(self._reply(message, sentence), "refusal")

    async def _put(self, message: InboundMessage, place: SessionPlace, kind: Kind) -> int | None:
        body = None if kind == "refused" else dump(message)
        return await self._services.inbox.put(
            Entry(place, message.event, message.sender.id, kind, body)
        )

    # People without access ------------------------------------------------------------------------

    async def _meet_stranger(self, message: InboundMessage, place: SessionPlace) -> None:
        """A one-time owner link, `/help` and `/whoami` work; else one sentence a day."""
        if await self._put(message, place, "refused") is None:
            return
        self._start(self._answer_stranger(message), "stranger")

    async def _answer_stranger(self, message: InboundMessage) -> None:
        sentence = await self._commands.for_stranger(message, self._say(message))
        if sentence is not None:
            await self._reply(message, sentence)

    # Commands and presses -------------------------------------------------------------------------

    async def _act(self, message: InboundMessage, inbox_id: int) -> None:
        """Carry out a stored command, answer it, close its row."""
        place, say = self._place(message), self._say(message)
        await self._answer_act(
            message, inbox_id, await self._commands.carry_out(message, place, say)
        )

    async def _act_stop(
        self,
        message: InboundMessage,
        inbox_id: int,
        stopped: ActiveRun | None,
        done: asyncio.Event,
    ) -> None:
        """The rest of a stop that has acted: drop what waits, tell, close its row."""
        place, say = self._place(message), self._say(message)
        try:
            sentence = await self._stopping.finish(message, place, stopped, say)
        finally:
            done.set()
        await self._answer_act(message, inbox_id, sentence)

    async def _answer_act(
        self, message: InboundMessage, inbox_id: int, sentence: str | None
    ) -> None:
        if message.press is not None:
            await self._channels[message.address.channel].answer_press(message, sentence or "")
        elif sentence:
            await self._reply(message, sentence)
        await self._services.inbox.close([inbox_id], "done")

    # Lanes ----------------------------------------------------------------------------------------

    async def _next_turn(self, session_key: str) -> bool:
        """Make a turn of the session's oldest open messages and carry it out."""
        for done in self._stops.pop(session_key, []):
            await done.wait()
        await self._close_ended()
        rows = await self._oldest(session_key)
        if not rows:
            return False
        run_id = rows[0].run_id or f"r{secrets.token_hex(8)}"
        messages = tuple(load(row.body) for row in rows)
        plan = await self._plan(rows, messages, run_id)
        token = self._tokens.register(run_id, session_key, plan.person)
        try:
            newest = messages[-1]
            run = ActiveRun(
                run_id,
                session_key,
                newest.address,
                plan.person,
                newest.sent_at,
                frozenset(plan.inbox_ids),
                token,
            )
            self._unmark(rows, messages)
            turn = Turn(self._services, plan)
            await self._lanes.carry_out(turn, run)
        finally:
            self._tokens.release(run_id)
        if turn.ended_as is not None:
            self._ended.append((plan.inbox_ids, turn.ended_as))
        await self._close_ended()
        return True

    async def _close_ended(self) -> None:
        """Close the rows of turns that have ended. Rows that cannot be closed now are kept in mind:
        their answers are out, so no lane may take them again. Raises `StoreError`."""
        while self._ended:
            ids, outcome = self._ended[0]
            await self._services.inbox.close(ids, outcome)
            if self._ended and self._ended[0] == (ids, outcome):
                self._ended.pop(0)

    async def _oldest(self, session_key: str) -> list[InboxRow]:
        """The oldest open row and those of the same sender that follow it, as one turn; a text that
        its client has cut waits a moment for its continuation."""
        while True:
            rows = await self._services.inbox.open_turns(session_key)
            if not rows:
                return []
            if rows[0].run_id is not None:  # taken by a run of an earlier process
                return [row for row in rows if row.run_id == rows[0].run_id]
            together = _same_sender(rows)
            more_s = load(together[-1].body).more_expected_s
            if len(together) < len(rows) or not more_s:
                return together
            if not await self._lanes.more_within(session_key, more_s):
                return together

    async def _plan(
        self, rows: list[InboxRow], messages: tuple[InboundMessage, ...], run_id: str
    ) -> TurnPlan:
        newest = messages[-1]
        session = rows[0].session
        speaker = None
        if not newest.address.private:
            number = await self._services.conversations.speaker(session, newest.sender.id)
            speaker = label(newest.sender.name, number)
        return TurnPlan(
            run_id=run_id,
            session=session,
            session_key=rows[0].session_key,
            person=newest.sender.id,
            inbox_ids=tuple(row.id for row in rows),
            taken_up=rows[0].run_id is not None,
            question=Question(messages, speaker),
            channel=self._channels[newest.address.channel],
            model=self._model,
            language=self._language(newest),
            timezone=self._settings.timezone,
            memory_scope=memory_scope(newest.address),
        )

    # Replies --------------------------------------------------------------------------------------

    async def _acknowledge_waiting(self, message: InboundMessage) -> None:
        channel = self._channels[message.address.channel]
        if not await channel.mark_waiting(message.address, message.message_id, True):
            await self._reply(message, self._text(message, "waiting"))

    def _unmark(self, rows: list[InboxRow], messages: tuple[InboundMessage, ...]) -> None:
        """Clear the marks of messages that had to wait; which ones those are is not known of an
        earlier process's."""
        for row, message in zip(rows, messages, strict=True):
            waited = row.id in self._marked or row.received_at < self._since
            self._marked.discard(row.id)
            if not waited:
                continue
            channel = self._channels[message.address.channel]
            self._start(
                _ignore(channel.mark_waiting(message.address, message.message_id, False)), "unmark"
            )

    async def _reply(self, message: InboundMessage, sentence: str) -> None:
        channel = self._channels[message.address.channel]
        try:
            sink = channel.open_reply(message.address, reply_to=message.message_id or None)
            await sink.finish(OutboundReply(sentence))
        except ChannelError as error:
            log.warning("a notice could not be delivered: %s", error)

    # Small things ---------------------------------------------------------------------------------

    def _start(self, work: Coroutine[Any, Any, None], what: str) -> None:
        """Something beside the lanes, owned by the app's task group; it never ends the group."""
        task = self._group.create_task(self._guarded(work, what), name=what)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def _guarded(self, work: Coroutine[Any, Any, None], what: str) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - a border: reported
            await self._services.errors.report(error, what)

    def _place(self, message: InboundMessage) -> SessionPlace:
        return session_of(message.address, message.sender.id, self._settings.scope)

    def _language(self, message: InboundMessage) -> str:
        return self._services.texts.language(self._settings.language, message.sender.language)

    def _text(self, message: InboundMessage, key: str, /, **values: object) -> str:
        return self._services.texts.say(self._language(message), key, **values)

    def _say(self, message: InboundMessage) -> Say:
        return Say(self._services.texts, self._language(message))


def _same_sender(rows: list[InboxRow]) -> list[InboxRow]:
    together = [rows[0]]
    for row in rows[1:]:
        if row.person != rows[0].person or row.run_id is not None:
            break
        together.append(row)
    return together


async def _ignore(work: Coroutine[Any, Any, object]) -> None:
    await work
