"""One turn: the question is stored, the agent runs, the answer is shown.

`run` is the half that /cancel ends; `settle` (`bridge.runs.settling`) the half that it cannot reach.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agent.calls import CallPorts
from agent.cancel import CancelToken
from agent.loop import AgentPorts, AgentRun, AgentTask
from agent.messages import Message
from agent.prompt import build
from agent.tools import Tool, Toolbox, ToolContext
from bridge.lanes import ActiveRun, Outcome
from bridge.limits.budget import RunBudget, Spender
from bridge.limits.keys import LONGEST_ANSWER, TOOLS_OFF
from bridge.limits.prompt import instructions_of
from bridge.runs.compaction import Compaction
from bridge.runs.delivery import Deliveries
from bridge.runs.display import Display
from bridge.runs.loading import Asked, attempts, effects_of, load, start_of, without_run
from bridge.runs.outage import Outages
from bridge.runs.question import GivenUp, NothingToRetry, user_message
from bridge.runs.run_gate import AtBegin, RunGate
from bridge.runs.run_memory import RunMemory
from bridge.runs.settling import Ran, Settling
from bridge.runs.sparing import Sparing
from bridge.runs.turn_plan import TurnPlan, TurnServices
from bridge.session import memory_scope
from bridge.texts import Say
from bridge.tools import ConversationInfo, CurrentTime
from channels.base import ReplySink, Resumed, StopControl
from memory.conversations import Context
from memory.errors import StoreError
from memory.runs import Before
from memory.tools import ReadTranscript


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
        self._say = Say(services.texts, plan.language, plan.channel.capabilities)
        asks = None if plan.begun else (plan.session, plan.inbox_ids)
        self._journal = deliveries.log_of(plan.run_id, asks)
        sink = self._open_sink()
        self._display = Display(sink, self._say, plan.policy[LONGEST_ANSWER])
        self._ran = Ran()
        self._settling = Settling(
            services,
            plan,
            deliveries,
            outages,
            token,
            sink,
            self._journal,
            self._display,
            self._say,
            self._ran,
        )

    @property
    def settled(self) -> bool:
        """Whether it is over; else its messages wait again."""
        return self._settling.settled

    @property
    def unstored(self) -> StoreError | None:
        """Why they wait, if nothing could be stored."""
        return self._settling.unstored

    async def settle(self, outcome: Outcome) -> None:
        """The half that /cancel cannot reach."""
        await self._settling.settle(outcome)

    async def run(self, run: ActiveRun) -> None:
        """Store the question, then let the agent answer it."""
        plan, services = self._plan, self._services
        self._ran.active = run
        async with self._deliveries.in_order(plan.question.newest.address):
            pass  # what an earlier process has left for this chat goes first
        if plan.given_up:
            raise GivenUp
        claimed = any(message.attachments for message in plan.question.messages)
        if claimed:
            await services.runs.claim(plan.session, plan.run_id, plan.inbox_ids)
        question = self._ran.question = await self._asked()
        own_words = await self._own_words()
        id_, before, began = await self._begin(question, own_words=own_words, claimed=claimed)
        context = before.context
        self._journal.begun()
        done = effects_of(context, attempts(context, plan.retry_of), services.acting)
        self._ran.acting, self._ran.acted_before = services.acting, bool(done)
        start = start_of(context, id_, plan.retry_of)
        context = without_run(context, plan.retry_of)
        memory = self._ran.memory = RunMemory(
            services,
            plan,
            before,
            question,
            own_words=own_words,
            new_messages=self._new_messages,
        )
        asked = Asked(plan.run_id, question, start, "\n\n".join(filter(None, (plan.heard, done))))
        gate = self._gate(memory, began)
        agent = self._ran.agent = await self._prepare(run, context, asked, gate)
        to = plan.question.newest.address
        async with services.slots.one((to.channel, to.account, to.chat), (to.channel, plan.person)):
            await agent.execute()

    async def _begin(
        self, question: Message, *, own_words: bool, claimed: bool
    ) -> tuple[int, Before, AtBegin]:
        """The question is stored, and meanwhile all is read that the run goes by: it does not depend on
        the question. Its row id, and both."""
        plan, services = self._plan, self._services
        windows = services.gate.windows()
        id_, before = await asyncio.gather(
            services.runs.begin(
                plan.session,
                plan.run_id,
                question,
                plan.inbox_ids,
                own_words=own_words,
                overheard=bool(plan.heard),
                claimed=claimed,
                retry_of=plan.retry_of,
            ),
            services.runs.before(
                plan.session,
                plan.memory_scope,
                memory_scope(plan.question.newest.address),
                [window.since for window in windows],
            ),
        )
        spent = services.gate.used(windows, before.costs)
        return id_, before, AtBegin(spent, asyncio.get_running_loop().time())

    def _new_messages(self) -> Sequence[Message]:
        agent = self._ran.agent
        return agent.last_run_new_messages if agent is not None else ()

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
        self, run: ActiveRun, context: Context, asked: Asked, gate: RunGate
    ) -> AgentRun:
        plan, services = self._plan, self._services
        settings = services.settings
        sparing = Sparing(
            services.refused_images,
            services.pictures,
            session=plan.session,
            run_id=plan.run_id,
            context=context,
        )
        loaded = await sparing.spare(load(context, asked), plan.models[0].name)
        models = tuple(map(services.ratios.corrected, plan.models))
        task = AgentTask(
            models=models,
            system=self._system(await gate.memory.begin()),
            toolbox=Toolbox(self._tools(gate.memory)),
            history=loaded.working,
            tool_context=ToolContext(plan.run_id, plan.session_key, plan.timezone, run.token),
            limits=settings.limits,
            max_turns=settings.max_turns,
            budget_tokens=settings.budget_tokens,
            calls_before=await services.usage.calls_of(plan.run_id) if plan.begun else 0,
            resumed=loaded.resumed,
        )
        health = self._outages.health_for(plan.session_key)
        keeper = Compaction(
            services.compaction(models[0]),
            plan.subject(context.read_at),
            models[0].sizes,
            loaded.starts,
            health,
        )
        calls = CallPorts(
            health,
            self._settling.book,
            self._display.take,
            shrink=services.pictures.smaller,
            spare=sparing.note,
            reserve=gate.reserve,
            renew=gate.renew,
        )
        return AgentRun(task, AgentPorts(keeper, self, gate, calls))

    def _gate(self, memory: RunMemory, began: AtBegin) -> RunGate:
        plan, services = self._plan, self._services
        budget = RunBudget(services.gate, self._spender(), plan.run_id, self._say)
        scope = plan.memory_scope
        return RunGate(
            services.runs, services.gate, began, budget, memory, self._system, plan.session, scope
        )

    def _system(self, memory: str) -> str:
        plan = self._plan
        instructions = instructions_of(self._services.settings.instructions, plan.policy)
        return build(instructions, group=plan.question.speaker is not None, memory=memory)

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
