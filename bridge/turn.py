"""One turn: the question is stored, the agent runs, the answer is shown, stored and delivered.

`run` is the half that /cancel ends, `settle` the half that it cannot reach: it makes the history
legal, stores all that the run leaves in one transaction, and delivers (of which /cancel stops the
parts that are not yet sent).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain, repeat
from typing import TypeVar

from agent.calls import CallPorts, ModelCall
from agent.cancel import CancelToken
from agent.errors import ProviderDown
from agent.loop import FAILED_MARK, STOPPED_MARK, AgentPorts, AgentRun, AgentTask
from agent.messages import Message, TextBlock
from agent.prompt import build
from agent.tools import Tool, Toolbox, ToolContext
from bridge.compaction import Compaction
from bridge.delivery import Deliveries, notify
from bridge.display import Display
from bridge.errors import outage_key
from bridge.lanes import ActiveRun, Outcome
from bridge.last_word import LastWord
from bridge.limits.budget import RunBudget, Spender
from bridge.limits.keys import LONGEST_ANSWER, TOOLS_OFF
from bridge.limits.prompt import instructions_of
from bridge.loading import Asked, load, without_run
from bridge.outage import Outages
from bridge.overnight import overnight
from bridge.question import GivenUp, NothingToRetry, user_message
from bridge.run_memory import RunMemory, receipt_lines
from bridge.texts import Say
from bridge.tools import ConversationInfo, CurrentTime
from bridge.turn_plan import TurnPlan, TurnServices
from channels.base import Button, OutboundReply, ReplySink, Resumed, StopControl
from memory.conversations import Context
from memory.errors import StoreError
from memory.outbox import NewReply, OutboxReply
from memory.runs import RunOutcome, Settlement
from memory.tools import ReadTranscript
from memory.usage import UsageRow

log = logging.getLogger(__name__)
T = TypeVar("T")

# Seconds between the tries to store an answer that cannot be stored; the last repeats.
STORE_AGAIN_S = (1.0, 2.0, 4.0, 8.0, 15.0)


class Turn:
    """The job that a lane carries out for one turn."""

    def __init__(
        self,
        services: TurnServices,
        plan: TurnPlan,
        deliveries: Deliveries,
        outages: Outages,
        token: CancelToken,
    ) -> None:
        self._services = services
        self._plan = plan
        self._deliveries = deliveries
        self._outages = outages
        self._token = token
        self._say = Say(services.texts, plan.language, plan.channel.capabilities)
        self._active: ActiveRun | None = None
        asks = None if plan.begun else (plan.session, plan.inbox_ids)
        self._journal = deliveries.log_of(plan.run_id, asks)
        self._sink = self._open_sink()
        longest = plan.policy[LONGEST_ANSWER]
        self._display = Display(self._sink, self._say, longest)
        self._last_word = LastWord(self._say, services.errors, plan.run_id, longest)
        self._agent: AgentRun | None = None
        self._memory: RunMemory | None = None
        self._question: Message | None = None
        self.settled = False  # else its messages wait again
        self.unstored: StoreError | None = None  # why they wait, if nothing could be stored

    # The half that /cancel ends -------------------------------------------------------------------

    async def run(self, run: ActiveRun) -> None:
        """Store the question, then let the agent answer it."""
        plan, services = self._plan, self._services
        self._active = run
        async with self._deliveries.in_order(plan.question.newest.address):
            pass  # what an earlier process has left for this chat goes first
        if plan.given_up:
            raise GivenUp
        claimed = any(message.attachments for message in plan.question.messages)
        if claimed:
            await services.runs.claim(plan.session, plan.run_id, plan.inbox_ids)
        question = self._question = await self._asked()
        # Side by side: what was said before does not depend on the question, and is read meanwhile.
        own_words = await self._own_words()
        context, id_ = await asyncio.gather(
            services.conversations.context(plan.session),
            services.runs.begin(
                plan.session,
                plan.run_id,
                question,
                plan.inbox_ids,
                own_words=own_words,
                claimed=claimed,
            ),
        )
        self._journal.begun()
        context = without_run(context, plan.retry_of)
        memory = self._memory = RunMemory(
            services,
            plan,
            context,
            question,
            own_words=own_words,
            new_messages=lambda: self._agent.last_run_new_messages if self._agent else (),
        )
        asked = Asked(plan.run_id, question, id_)
        self._agent = await self._prepare(run, context, asked, memory)
        await self._agent.execute()

    def _open_sink(self) -> ReplySink:
        plan, newest = self._plan, self._plan.question.newest
        return plan.channel.open_reply(
            newest.address,
            reply_to=newest.message_id or None,
            stop=StopControl(self._say("stop"), plan.run_id),
            journal=self._journal,
            resumed=None if plan.begun is None else Resumed(plan.begun.preview_id),
            silent=plan.quiet,
        )

    async def _asked(self) -> Message:
        """The question: that of a run that was begun before as it was then (a file may be gone by
        now), that of /retry as it was asked."""
        plan, conversations = self._plan, self._services.conversations
        question = None
        if plan.begun:  # it may have been killed before it had stored its question
            question = await conversations.question_of(plan.run_id)
        if question is None and plan.retry_of is not None:
            question = await conversations.question_of(plan.retry_of)
        if question is None:
            question = await user_message(plan.question, plan.channel, self._services.pictures)
        if not question.blocks:
            raise NothingToRetry
        return question

    async def _own_words(self) -> bool:
        """Whether the person wrote all of the question themselves; of /retry, that which is asked
        again."""
        plan = self._plan
        if plan.retry_of is not None:
            return await self._services.runs.own_words(plan.retry_of)
        return all(message.own_words for message in plan.question.messages)

    async def _prepare(
        self, run: ActiveRun, context: Context, asked: Asked, memory: RunMemory
    ) -> AgentRun:
        plan, services = self._plan, self._services
        settings = services.settings
        loaded = load(context, asked, plan.heard)
        models = tuple(map(services.ratios.corrected, plan.models))
        task = AgentTask(
            models=models,
            system=build(
                instructions_of(settings.instructions, plan.policy),
                group=plan.question.speaker is not None,
                memory=await memory.begin(),
            ),
            toolbox=Toolbox(self._tools(memory)),
            history=loaded.working,
            tool_context=ToolContext(plan.run_id, plan.session_key, plan.timezone, run.token),
            limits=settings.limits,
            max_turns=settings.max_turns,
            budget_tokens=settings.budget_tokens,
            calls_before=await services.usage.calls_of(plan.run_id) if plan.begun else 0,
            resumed=loaded.resumed,
        )
        health = self._outages.health_for(plan.session_key)
        budget = RunBudget(services.usage, services.gate, self._spender(), plan.run_id, self._say)
        keeper = Compaction(
            services.compaction(budget), plan.subject, models[0], loaded.starts, health
        )
        calls = CallPorts(
            health,
            self._book,
            self._display.take,
            shrink=services.pictures.smaller,
            reserve=budget.reserve,
        )
        return AgentRun(task, AgentPorts(keeper, self, services.gate, calls))

    def _spender(self) -> Spender:
        plan = self._plan
        return Spender(plan.session, plan.question.newest.address, plan.person, plan.policy)

    def _tools(self, memory: RunMemory) -> Sequence[Tool]:
        session, services = self._plan.session, self._services
        tools: tuple[Tool, ...] = (
            CurrentTime(),
            ConversationInfo(lambda: services.conversations.size(session)),
            ReadTranscript(services.transcripts, session),
            *memory.tools,
            *services.more_tools,
        )
        return [tool for tool in tools if tool.spec.name not in self._plan.policy[TOOLS_OFF]]

    async def append(self, ordinal: int, message: Message) -> None:
        """The loop's journal: one message, committed when this returns."""
        plan = self._plan
        await self._services.conversations.append(plan.session, plan.run_id, [(ordinal, message)])

    async def _book(self, call: ModelCall) -> None:
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

    # The half that it cannot reach ----------------------------------------------------------------

    async def settle(self, outcome: Outcome) -> None:
        """Say the last word, store it with all that the run leaves, and deliver it."""
        if outcome.ending == "interrupted":
            await self._leave_open()
            return  # the rows stay open: the next start takes them up
        if isinstance(outcome.error, ProviderDown) and self._postpone(outcome.error):
            await self._leave_open()
            await self._quietly(self._tell_outage(outcome.error))
            return  # they stay open: this process takes them up when the provider is back
        error = outcome.error
        if isinstance(error, StoreError):
            if self._agent is not None and self._agent.has_answered:
                outcome = Outcome("completed")  # only the last message is not stored yet
            else:
                await self._keep_steps()
                self.unstored = error
                await self._quietly(self._sink.discard())
                return  # they stay open: the lane goes on from there
        text = await self._last_word.of(
            outcome, self._agent, shown=self._display.text, receipts=self._receipts()
        )
        buttons = () if self._memory is None else await self._memory.undo_buttons(self._say)
        if outcome.ending == "completed":
            told, more = await self._overnight()
            text, buttons = (f"{text}\n\n{told}" if told else text), (*buttons, *more)
        parts = await self._sink.compose(
            OutboundReply(text, buttons=buttons, silent=self._plan.quiet)
        )
        reply = await self._stored(outcome, parts)
        self.settled = True
        await self._deliver(outcome, reply)

    async def _keep_steps(self) -> None:
        """Tools have run, and what came of it is not all stored: that first, as soon as it can be."""
        if self._agent is None or not self._agent.has_acted:
            return
        plan, steps = self._plan, list(enumerate(self._agent.steps, start=1))

        async def store() -> None:
            await self._services.conversations.append(plan.session, plan.run_id, steps)
            await self._services.runs.withdraw(plan.run_id)

        await self._once_stored(store)

    def _receipts(self) -> Sequence[str]:
        """What the run has written down for good."""
        if self._memory is None:
            return ()
        private = self._plan.question.newest.address.private
        return receipt_lines(self._say, self._memory.receipts, private=private)

    async def _overnight(self) -> tuple[str, tuple[Button, ...]]:
        memory = self._services.memory
        if not memory.tells or self._plan.quiet:
            return "", ()
        return await overnight(memory.nights, self._plan.memory_scope, self._say)

    def _postpone(self, down: ProviderDown) -> bool:
        """Whether the question waits for the provider; a stopped one does not."""
        return not self._token.cancelled and self._outages.postpone(self._plan.session_key, down)

    async def _leave_open(self) -> None:
        """The rows stay open, and nothing is left in the chat."""
        await self._quietly(self._book_calls())
        await self._quietly(self._services.runs.withdraw(self._plan.run_id))
        await self._quietly(self._sink.discard())

    async def _tell_outage(self, down: ProviderDown) -> None:
        if not self._outages.tell_once(self._plan.session_key, down.provider):
            return
        error_id = await self._services.errors.report(down, f"run {self._plan.run_id}")
        until = f"{down.until.astimezone(self._plan.timezone):%H:%M}"
        await self._notice(self._say(outage_key(down), until=until, id=error_id))

    async def _stored(self, outcome: Outcome, parts: tuple[str, ...]) -> OutboxReply:
        """The reply in the outbox, with all that the run leaves. Nothing goes out before: what is not
        stored would come twice."""
        services = self._services

        async def store() -> OutboxReply:
            await self._book_calls()
            row = await services.runs.settle(self._settlement(outcome), self._reply(outcome, parts))
            return await services.outbox.get(row)

        return await self._once_stored(store)

    async def _once_stored(self, store: Callable[[], Awaitable[T]]) -> T:
        """What `store` returns, tried again as long as the store cannot write; the chat is told
        once."""
        told = False
        for wait_s in chain(STORE_AGAIN_S, repeat(STORE_AGAIN_S[-1])):
            try:
                return await store()
            except StoreError as error:
                error_id = await self._services.errors.report(error, f"run {self._plan.run_id}")
                if not told:
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
        )

    def _own_messages(self, outcome: Outcome) -> list[tuple[int, Message]]:
        if self._question is None:
            return []
        messages = [(0, self._question)]
        mark = STOPPED_MARK if outcome.ending == "cancelled" else FAILED_MARK
        if self._agent is None:
            messages.append((1, Message("assistant", (TextBlock(mark),))))
        else:
            self._agent.close(mark)
            messages += enumerate(self._agent.last_run_new_messages, start=1)
        return messages

    def _worse_attempt(self, outcome: Outcome) -> str | None:
        """Of a /retry and what it was to replace, the one that has no answer leaves the context."""
        plan = self._plan
        if plan.retry_of is None or self._question is None:
            return None
        no_answer = self._agent is None or self._agent.gave_no_answer
        answered = outcome.ending == "completed" and not no_answer
        return plan.retry_of if answered else plan.run_id

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

    async def _book_calls(self) -> None:
        """Every call again: those that were cancelled are not booked yet."""
        calls = self._agent.calls if self._agent is not None else []
        await self._services.usage.book([self._usage_row(call) for call in calls])
        await self._services.usage.settle(self._plan.run_id)

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
        if self._active is not None:
            self._active.ended_as = ended_as

    async def _notice(self, text: str) -> None:
        plan, newest = self._plan, self._plan.question.newest
        sink = plan.channel.open_reply(newest.address, reply_to=newest.message_id or None)
        await notify(sink, text, f"run {plan.run_id}", silent=plan.quiet)

    async def _quietly(self, step: Awaitable[None]) -> None:
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
