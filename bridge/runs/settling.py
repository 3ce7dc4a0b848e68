"""The end of a turn, which /cancel cannot reach: the history becomes legal, all that the run leaves is
stored in one transaction, and the answer is delivered (of which /cancel stops the parts that are not
yet sent).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TypeVar

from agent.calls import ModelCall
from agent.cancel import CancelToken
from agent.errors import ProviderDown
from agent.loop import FAILED_MARK, STOPPED_MARK, AgentRun
from agent.messages import Message, TextBlock
from bridge.chats.keeper import place_of
from bridge.errors import outage_key
from bridge.lanes import ActiveRun, Outcome
from bridge.limits.keys import LONGEST_ANSWER
from bridge.remembering.overnight import overnight
from bridge.runs.delivery import Deliveries, ReplyLog, notify
from bridge.runs.display import Display
from bridge.runs.last_word import LastWord
from bridge.runs.outage import Outages
from bridge.runs.run_memory import RunMemory, receipt_lines
from bridge.runs.turn_plan import TurnPlan, TurnServices
from bridge.runs.zone_question import zone_question
from bridge.texts import Say
from channels.base import Button, OutboundReply, ReplySink
from memory.errors import StoreDamaged, StoreError
from memory.outbox import NewReply, OutboxReply
from memory.runs import RunOutcome, Settlement
from memory.usage import UsageRow

T = TypeVar("T")
log = logging.getLogger(__name__)

# Seconds between the tries to store an answer that cannot be stored; the last repeats.
STORE_AGAIN_S = (1.0, 2.0, 4.0, 8.0, 15.0)


@dataclass(slots=True)
class Ran:
    """How far a turn has come: None is what it has not reached. `acting`: tools with effects;
    `acted_before`: what /retry asks again has had some already."""

    active: ActiveRun | None = None
    question: Message | None = None
    memory: RunMemory | None = None
    agent: AgentRun | None = None
    acting: frozenset[str] = frozenset()
    acted_before: bool = False

    @property
    def has_acted(self) -> bool:
        """Whether a tool with effects was called, and began."""
        own = () if self.agent is None else self.agent.last_run_new_messages
        results = (result for message in own for result in message.tool_results)
        never = {result.tool_use_id for result in results if result.outcome == "not_run"}
        calls = (call for message in own for call in message.tool_uses)
        return any(call.name in self.acting and call.id not in never for call in calls)


class Settling:
    """Of one turn, once. `settled` tells afterwards whether it is over: else its messages wait again,
    for what could not be stored because of `unstored`."""

    def __init__(
        self,
        services: TurnServices,
        plan: TurnPlan,
        deliveries: Deliveries,
        outages: Outages,
        token: CancelToken,
        sink: ReplySink,
        journal: ReplyLog,
        display: Display,
        say: Say,
        ran: Ran,
    ) -> None:
        self._services = services
        self._plan = plan
        self._deliveries = deliveries
        self._outages = outages
        self._token = token
        self._sink = sink
        self._journal = journal
        self._display = display
        self._say = say
        self._ran = ran
        longest = plan.policy[LONGEST_ANSWER]
        self._last_word = LastWord(say, services.errors, plan.run_id, longest)
        self.settled = False
        self.unstored: StoreError | None = None

    async def book(self, call: ModelCall) -> None:
        """What cannot be booked now is booked when the run is settled."""
        await self._quietly(self._services.usage.book([self._usage_row(call)]))
        await self._quietly(self._services.ratios.learn(call))

    def _usage_row(self, call: ModelCall) -> UsageRow:
        plan = self._plan
        return UsageRow(
            plan.run_id,
            call.number,
            plan.session,
            plan.person,
            call.model.name,
            "answer",
            call.outcome,
            call.usage,
            call.cost_microusd,
            plan.timezone,
        )

    async def settle(self, outcome: Outcome) -> None:
        """Say the last word, store it with all that the run leaves, and deliver it."""
        if outcome.ending == "interrupted":
            await self._leave_open()
            return  # the rows stay open: the next start takes them up
        if outcome.ending == "failed" and self._token.cancelled:  # just before this
            outcome = Outcome("cancelled", outcome.error)
        if isinstance(outcome.error, ProviderDown) and self._postpone(outcome.error):
            await self._wait_for(outcome.error)
            return  # the rows stay open: this process takes them up when the provider is back
        error = outcome.error
        if isinstance(error, StoreError) and outcome.ending != "cancelled":
            if self._ran.agent is not None and self._ran.agent.has_answered:
                outcome = Outcome("completed")  # only the last message is not stored yet
            else:
                self.unstored = error
                await self._quietly(self._keep_steps())
                await self._quietly(self._sink.discard())
                return  # they stay open: the lane goes on from there
        text = await self._last_word.of(
            outcome, self._ran.agent, shown=self._display.text, receipts=self._receipts()
        )
        memory = self._ran.memory
        buttons = () if memory is None else await memory.undo_buttons(self._say)
        if outcome.ending == "completed":
            over = await self._private_over(), ()
            for told, more in (over, await self._overnight(), await self._zone_question()):
                text, buttons = (f"{text}\n\n{told}" if told else text), (*buttons, *more)
        parts = await self._sink.compose(
            OutboundReply(text, buttons=buttons, silent=self._plan.quiet)
        )
        try:
            reply = await self._stored(outcome, parts)
        except StoreDamaged as damage:  # what is in the file is given up: so it cannot come twice
            self.unstored = damage
            await self._quietly(self._sink.finish(OutboundReply(text, silent=self._plan.quiet)))
            return
        self.settled = True
        await self._deliver(outcome, reply)

    async def _keep_steps(self) -> None:
        """Tools have run, and what came of it is not all stored: that first, as soon as it can be."""
        if self._ran.agent is None or not self._ran.agent.has_acted:
            return
        plan, steps = self._plan, list(enumerate(self._ran.agent.steps, start=1))

        async def store() -> None:
            await self._services.conversations.append(plan.session, plan.run_id, steps)
            await self._services.runs.withdraw(plan.run_id)

        await self._once_stored(store)

    def _receipts(self) -> Sequence[str]:
        """What the run has written down for good, and that it was not to write something down."""
        if self._ran.memory is None:
            return ()
        where = self._services.memory.sharing.audience(self._plan.question.newest.address)
        lines = receipt_lines(self._say, self._ran.memory.receipts, where)
        return [*lines, self._say("memory_kept_back")] if self._ran.memory.kept_back else lines

    async def _private_over(self) -> str:
        """Nobody goes on unknowingly where things are kept."""
        to = self._plan.question.newest.address
        if not to.private:
            return ""
        try:
            over = await self._services.talks.tell_over(place_of(to))
        except StoreError as error:
            log.warning("the end of a private conversation is told another time: %s", error)
            return ""
        return self._say("private_timed_out") if over else ""

    async def _overnight(self) -> tuple[str, tuple[Button, ...]]:
        memory = self._services.memory
        if not memory.tells or self._plan.quiet:
            return "", ()
        chat = memory.sharing.chat(self._plan.question.newest.address)
        return await overnight(memory.nights, chat, self._say)

    async def _zone_question(self) -> tuple[str, tuple[Button, ...]]:
        agent, memory = self._ran.agent, self._ran.memory
        said = () if agent is None else agent.last_run_new_messages
        remembered = memory is not None and bool(memory.receipts)
        return await zone_question(
            self._services, self._plan, said, remembered=remembered, say=self._say
        )

    def _postpone(self, down: ProviderDown) -> bool:
        """Whether the question waits for the provider; a stopped one does not."""
        return not self._token.cancelled and self._outages.postpone(self._plan.session_key, down)

    async def _wait_for(self, down: ProviderDown) -> None:
        """What was shown stays, with the sentence below it; else the chat is told once."""
        first = self._outages.tell_once(self._plan.session_key, down.provider)
        shown = self._display.text
        if shown:
            await self._quietly(self._services.usage.settle(self._plan.run_id, self._calls()))
            await self._quietly(self._end_shown(shown, down))
            return
        await self._leave_open()
        if first:
            await self._quietly(self._tell_outage(down))

    async def _end_shown(self, shown: str, down: ProviderDown) -> None:
        """The answer that comes later has a message of its own."""
        text = self._last_word.so_far(shown, await self._outage(down))
        ended = False
        try:
            what = f"run {self._plan.run_id}"
            ended = await notify(self._sink, text, what, silent=self._plan.quiet)
        finally:
            await self._withdraw(ended=ended)

    async def _leave_open(self) -> None:
        """The rows stay open, and nothing is left in the chat."""
        await self._quietly(self._services.usage.settle(self._plan.run_id, self._calls()))
        await self._quietly(self._withdraw())
        await self._quietly(self._sink.discard())

    async def _withdraw(self, *, ended: bool = False) -> None:
        try:
            await self._services.runs.withdraw(self._plan.run_id, ended=ended)
        except StoreDamaged as error:  # there will be nothing to take up
            error_id = await self._services.errors.report(error, f"run {self._plan.run_id}")
            await self._notice(self._say("answers_are_lost", id=error_id))

    async def _tell_outage(self, down: ProviderDown) -> None:
        await self._notice(await self._outage(down))

    async def _outage(self, down: ProviderDown) -> str:
        error_id = await self._services.errors.report(down, f"run {self._plan.run_id}")
        until = f"{down.until.astimezone(self._plan.timezone):%H:%M}"
        return self._say(outage_key(down), until=until, id=error_id)

    async def _stored(self, outcome: Outcome, parts: tuple[str, ...]) -> OutboxReply:
        """The reply in the outbox, with all that the run leaves. Nothing goes out before: what is not
        stored would come twice."""
        runs = self._services.runs
        return await self._once_stored(
            lambda: runs.settle(self._settlement(outcome), self._reply(outcome, parts))
        )

    async def _once_stored(self, store: Callable[[], Awaitable[T]]) -> T:
        """What `store` returns, tried again as long as the store cannot write; the chat is told
        once. Raises `StoreDamaged`."""
        told = False
        for wait_s in chain(STORE_AGAIN_S, repeat(STORE_AGAIN_S[-1])):
            try:
                return await store()
            except StoreDamaged:
                raise
            except StoreError as error:
                error_id = await self._services.errors.report(error, f"run {self._plan.run_id}")
                if not told and not self._token.cancelled:  # a stop tells of itself
                    await self._notice(self._say("answer_waits_for_store", id=error_id))
                told = True
            await asyncio.sleep(wait_s)
        raise AssertionError("it is tried for ever")

    def _settlement(self, outcome: Outcome) -> Settlement:
        """The run's own messages, legal whatever happened, and what else it leaves."""
        plan = self._plan
        return Settlement(
            plan.session,
            plan.run_id,
            _OUTCOMES[outcome.ending],
            self._own_messages(outcome),
            plan.inbox_ids,
            self._worse_attempt(outcome),
            self._services.memory.sharing.scope(plan.question.newest.address),
            self._calls(),
        )

    def _own_messages(self, outcome: Outcome) -> list[tuple[int, Message]]:
        if self._ran.question is None:
            return []
        messages = [(0, self._ran.question)]
        mark = STOPPED_MARK if outcome.ending == "cancelled" else FAILED_MARK
        if self._ran.agent is None:
            messages.append((1, Message("assistant", (TextBlock(mark),))))
        else:
            self._ran.agent.close(mark)
            messages += enumerate(self._ran.agent.last_run_new_messages, start=1)
        return messages

    def _worse_attempt(self, outcome: Outcome) -> str | None:
        """Of a /retry and what it was to replace, the one without an answer leaves the context; not
        one that has had effects: the model would not know of them."""
        plan, agent = self._plan, self._ran.agent
        if plan.retry_of is None or self._ran.question is None:
            return None
        if outcome.ending == "completed" and agent is not None and not agent.gave_no_answer:
            return None if self._ran.acted_before else plan.retry_of
        return None if self._ran.has_acted else plan.run_id

    def _reply(self, outcome: Outcome, parts: tuple[str, ...]) -> NewReply:
        plan, newest = self._plan, self._plan.question.newest
        before = plan.begun.preview_id if plan.begun else None
        stoppable = outcome.ending != "cancelled"
        return NewReply(
            plan.run_id,
            newest.address.private,
            newest.message_id or None,
            plan.language,
            parts,
            self._journal.preview_id or before,
            # A stop that acts from now on is stored after this, and marks the reply itself.
            halted=stoppable and self._token.cancelled,
        )

    def _calls(self) -> Sequence[UsageRow]:
        """Every call again: those that were cancelled are not booked yet."""
        calls = self._ran.agent.calls if self._ran.agent is not None else []
        return [self._usage_row(call) for call in calls]

    async def _deliver(self, outcome: Outcome, reply: OutboxReply) -> None:
        stoppable = outcome.ending != "cancelled"
        async with self._deliveries.in_order(self._plan.question.newest.address):
            part = await self._deliveries.deliver(
                reply, self._sink, self._journal, self._token if stoppable else None
            )
            self._run_is_over(_OUTCOMES[outcome.ending])
            await self._deliveries.close(reply, self._sink, self._journal)
        if part is not None:
            some = self._say("stopped_parts", sent=part.sent, of=part.of)
            await self._notice(some if part.sent else self._say("stopped"))
        elif stoppable and self._token.cancelled:  # the stop came while the last part went out
            await self._notice(self._say("nothing_running_complete"))

    def _run_is_over(self, ended_as: str) -> None:
        if self._ran.active is not None:
            self._ran.active.end(ended_as)

    async def _notice(self, text: str) -> None:
        plan, newest = self._plan, self._plan.question.newest
        sink = plan.channel.open_reply(newest.address, reply_to=newest.message_id or None)
        await notify(sink, text, f"run {plan.run_id}", silent=plan.quiet)

    async def _quietly(self, step: Awaitable[object]) -> None:
        """Carry on with settling whatever one part of it does: the parts do not need each other."""
        try:
            await step
        except Exception as error:  # noqa: BLE001 - a border: reported, and the turn still ends
            await self._services.errors.report(error, f"settling run {self._plan.run_id}")


_OUTCOMES: Mapping[str, RunOutcome] = {
    "completed": "answered",
    "cancelled": "cancelled",
    "failed": "failed",
}
