"""A lane's work: the oldest open messages of a session become one turn, and the turn is carried out.

The inbox is the queue of record; here is only what this process has to keep in mind about it: tokens
of messages that wait, and marks that are to be taken away.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agent.cancel import CancelTokenRegistry
from bridge.inbound import readable
from bridge.lanes import ActiveRun, Lanes
from bridge.limits.keys import MODEL, PAUSED
from bridge.limits.policies import is_quiet, zone_of
from bridge.limits.times import is_paused
from bridge.models.chat_models import ModelChoice
from bridge.runs.delivery import Deliveries
from bridge.runs.lost_runs import LostRuns
from bridge.runs.notices import Notices
from bridge.runs.outage import Outages
from bridge.runs.overheard import Overheard
from bridge.runs.question import Question
from bridge.runs.stopping import key_of
from bridge.runs.turn import Turn
from bridge.runs.turn_plan import TurnPlan, TurnServices
from bridge.speakers import label
from channels.base import Address, Channel, InboundMessage
from memory.errors import StoreDamaged, StoreError
from memory.inbox import InboxKey, InboxRow

RETRY = "retry"  # the command whose message stands for the question before it


Used = Callable[[Address, str], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An open row with its message."""

    row: InboxRow
    message: InboundMessage


class Turns:
    """Makes turns. `beside(work, name)` starts something that the lane does not wait for."""

    def __init__(
        self,
        services: TurnServices,
        models: ModelChoice,
        channels: Mapping[str, Channel],
        notices: Notices,
        tokens: CancelTokenRegistry,
        deliveries: Deliveries,
        lost_runs: LostRuns,
        overheard: Overheard,
        beside: Callable[[Coroutine[Any, Any, None], str], None],
    ) -> None:
        self._services = services
        self._models = models
        self._channels = channels
        self._notices = notices
        self._tokens = tokens
        self._deliveries = deliveries
        self._lost_runs = lost_runs
        self._overheard = overheard
        self._beside = beside
        self._unstored: set[str] = set()  # sessions that were told that nothing can be stored
        self._gathering: dict[str, str] = {}  # session -> of whose message it waits for the rest
        self._dropped: dict[str, set[InboxKey]] = {}  # closed by a stop, their tokens still there
        self._marked: dict[InboxKey, InboundMessage] = {}  # messages with a mark of waiting

    def bind(self, lanes: Lanes, outages: Outages, used: Used) -> None:
        """The lanes call `next_turn`, which needs them and what they wake. `used(address, person)`
        comes after each turn."""
        self._used = used
        self._lanes = lanes
        self._outages = outages

    def gathers_from(self, session_key: str) -> str | None:
        """The person of whose next message the session's lane waits for the rest."""
        return self._gathering.get(session_key)

    def mark(self, message: InboundMessage) -> None:
        """The message has to wait, and its sender is told so."""
        self._marked[key_of(message)] = message

    def unmark(self, keys: Iterable[InboxKey]) -> None:
        """These messages wait no more: take their marks away."""
        for key in keys:
            message = self._marked.pop(key, None)
            if message is not None:
                self._beside(self._notices.waits_no_more(message), "unmark")

    def unmark_dealt_with(self, messages: Iterable[InboundMessage]) -> None:
        """Those of these that do not wait any more lose their marks."""
        keys = map(key_of, messages)
        self.unmark([key for key in keys if self._tokens.get(key) is None])

    async def next_turn(self, session_key: str) -> bool:
        """Make a turn of the session's oldest open messages and carry it out; false when there is
        none to be made now."""
        if self._outages.must_wait(session_key):
            if not await self._open(session_key):
                self._outages.forget(session_key)
            return False
        waiting = await self._oldest(session_key)
        if not waiting:
            self._outages.forget(session_key)
            return False
        plan = await self._plan(waiting)
        paused = is_paused(plan.policy[PAUSED], datetime.now(UTC))
        if paused and plan.begun is None:
            await self._leave_unanswered(waiting)
            return True
        run = self._begin(waiting, plan)
        if run is None:  # stopped in the meantime
            return True
        if paused:
            run.token.cancel()  # what an earlier process has begun ends in good order
        turn = Turn(self._services, plan, self._deliveries, self._outages, run.token)
        try:
            await self._lanes.carry_out(turn, run)
        finally:
            self._tokens.release(run.run_id)
        self._beside(self._used(run.address, run.person), "budget warnings")
        if not turn.settled:
            await self._wait_again(waiting, run)
        if turn.unstored is not None:
            await self._tell_of_the_store(waiting[-1].message, session_key, turn.unstored)
            raise turn.unstored  # the lane tries again in a while
        self._unstored.discard(session_key)
        return turn.settled

    async def _wait_again(self, waiting: Sequence[_Waiting], run: ActiveRun) -> None:
        """The run was postponed: its messages wait. Where a stop has hit it in the meantime it ends as
        stopped, and says so."""
        keys = [key_of(waits.message) for waits in waiting]
        for waits in waiting:
            self.expect(waits.message, run.session_key)
        if not run.token.cancelled:
            return
        for known in filter(None, map(self._tokens.get, keys)):
            known.token.cancel()  # should the store fail now: they are closed when it is back
        await self._services.inbox.close([waits.row.id for waits in waiting], "cancelled")
        self.forget(keys)
        lost = await self._services.runs.lost_with(run.requests[-1:])
        for one in lost.values():
            await self._lost_runs.end(one)
        self._lanes.wake(run.session_key)

    async def _leave_unanswered(self, waiting: Sequence[_Waiting]) -> None:
        """The chat was paused while they waited: they are not answered later either."""
        await self._services.inbox.close([waits.row.id for waits in waiting], "cancelled")
        keys = [key_of(waits.message) for waits in waiting]
        self.forget(keys)
        self.unmark(keys)

    async def _tell_of_the_store(
        self, message: InboundMessage, session_key: str, error: StoreError
    ) -> None:
        """Once, until something could be stored again."""
        if session_key not in self._unstored:
            self._unstored.add(session_key)
            error_id = await self._services.errors.report(error, f"lane {session_key}")
            say = self._notices.say(message)
            damaged = isinstance(error, StoreDamaged)
            why = "answers_are_lost" if damaged else "answer_waits_for_store"
            await self._notices.reply(message, say(why, id=error_id))

    def expect(self, message: InboundMessage, session_key: str) -> bool:
        """The message waits from now on and can be stopped; false when it did so already."""
        key = key_of(message)
        if self._tokens.get(key) is not None:
            return False
        self._tokens.register(key, session_key, message.sender.id, message.sent_at)
        return True

    def expect_again(self, message: InboundMessage, session_key: str) -> None:
        """A message that a stop had dropped waits after all."""
        key = key_of(message)
        self._dropped.get(session_key, set()).discard(key)
        self._tokens.release(key)
        self.expect(message, session_key)

    def dropped(self, session_key: str, keys: Iterable[InboxKey]) -> None:
        """The rows of these messages were closed, by a stop or after an outage: their marks go. Their
        tokens stay until the lane has read the inbox anew: what it is reading now may still show them
        as open."""
        found = set(keys)
        if found:
            self.unmark(found)
            self._dropped.setdefault(session_key, set()).update(found)
            self._lanes.wake(session_key)

    def forget(self, keys: Iterable[InboxKey]) -> None:
        """These messages wait no more."""
        for key in keys:
            self._tokens.release(key)

    def forget_session(self, session_key: str) -> None:
        """Nothing waits under this key any more: the session has another one."""
        for known in self._tokens.of_session(session_key):
            self._tokens.release(known.request_id)

    # What a turn is made of -----------------------------------------------------------------------

    async def _oldest(self, session_key: str) -> list[_Waiting]:
        """The oldest open message and those of the same sender that follow it, as one turn; a text
        that its client has cut waits a moment for its continuation."""
        while True:
            waiting = await self._open(session_key)
            if not waiting:
                return []
            taken_by = waiting[0].row.run_id
            if taken_by is not None:  # a run that did not come to its end
                return [waits for waits in waiting if waits.row.run_id == taken_by]
            together = _same_sender(waiting)
            more_s = together[-1].message.more_expected_s
            if len(together) < len(waiting) or not more_s:
                return together
            self._gathering[session_key] = together[-1].message.sender.id
            try:
                came = await self._lanes.more_within(session_key, more_s)
            finally:
                del self._gathering[session_key]
            if not came and not any(map(self._is_stopped, together)):
                return together

    async def _open(self, session_key: str) -> list[_Waiting]:
        """The session's open messages, without those that were stopped: their rows are closed by
        the stop, or here when it could not store anything."""
        closed_before = self._dropped.pop(session_key, set[InboxKey]())
        rows = await self._services.inbox.open_turns(session_key)
        self.forget(closed_before)
        read = [(row, readable(row.body)) for row in rows]
        waiting = [_Waiting(row, message) for row, message in read if message is not None]
        stopped = [waits for waits in waiting if self._is_stopped(waits)]
        if stopped:
            await self._services.inbox.close([waits.row.id for waits in stopped], "cancelled")
            self.forget(key_of(waits.message) for waits in stopped)
        return [waits for waits in waiting if waits not in stopped]

    def _is_stopped(self, waits: _Waiting) -> bool:
        known = self._tokens.get(key_of(waits.message))
        return known is not None and known.token.cancelled

    async def _plan(self, waiting: Sequence[_Waiting]) -> TurnPlan:
        row, newest = waiting[0].row, waiting[-1].message
        policies = self._services.policies
        await policies.read(newest.address)
        policy = policies.of(newest.address, newest.sender.id)
        speaker = None
        if not newest.address.private:
            number = await self._services.conversations.speaker(row.session, newest.sender.id)
            speaker = label(newest.sender.name, number)
        return TurnPlan(
            run_id=row.run_id or f"r{secrets.token_hex(8)}",
            session=row.session,
            session_key=row.session_key,
            person=newest.sender.id,
            inbox_ids=tuple(waits.row.id for waits in waiting),
            begun=await self._services.runs.begun(row.run_id) if row.run_id else None,
            question=Question(tuple(waits.message for waits in waiting), speaker),
            channel=self._channels[newest.address.channel],
            models=self._models.named(policy[MODEL]),
            language=self._notices.language(newest),
            timezone=zone_of(policy),
            memory_scope=self._services.memory.sharing.scope(newest.address),
            policy=policy,
            retry_of=await self._retried(row, newest),
            heard=self._overheard.before(newest, policy),
            quiet=is_quiet(policy),
        )

    async def _retried(self, row: InboxRow, message: InboundMessage) -> str | None:
        """The run whose question /retry asks again; None where there is none."""
        if message.command is None or message.command.name != RETRY:
            return None
        return await self._services.conversations.last_run(row.session, besides=row.run_id)

    def _begin(self, waiting: Sequence[_Waiting], plan: TurnPlan) -> ActiveRun | None:
        """The run's token takes the place of its messages'; None when one of them was stopped while
        the plan was made."""
        if any(map(self._is_stopped, waiting)):
            return None
        newest = waiting[-1].message
        token = self._tokens.register(plan.run_id, plan.session_key, plan.person, newest.sent_at)
        requests = tuple(key_of(waits.message) for waits in waiting)
        self.forget(requests)
        self.unmark(requests)
        return ActiveRun(
            plan.run_id,
            plan.session_key,
            newest.address,
            plan.person,
            newest.sent_at,
            requests,
            token,
        )


def _same_sender(waiting: Sequence[_Waiting]) -> list[_Waiting]:
    """The first message and those directly after it by the same person. /retry stands alone."""
    together = [waiting[0]]
    for waits in waiting[1:]:
        same = waits.row.person == waiting[0].row.person and waits.row.run_id is None
        if not same or _is_retry(waits.message) or _is_retry(waiting[0].message):
            break
        together.append(waits)
    return together


def _is_retry(message: InboundMessage) -> bool:
    return message.command is not None and message.command.name == RETRY
