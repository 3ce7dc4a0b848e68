"""One turn: the question is stored, the agent runs, the answer is stored, shown and delivered.

`run` is the half that /cancel ends, `settle` the half that it cannot reach: it makes the history
legal, books what was used, and delivers (of which /cancel stops the parts that are not yet sent).
Everything it writes can be written again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence

from agent.calls import CallPorts, ModelCall
from agent.cancel import CancelToken
from agent.errors import ProviderDown
from agent.loop import FAILED_MARK, STOPPED_MARK, AgentPorts, AgentRun, AgentTask
from agent.messages import Message, TextBlock
from agent.prompt import build
from agent.tools import Tool, Toolbox, ToolContext
from bridge.compaction import Compaction
from bridge.delivery import Delivery
from bridge.display import Display
from bridge.errors import outage_key
from bridge.lanes import ActiveRun, Outcome
from bridge.last_word import LastWord
from bridge.loading import load, without_run
from bridge.outage import Outages
from bridge.question import NothingToRetry, user_message
from bridge.texts import Say
from bridge.tools import ConversationInfo, CurrentTime
from bridge.turn_plan import TurnPlan, TurnServices
from channels.base import ReplySink, StopControl
from channels.errors import ChannelUnavailable
from memory.conversations import Context
from memory.tools import ReadTranscript
from memory.usage import UsageRow

log = logging.getLogger(__name__)


class Turn:
    """The job that a lane carries out for one turn."""

    def __init__(
        self, services: TurnServices, plan: TurnPlan, outages: Outages, token: CancelToken
    ) -> None:
        self._services = services
        self._plan = plan
        self._outages = outages
        self._token = token
        self._say = Say(services.texts, plan.language, plan.channel.capabilities)
        self._active: ActiveRun | None = None
        self._delivery = self._open_delivery(token)
        self._display = Display(self._delivery.sink, self._say("retrying"))
        self._last_word = LastWord(self._say, services.errors, plan.run_id, plan.broken_off)
        self._agent: AgentRun | None = None
        self._question: Message | None = None
        self.ended_as: str | None = None  # how the inbox rows are to be closed; None: they stay

    # The half that /cancel ends -------------------------------------------------------------------

    async def run(self, run: ActiveRun) -> None:
        """Store the question, then let the agent answer it."""
        plan, conversations = self._plan, self._services.conversations
        self._active = run
        question = self._question = await self._asked()
        # Side by side: what was said before does not depend on the question, and is read meanwhile.
        context, _ = await asyncio.gather(
            conversations.context(plan.session),
            conversations.begin(plan.session, plan.run_id, question, plan.inbox_ids),
        )
        self._agent = await self._prepare(run, context, question)
        await self._agent.execute()

    def _open_delivery(self, token: CancelToken) -> Delivery:
        plan, newest = self._plan, self._plan.question.newest
        stop = StopControl(self._say("stop"), plan.run_id)

        def open_reply() -> ReplySink:
            return plan.channel.open_reply(newest.address, reply_to=newest.message_id, stop=stop)

        return Delivery(open_reply, token, self._services.errors, f"run {plan.run_id}")

    async def _asked(self) -> Message:
        """The question: that of a run that was begun before as it was then (a file may be gone by
        now), that of /retry as it was asked."""
        plan, conversations = self._plan, self._services.conversations
        question = None
        asked_before = plan.run_id if plan.taken_up else plan.retry_of
        if asked_before is not None:
            question = await conversations.question_of(asked_before)
        if question is None:
            question = await user_message(plan.question, plan.channel, self._services.pictures)
        if not question.blocks and not plan.taken_up:
            raise NothingToRetry
        return question

    async def _prepare(self, run: ActiveRun, context: Context, question: Message) -> AgentRun:
        plan, services = self._plan, self._services
        settings = services.settings
        loaded = load(without_run(context, plan.retry_of), plan.run_id, question)
        models = tuple(map(services.ratios.corrected, plan.models))
        task = AgentTask(
            models=models,
            system=build(settings.instructions, group=plan.question.speaker is not None),
            toolbox=Toolbox(self._tools()),
            history=loaded.working,
            tool_context=ToolContext(plan.run_id, plan.session_key, plan.timezone, run.token),
            limits=settings.limits,
            max_turns=settings.max_turns,
            budget_tokens=settings.budget_tokens,
            calls_before=await services.usage.calls_of(plan.run_id) if plan.taken_up else 0,
            resumed=loaded.resumed,
        )
        health = self._outages.health_for(plan.session_key)
        keeper = Compaction(services.compaction, plan.subject, models[0], loaded.starts, health)
        shrink = services.pictures.smaller
        calls = CallPorts(health, self._book, self._display.take, shrink=shrink)
        return AgentRun(task, AgentPorts(keeper, self, services.gate, calls))

    def _tools(self) -> Sequence[Tool]:
        session, services = self._plan.session, self._services
        return (
            CurrentTime(),
            ConversationInfo(lambda: services.conversations.size(session)),
            ReadTranscript(services.transcripts, session),
            *services.more_tools,
        )

    async def append(self, ordinal: int, message: Message) -> None:
        """The loop's journal: one message, committed when this returns."""
        await self._store([(ordinal, message)])

    async def _store(self, messages: Sequence[tuple[int, Message]]) -> None:
        plan = self._plan
        await self._services.conversations.append(plan.session, plan.run_id, messages)

    async def _book(self, call: ModelCall) -> None:
        await self._services.usage.book([self._usage_row(call)])
        await self._services.ratios.learn(call)

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
        )

    # The half that it cannot reach ----------------------------------------------------------------

    async def settle(self, outcome: Outcome) -> None:
        """Store and book everything again, then say the last word."""
        if outcome.ending == "interrupted":
            await self._leave_open()
            return  # the rows stay open: the next start takes them up
        if isinstance(outcome.error, ProviderDown) and self._postpone(outcome.error):
            await self._leave_open()
            await self._quietly(self._tell_outage(outcome.error))
            return  # they stay open: this process takes them up when the provider is back
        await self._quietly(self._keep(outcome))
        await self._quietly(self._keep_one_attempt(outcome))
        reply = await self._last_word.of(outcome, self._agent, shown=self._display.text)
        if await self._delivered(outcome, reply):
            self.ended_as = _OUTCOMES[outcome.ending]

    def _postpone(self, down: ProviderDown) -> bool:
        """Whether the question waits for the provider; a stopped one does not."""
        return not self._token.cancelled and self._outages.postpone(self._plan.session_key, down)

    async def _leave_open(self) -> None:
        """The rows stay open, and nothing is left in the chat."""
        await self._quietly(self._book_calls())
        await self._quietly(self._delivery.discard())
        await self._quietly(self._services.inbox.withdraw(self._plan.inbox_ids))

    async def _tell_outage(self, down: ProviderDown) -> None:
        if not self._outages.tell_once(self._plan.session_key, down.provider):
            return
        error_id = await self._services.errors.report(down, f"run {self._plan.run_id}")
        until = f"{down.until.astimezone(self._plan.timezone):%H:%M}"
        await self._delivery.notice(self._say(outage_key(down), until=until, id=error_id))

    async def _keep(self, outcome: Outcome) -> None:
        """The run's own messages, legal whatever happened, and each of its model calls."""
        if self._question is None:
            return
        messages = [(0, self._question)]
        mark = STOPPED_MARK if outcome.ending == "cancelled" else FAILED_MARK
        if self._agent is None:
            messages.append((1, Message("assistant", (TextBlock(mark),))))
        else:
            self._agent.close(mark)
            messages += enumerate(self._agent.last_run_new_messages, start=1)
        await self._store(messages)
        await self._book_calls()

    async def _keep_one_attempt(self, outcome: Outcome) -> None:
        """Of a /retry and what it was to replace, the one that has no answer leaves the context."""
        plan, worse = self._plan, self._plan.retry_of
        if worse is None or self._question is None:
            return
        answered = outcome.ending == "completed" and not self._gave_no_answer
        await self._services.conversations.leave_out(
            plan.session, worse if answered else plan.run_id
        )

    @property
    def _gave_no_answer(self) -> bool:
        return self._agent is None or self._agent.gave_no_answer

    async def _book_calls(self) -> None:
        """Every call again: those that were cancelled are not booked yet."""
        calls = self._agent.calls if self._agent is not None else []
        await self._services.usage.book([self._usage_row(call) for call in calls])

    async def _delivered(self, outcome: Outcome, text: str) -> bool:
        """Whether nothing is left to deliver. An answer whose platform stays out of reach waits in
        the store, and its rows stay open: the next message here, or the next start, takes it up."""
        try:
            await self._deliver(outcome, text)
        except ChannelUnavailable as error:
            await self._services.errors.report(error, f"delivery of run {self._plan.run_id}")
            return outcome.ending == "cancelled"
        except Exception as error:  # noqa: BLE001 - a border: reported, told, and the turn still ends
            place = f"delivery of run {self._plan.run_id}"
            error_id = await self._services.errors.report(error, place)
            await self._quietly(self._delivery.notice(self._say("error", id=error_id)))
        return True

    async def _deliver(self, outcome: Outcome, text: str) -> None:
        stoppable = outcome.ending != "cancelled"
        part = await self._delivery.finish(text, stoppable=stoppable)
        self._run_is_over(_OUTCOMES[outcome.ending])
        if part is not None:
            some = self._say("stopped_parts", sent=part.sent, of=part.of)
            await self._delivery.notice(some if part.sent else self._say("stopped"))
        elif stoppable and self._token.cancelled:  # the stop came while the last part went out
            await self._delivery.notice(self._say("nothing_running_complete"))

    def _run_is_over(self, ended_as: str) -> None:
        if self._active is not None:
            self._active.ended_as = ended_as

    async def _quietly(self, step: Awaitable[None]) -> None:
        """Carry on with settling whatever one part of it does: the parts do not need each other."""
        try:
            await step
        except Exception as error:  # noqa: BLE001 - a border: reported, and the turn still ends
            await self._services.errors.report(error, f"settling run {self._plan.run_id}")


_OUTCOMES = {"completed": "answered", "cancelled": "cancelled", "failed": "failed"}
