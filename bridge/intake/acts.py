"""Commands and presses: stored, carried out at once beside the lanes, answered. A stop acts first."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from bridge.answers import Answer
from bridge.beside import Beside
from bridge.commands.dispatch import NEW, RESEND, Commands
from bridge.commands.table import CHANGING
from bridge.errors import sentence
from bridge.inbound import entry, load
from bridge.intake.backlog import Backlog, is_backlog
from bridge.lanes import ActiveRun
from bridge.runs.delivery import Deliveries
from bridge.runs.lost_runs import LostRuns
from bridge.runs.notices import Notices
from bridge.runs.stopping import ASK_NOW, Stopped, Stopping, key_of, was_stop
from bridge.runs.turn_plan import TurnServices
from bridge.runs.turns import Turns
from channels.base import InboundMessage
from channels.errors import FormRefused, NotStored
from memory.backlog import MissedRow
from memory.conversations import SessionPlace
from memory.errors import StoreError
from memory.inbox import InboxKey, InboxRow

log = logging.getLogger(__name__)

# A stop has acted already; when the store takes longer than this to keep it, it is answered first.
STORE_WAIT_S = 0.8
# Whether a stop has come before is asked of the store no longer than this.
KNOWN_WAIT_S = 0.2
MARK_AFTER_S = 0.7  # a stop is to be acknowledged within a second
MARKED_AT_MOST_S = 120.0

PlaceOf = Callable[[InboundMessage], SessionPlace]


class Acts:
    """Everything that a person does besides asking. `wake(session_key)` makes a lane look again."""

    def __init__(
        self,
        services: TurnServices,
        commands: Commands,
        stopping: Stopping,
        turns: Turns,
        backlog: Backlog,
        deliveries: Deliveries,
        lost_runs: LostRuns,
        notices: Notices,
        beside: Beside,
        place_of: PlaceOf,
        wake: Callable[[str], None],
    ) -> None:
        self._services = services
        self._commands = commands
        self._stopping = stopping
        self._turns = turns
        self._backlog = backlog
        self._deliveries = deliveries
        self._lost_runs = lost_runs
        self._notices = notices
        self._beside = beside
        self._place_of = place_of
        self._wake = wake
        # Stops that have acted, were answered, and are not stored: they come again until they are.
        self._unstored: dict[InboxKey, Stopped] = {}

    async def take(self, message: InboundMessage) -> None:
        """Store it, and carry it out. Returns once it is stored; raises `StoreError`, and
        `FormRefused` with what is wrong in a form."""
        faults = await self._commands.check(message, self._notices.say(message))
        if faults:
            raise FormRefused(faults)
        stored = await self._services.inbox.put(entry(message, self._place_of(message), "act"))
        if stored is not None:
            self._beside.start(self._carry_out(message, stored), "act")

    async def take_stop(self, message: InboundMessage) -> None:
        """It acts first, is stored then together with what it has stopped, and answered then; while
        the store cannot write, it is answered before. One that the platform delivers once more does
        nothing: by now it would hit something newer. Raises `NotStored`."""
        if await self._came_before(message):
            return
        place, key = self._place_of(message), key_of(message)
        told = key in self._unstored
        stopped = self._unstored.get(key) or self._stopping.act(message, place)
        storing = asyncio.ensure_future(
            self._services.inbox.put_stop(
                entry(message, place, "act"),
                stopped.running,
                stopped.waiting,
                stopped.run.run_id if stopped.run else None,
            )
        )
        if not told and not (await asyncio.wait({storing}, timeout=STORE_WAIT_S))[0]:
            log.warning("a stop is answered before it could be stored")
            self._beside.start(self._answer_stop(message, None, stopped), "stop")
            told = True
        try:
            id_ = await storing
        except StoreError as error:
            if not told:
                self._beside.start(self._tell_unstored(message, stopped), "stop")
            self._unstored[key] = stopped
            raise NotStored(str(error)) from error
        self._unstored.pop(key, None)
        self._turns.dropped(place.key, stopped.waiting)
        if not told and id_ is not None:
            self._beside.start(self._answer_stop(message, id_, stopped), "stop")
        elif id_ is not None:
            await self._end_postponed(stopped)
            await self._services.inbox.close([id_], "done")

    async def _end_postponed(self, stopped: Stopped) -> Stopped:
        """Runs that have taken a step and waited to go on are no waiting messages any more: they end as
        stopped, and tell so themselves."""
        lost = await self._services.runs.lost_with(stopped.waiting)
        for run in {run.run.run_id: run for run in lost.values()}.values():
            self._beside.start(self._lost_runs.end(run), "postponed run")
        waiting = tuple(key for key in stopped.waiting if key not in lost)
        return replace(stopped, waiting=waiting, postponed=bool(lost))

    async def _came_before(self, message: InboundMessage) -> bool:
        """A store that does not say so at once holds up no stop."""
        try:
            async with asyncio.timeout(KNOWN_WAIT_S):
                return await self._services.inbox.holds(key_of(message))
        except (TimeoutError, StoreError):
            return False

    def resume(self, message: InboundMessage, inbox_id: int) -> None:
        """Carry out what an earlier process has stored. A stop had acted; its answer may be missing."""
        if was_stop(message):
            self._beside.start(self._answer_stored_stop(message, inbox_id), "stored stop")
        else:
            self._beside.start(self._carry_out(message, inbox_id), "stored act")

    async def _carry_out(self, message: InboundMessage, inbox_id: int) -> None:
        """Do it, answer it, close its row."""
        try:
            answer = await self._done(message, inbox_id)
        except Exception as error:  # noqa: BLE001 - a border: reported, and the sender is told
            error_id = await self._services.errors.report(error, f"command {message.event}")
            answer = Answer(sentence(error, self._notices.say(message), error_id))
        if message.command is not None and message.command.name in CHANGING:
            await self._services.inbox.close([inbox_id], "done")  # never twice
        await self._answer(message, inbox_id, answer)
        if message.command is not None and message.command.name == NEW:
            session = await self._services.conversations.open(self._place_of(message))
            await self._services.memory.flushing.after_new(session)

    async def _done(self, message: InboundMessage, inbox_id: int) -> Answer:
        """What it came to; blank where nothing more is to be said."""
        place, say = self._place_of(message), self._notices.say(message)
        if message.press is not None and message.press.action == ASK_NOW:
            asked = await self._ask_after_all(message, place, message.press.value)
            return Answer(asked, spent=True)
        if message.command is not None and message.command.name == RESEND:
            session = await self._services.conversations.open(place)
            sent = await self._deliveries.resend(message, place, inbox_id, session)
            return Answer("" if sent else say("nothing_to_resend"))
        return await self._commands.carry_out(message, place, say)

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
            self._wake(session_key)
        key = "asked_after_all" if rows else "nothing_to_ask"
        return self._notices.say(message)(key, count=len(rows))

    async def _answer_stored_stop(self, message: InboundMessage, inbox_id: int) -> None:
        """What it has dropped is told, since it can be had after all. A run that it ended tells it
        itself; by now there is nothing to see of it any more."""
        inbox, key, person = self._services.inbox, self._place_of(message).key, message.sender.id
        dropped = await inbox.dropped(key, person, message.event)
        ended = await inbox.ended_by(inbox_id)
        if dropped or ended is None:
            await self._answer_stop(message, inbox_id, Stopped(waiting=dropped))
        else:
            stopped = self._notices.say(message)("stopped") if ended == "work" else ""
            await self._answer(message, inbox_id, Answer(stopped))

    async def _answer_stop(
        self, message: InboundMessage, inbox_id: int | None, stopped: Stopped
    ) -> None:
        place, say = self._place_of(message), self._notices.say(message)
        self._turns.unmark(stopped.waiting)
        if inbox_id is not None:
            stopped = await self._end_postponed(stopped)
        told = await self._stopping.finish(message, place, stopped, say)
        if stopped.run is not None and message.press is None:
            self._beside.start(self._mark_while_stopping(message, stopped.run), "stop")
        if inbox_id is None:  # it is not stored
            await self._notices.answer(message, told.sentence, told.buttons, spent=told.spent)
        else:
            answer = Answer(told.sentence, told.buttons, spent=told.spent)
            await self._answer(message, inbox_id, answer)

    async def _tell_unstored(self, message: InboundMessage, stopped: Stopped) -> None:
        """Nothing can be stored, so that the run that it has ended cannot say so either."""
        await self._answer_stop(message, None, stopped)
        if stopped.run is not None and message.press is None and not stopped.again:
            await self._notices.answer(message, self._notices.say(message)("stopped"))

    async def _mark_while_stopping(self, message: InboundMessage, run: ActiveRun) -> None:
        """The run tells that it was stopped, when the platform takes it: a stop that waits for that is
        acknowledged meanwhile."""
        if not await _is_over(run, MARK_AFTER_S) and await self._notices.seen(message):
            await _is_over(run, MARKED_AT_MOST_S)
            await self._notices.waits_no_more(message)

    async def _answer(self, message: InboundMessage, inbox_id: int, answer: Answer) -> None:
        """Answer what is stored, and close its row."""
        if message.press is None and answer.text.strip():
            place = self._place_of(message)
            silent = answer.silent or self._notices.quiet(message)
            said = replace(answer.reply, silent=silent)
            await self._deliveries.answer(message, place, inbox_id, said)
        elif answer.in_place and await self._notices.replace(message, answer.reply):
            await self._services.inbox.close([inbox_id], "done")
        else:
            # A notice would be cut: what has no room in the message's place comes after it, whole.
            apart = answer.apart or answer.in_place
            notice, spent = "" if apart else answer.text, answer.spent or answer.in_place
            await self._notices.answer(message, notice, spent=spent)
            if apart:
                await self._notices.reply(
                    message, answer.text, answer.buttons, silent=answer.silent
                )
            await self._services.inbox.close([inbox_id], "done")


async def _is_over(run: ActiveRun, within_s: float) -> bool:
    """Whether it is over within so many seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await run.over.wait()
    return run.over.is_set()
