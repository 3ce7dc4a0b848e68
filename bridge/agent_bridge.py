"""The bridge between channels and the agent core.

`receive` is what channels call for each inbound message; it returns once the message is stored, so
that the channel may acknowledge it. A message then goes one of three ways: a command or press is
carried out at once, outside the lane; a question waits in the inbox for its session's lane
(`bridge.turns` makes turns of them); somebody without access gets one sentence a day.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from agent.cancel import CancelTokenRegistry
from agent.model import ChatModel
from bridge.access import Access
from bridge.backlog import DEFAULT_TIMING, Backlog, BacklogTiming, is_backlog
from bridge.chats import ChatKeeper
from bridge.commands import CHANGING, RESEND, Commands, is_ours, owner_code
from bridge.delivery import Deliveries
from bridge.errors import sentence_key
from bridge.holds import Holds
from bridge.inbound import dump, load
from bridge.lanes import Lanes
from bridge.notices import Notices
from bridge.outage import Changed, Outages
from bridge.question import MOST_CHARACTERS
from bridge.session import Scope, session_of
from bridge.stopping import ASK_NOW, Stopped, Stopping, WhoCanStop, key_of
from bridge.store_trouble import StoreTrouble
from bridge.turn_plan import TurnServices
from bridge.turns import RETRY, Turns
from channels.base import Address, Button, Channel, InboundMessage, OutboundReply
from channels.errors import NotStored, Unreachable
from memory.backlog import MissedRow
from memory.clock import stamp
from memory.conversations import SessionPlace
from memory.errors import StoreError
from memory.inbox import Entry, InboxRow, Kind

log = logging.getLogger(__name__)

# A stop has acted already; when the store takes longer than this to keep it, it is answered first.
STORE_WAIT_S = 0.8
NOTICES_GRACE_S = 3.0  # for commands and notices under way when the process is stopping


@dataclass(frozen=True, slots=True)
class BridgeSettings:
    """What the bridge takes from the configuration. `language` None: each person's own;
    `queue_length`: messages that may wait in one session."""

    scope: Scope
    timezone: tzinfo
    language: str | None
    queue_length: int
    who_can_stop: WhoCanStop = "asker_and_admins"
    backlog: BacklogTiming = DEFAULT_TIMING


class AgentBridge:
    """Takes messages in, and gives each session's questions to the agent one turn at a time."""

    def __init__(
        self,
        settings: BridgeSettings,
        services: TurnServices,
        access: Access,
        models: tuple[ChatModel, ...],
        channels: Mapping[str, Channel],
        group: asyncio.TaskGroup,
    ) -> None:
        self._settings = settings
        self._services = services
        self._access = access
        self._channels = channels
        self._group = group
        self._beside: set[asyncio.Task[None]] = set()  # commands and notices, beside the lanes
        self._store_trouble = StoreTrouble()
        self._cut_texts: dict[tuple[str, str], float] = {}  # until when the rest may come
        self._notices = Notices(channels, services.texts, settings.language)
        tokens = CancelTokenRegistry()
        self._deliveries = Deliveries(
            services.outbox,
            services.runs,
            channels,
            services.texts,
            self._notices.language,
            services.errors,
            self._gone,
        )
        self._turns = Turns(
            services,
            models,
            channels,
            settings.timezone,
            self._notices,
            tokens,
            self._deliveries,
            self._start,
        )
        holds = Holds()
        self._lanes = Lanes(group, holds.guard(self._turns.next_turn))
        holds.bind(self._lanes.wake)
        self.chats = ChatKeeper(services.chats, services.folders, holds, self._start, self._take_up)
        self._backlog = Backlog(
            services.backlog,
            services.people,
            holds,
            self._notices.tell,
            self._notices.say,
            self._turns.dropped,
            self._start,
            settings.timezone,
            settings.backlog,
        )
        self._outages = Outages(self._lanes.wake)
        self._turns.bind(self._lanes, self._outages)
        self._stopping = Stopping(
            access,
            self._lanes,
            tokens,
            services.inbox,
            channels,
            settings.who_can_stop,
            settings.timezone,
        )
        self._commands = Commands(
            settings.timezone, services, access, models, self._lanes, self._outages, tokens
        )

    # Messages in ----------------------------------------------------------------------------------

    async def receive(self, message: InboundMessage) -> None:
        """Take a message in; returns once it is stored. Raises `NotStored` when it cannot be: the
        channel then does not acknowledge it, and it comes again. A message that we fail on for
        another reason is answered with an error id instead, and does not come again."""
        try:
            await self._take_in(message)
            self._store_trouble.over()
        except NotStored:
            raise
        except StoreError as error:
            if self._access.may_talk(message.address, message.sender) and (
                self._store_trouble.first_in(message)
            ):
                told = self._notices.answer(message, self._text(message, "store_down"))
                self._start(told, "store is down")
            raise NotStored(str(error)) from error
        except Exception as error:  # noqa: BLE001 - a border: reported, and the sender is told
            error_id = await self._services.errors.report(error, f"message {message.event}")
            self._start(
                self._notices.answer(message, self._text(message, "error", id=error_id)), "error"
            )

    async def _take_in(self, received: InboundMessage) -> None:
        message = await self.chats.take(received)
        if message is None:
            return
        place = self._place(message)
        if not message.addressed and not self._concerns_us(message, place):
            return
        if message.joined_deaf:
            await self._refuse(message, place, self._text(message, "joined_deaf"))
        elif not self._access.may_talk(message.address, message.sender) or owner_code(message):
            await self._meet_stranger(message, place)  # a code must not become part of a history
        elif message.edited_command:
            if not is_ours(message):
                return
            await self._refuse(message, place, self._text(message, "edited_command"))
        elif self._stopping.is_stop(message, place):
            await self._take_stop(message, place)
        elif message.press or (message.command and not self._asks(message)):
            await self._take_act(message, place)
        else:
            await self._take_question(message, place)

    async def resume(self) -> None:
        """After a start: deliver what is in the outbox, carry out stored commands, then take up every
        open message."""
        services, here = self._services, tuple(self._channels)
        await self.chats.settle()
        for reply in await services.outbox.open_replies(here):
            self._start(self._deliveries.resume(reply), "resumed delivery")
        for lost in await services.runs.lost(here):
            self._start(self._deliveries.end_lost(lost, load(lost.body)), "lost run")
        for row in await services.inbox.open_acts():
            message = load(row.body)
            if message.address.channel not in self._channels:
                continue
            place = self._place(message)
            if self._stopping.is_stop(message, place):  # it had acted, its answer may be missing
                self._start(self._answer_stop(message, row.id, Stopped()), "stored stop")
            else:
                self._start(self._act(message, row.id), "stored act")
        for session_key in await services.inbox.open_sessions(here):
            await self._take_up(session_key, session_key)

    async def _take_up(self, former_key: str, session_key: str) -> None:
        """Take up every open message of a session, which had another key before."""
        if former_key != session_key:
            self._turns.forget_session(former_key)
        for row in await self._services.inbox.open_turns(session_key):
            message = load(row.body)
            self._turns.expect(message, session_key)
            self._turns.mark(message)  # whether it had a mark is not known any more
            self._backlog.note(message)
        self._lanes.wake(session_key)

    async def close(self, patience_s: float) -> None:
        """Start nothing more; running answers and commands get `patience_s` seconds, then they are
        interrupted and taken up at the next start."""
        self._outages.close()
        await self._lanes.close(patience_s)
        if self._beside:
            await asyncio.wait(self._beside, timeout=min(patience_s, NOTICES_GRACE_S))
        for task in self._beside:
            task.cancel()

    async def idle(self) -> None:
        """Return when no lane has work and every command is carried out."""
        while self._beside or len(self._lanes):
            if self._beside:
                await asyncio.wait(self._beside)
            await self._lanes.idle()

    def _concerns_us(self, message: InboundMessage, place: SessionPlace) -> bool:
        """Group text without a mention: a bare stop word, or the rest of a text that was cut."""
        until = self._cut_texts.pop((place.key, message.sender.id), 0.0)
        rest_of_a_text = message.own_words and asyncio.get_running_loop().time() < until
        return rest_of_a_text or self._stopping.is_stop_word(message, place)

    @staticmethod
    def _asks(message: InboundMessage) -> bool:
        """`/ask` with something to ask about is a question like any other, and so is `/retry`."""
        command = message.command
        if command is None or command.name not in ("ask", RETRY):
            return False
        something = command.args.strip() or message.quote or message.attachments
        return command.name == RETRY or bool(something)

    async def _put(self, message: InboundMessage, place: SessionPlace, kind: Kind) -> int | None:
        return await self._services.inbox.put(_entry(message, place, kind))

    # Questions ------------------------------------------------------------------------------------

    async def _take_question(self, message: InboundMessage, place: SessionPlace) -> None:
        problem = await self._problem(message, place)
        if problem is not None:
            await self._refuse(message, place, problem)
            return
        self._expect_the_rest(message, place)
        busy = self._lanes.busy(place.key) or self._outages.must_wait(place.key)
        fresh = self._turns.expect(message, place.key)  # from now on it can be stopped
        try:
            id_ = await self._put(message, place, "turn")
        except BaseException:
            self._forget(message, fresh)
            raise
        if id_ is None:
            self._forget(message, fresh)
            return
        if busy:
            self._turns.mark(message)
        self._backlog.note(message)
        self._lanes.wake(place.key)
        if busy:
            self._start(self._notices.waits(message), "waiting mark")

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

    async def _problem(self, message: InboundMessage, place: SessionPlace) -> str | None:
        """Why a question is not taken: one sentence, or None."""
        if message.unreadable is not None:
            return self._text(message, "unreadable", kind=message.unreadable)
        size = len(message.text)
        if size > MOST_CHARACTERS:
            return self._text(message, "too_long", size=f"{size:,}", limit=f"{MOST_CHARACTERS:,}")
        words = message.command.args if message.command else message.text
        retry = message.command is not None and message.command.name == RETRY
        if not (retry or words.strip() or message.attachments or message.quote):
            return self._text(message, "empty_message")
        if self._lanes.busy(place.key):
            waiting = await self._services.inbox.waiting(place.key)
            if waiting >= self._settings.queue_length:
                return self._text(message, "queue_full", count=waiting)
        return None

    async def _refuse(self, message: InboundMessage, place: SessionPlace, sentence: str) -> None:
        """One sentence instead of an answer; the key is kept, so that it is said once."""
        if await self._put(message, place, "refused") is not None:
            self._start(self._notices.reply(message, sentence), "refusal")

    # People without access ------------------------------------------------------------------------

    async def _meet_stranger(self, message: InboundMessage, place: SessionPlace) -> None:
        """A one-time owner link, `/help` and `/whoami` work; else one sentence a day."""
        if await self._put(message, place, "refused") is None:
            return
        self._start(self._answer_stranger(message), "stranger")

    async def _answer_stranger(self, message: InboundMessage) -> None:
        if message.press is not None:
            await self._notices.answer(message, self._text(message, "not_yours"))
            return
        sentence = await self._commands.for_stranger(message, self._notices.say(message))
        if sentence is not None:
            await self._notices.reply(message, sentence)

    # Commands and presses -------------------------------------------------------------------------

    async def _take_act(self, message: InboundMessage, place: SessionPlace) -> None:
        id_ = await self._put(message, place, "act")
        if id_ is not None:
            self._start(self._act(message, id_), "act")

    async def _act(self, message: InboundMessage, inbox_id: int) -> None:
        """Carry out a stored command or press, answer it, close its row."""
        try:
            sentence = await self._carried_out(message, inbox_id)
        except Exception as error:  # noqa: BLE001 - a border: reported, and the sender is told
            error_id = await self._services.errors.report(error, f"command {message.event}")
            sentence = self._text(message, sentence_key(error), id=error_id)
        if message.command is not None and message.command.name in CHANGING:
            await self._services.inbox.close([inbox_id], "done")  # never twice
        await self._answer(message, inbox_id, sentence, spent=message.press is not None)

    async def _answer(
        self,
        message: InboundMessage,
        inbox_id: int,
        sentence: str | None,
        buttons: Sequence[Button] = (),
        *,
        spent: bool = False,
    ) -> None:
        """Answer a stored command or press, and close its row."""
        if message.press is None and sentence:
            said = OutboundReply(sentence, buttons=tuple(buttons))
            await self._deliveries.answer(message, self._place(message), inbox_id, said)
        else:
            await self._notices.answer(message, sentence, spent=spent)
            await self._services.inbox.close([inbox_id], "done")

    async def _carried_out(self, message: InboundMessage, inbox_id: int) -> str | None:
        place = self._place(message)
        if message.press is not None and message.press.action == ASK_NOW:
            return await self._ask_after_all(message, place, message.press.value)
        if message.command is not None and message.command.name == RESEND:
            session = await self._services.conversations.open(place)
            sent = await self._deliveries.resend(message, place, inbox_id, session)
            return None if sent else self._text(message, "nothing_to_resend")
        return await self._commands.carry_out(message, place, self._notices.say(message))

    async def _ask_after_all(
        self, message: InboundMessage, place: SessionPlace, stop_event: str
    ) -> str:
        """Messages that a stop had dropped, or that were set aside, are answered after all."""
        rows: Sequence[InboxRow | MissedRow]
        if is_backlog(stop_event):
            rows = await self._backlog.reopen(message, stop_event)
        else:
            rows = await self._services.inbox.reopen(place.key, message.sender.id, stop_event)
        for row in rows:
            self._turns.expect_again(load(row.body), row.session_key)
        for session_key in {place.key, *(row.session_key for row in rows)}:
            self._lanes.wake(session_key)
        return self._text(message, "asked_after_all" if rows else "nothing_to_ask", count=len(rows))

    async def _take_stop(self, message: InboundMessage, place: SessionPlace) -> None:
        """A stop acts first, is stored then together with what it has stopped, and answered then;
        while the store cannot write, it is answered before."""
        stopped = self._stopping.act(message, place)
        storing = asyncio.ensure_future(
            self._services.inbox.put_stop(
                _entry(message, place, "act"),
                stopped.running,
                stopped.waiting,
                stopped.run.run_id if stopped.run else None,
            )
        )
        done, _ = await asyncio.wait({storing}, timeout=STORE_WAIT_S)
        if not done:
            log.warning("a stop is answered before it could be stored")
            self._start(self._answer_stop(message, None, stopped), "stop")
        try:
            id_ = await storing
        except StoreError as error:  # it has acted, and was answered
            raise NotStored(str(error)) from error
        self._turns.dropped(place.key, stopped.waiting)
        if done and id_ is not None:
            self._start(self._answer_stop(message, id_, stopped), "stop")
        elif id_ is not None:
            await self._services.inbox.close([id_], "done")

    async def _answer_stop(
        self, message: InboundMessage, inbox_id: int | None, stopped: Stopped
    ) -> None:
        place, say = self._place(message), self._notices.say(message)
        answer = await self._stopping.finish(message, place, stopped, say)
        self._turns.unmark(stopped.waiting)
        said = (answer.sentence, answer.buttons)
        if inbox_id is None:  # it is not stored
            await self._notices.answer(message, *said, spent=answer.spent)
        else:
            await self._answer(message, inbox_id, *said, spent=answer.spent)

    # Small things ---------------------------------------------------------------------------------

    async def _gone(self, address: Address, error: Unreachable) -> None:
        await self.chats.gone(address, removed=error.removed)

    def watch_providers(self, changed: Changed) -> None:
        """`changed` hears when a provider fails for everybody, and when it is back."""
        self._outages.watch(changed)

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

    def _text(self, message: InboundMessage, key: str, /, **values: object) -> str:
        return self._notices.say(message)(key, **values)


def _entry(message: InboundMessage, place: SessionPlace, kind: Kind) -> Entry:
    body = None if kind == "refused" else dump(message)
    return Entry(place, message.event, message.sender.id, kind, body, stamp(message.sent_at))
