"""One turn: the question is stored, the agent runs, the answer is stored, shown and delivered.

`run` is the half that /cancel ends, `settle` the half that it cannot reach: it makes the history
legal, books what was used, and delivers. Everything it writes can be written again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from agent.context import TurnWindow
from agent.errors import LimitReached
from agent.events import RunEvent, StepEnded, TextShown
from agent.loop import FAILED_MARK, STOPPED_MARK, AgentPorts, AgentRun, AgentTask, ModelCall
from agent.messages import Message, TextBlock
from agent.tools import Tool, Toolbox, ToolContext
from bridge.errors import ErrorReporter, sentence_key
from bridge.gate import MonthlyGate
from bridge.lanes import ActiveRun, Outcome
from bridge.models import ChatModel
from bridge.question import FileUnreadable, Question, user_message
from bridge.texts import Texts
from bridge.tools import ConversationInfo, CurrentTime
from channels.base import Channel, OutboundReply, ReplySink, StopControl
from channels.errors import ChannelError, ChannelUnavailable, Unreachable
from memory.conversations import Conversations, StoredMessage
from memory.daily import DailyFiles
from memory.inbox import Inbox
from memory.people import People
from memory.usage import UsageRow, UsageStore

log = logging.getLogger(__name__)

# Seconds between the tries to deliver an answer while its platform is out of reach.
DELIVERY_WAITS_S = (1, 2, 5, 10, 30, 60)


@dataclass(frozen=True, slots=True)
class TurnServices:
    """What every turn uses; built once by the composition root."""

    conversations: Conversations
    inbox: Inbox
    usage: UsageStore
    people: People
    daily: DailyFiles
    errors: ErrorReporter
    texts: Texts
    gate: MonthlyGate
    max_turns: int


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """What is fixed when a turn starts: target, model, language, scope. Nothing is looked up later.

    `inbox_ids` are the rows that this turn answers; `session` is the session's row id; `taken_up`:
    an earlier process had begun this run.
    """

    run_id: str
    session: int
    session_key: str
    person: str
    inbox_ids: tuple[int, ...]
    taken_up: bool
    question: Question
    channel: Channel
    model: ChatModel
    language: str
    timezone: tzinfo
    memory_scope: str


@dataclass(slots=True)
class _Shown:
    """Text of the answer that the preview was given, a paragraph between steps."""

    parts: list[str] = field(default_factory=list[str])
    paragraph_due: bool = False

    @property
    def text(self) -> str:
        return "".join(self.parts).strip()


class Turn:
    """The job that a lane carries out for one turn."""

    def __init__(self, services: TurnServices, plan: TurnPlan) -> None:
        self._services = services
        self._plan = plan
        self._agent: AgentRun | None = None
        self._question: Message | None = None
        self._history: tuple[StoredMessage, ...] = ()
        self._left = 0
        self._shown = _Shown()
        self._sink: ReplySink | None = None
        self.ended_as: str | None = None  # how the inbox rows are to be closed; None: they stay

    # The half that /cancel ends -------------------------------------------------------------------

    async def run(self, run: ActiveRun) -> None:
        """Store the question, then let the agent answer it."""
        self._sink = self._open_reply()
        self._question = await user_message(self._plan.question, self._plan.channel)
        await self._services.conversations.begin(
            self._plan.session, self._plan.run_id, self._question, self._plan.inbox_ids
        )
        self._agent = await self._prepare(run)
        await self._agent.execute()

    def _open_reply(self) -> ReplySink:
        plan, newest = self._plan, self._plan.question.newest
        label = self._services.texts.say(plan.language, "stop")
        stop = StopControl(label, plan.run_id)
        return plan.channel.open_reply(newest.address, reply_to=newest.message_id, stop=stop)

    async def _prepare(self, run: ActiveRun) -> AgentRun:
        plan, services = self._plan, self._services
        context = await services.conversations.context(plan.session)
        own = [stored for stored in context.messages if stored.run_id == plan.run_id]
        self._history = tuple(s for s in context.messages if s not in own[1:])
        task = AgentTask(
            provider=plan.model.provider,
            model=plan.model.id,
            system=plan.model.system_prompt(group=plan.question.speaker is not None),
            toolbox=Toolbox(self._tools()),
            max_output_tokens=plan.model.max_output_tokens,
            traits=plan.model.traits,
            history=tuple(stored.message for stored in self._history),
            tool_context=ToolContext(plan.run_id, plan.session_key, plan.timezone, run.token),
            earlier=context.earlier,
            calls_before=await services.usage.calls_of(plan.run_id) if plan.taken_up else 0,
            resumed=tuple(stored.message for stored in own[1:]),
        )
        ports = AgentPorts(
            context=TurnWindow(services.max_turns),
            journal=self,
            gate=services.gate,
            flush=self._flush,
            book=self._book,
            emit=self._display,
        )
        return AgentRun(task, ports)

    def _tools(self) -> Sequence[Tool]:
        if not self._plan.model.traits.tools:
            return ()
        session = self._plan.session
        return (
            CurrentTime(),
            ConversationInfo(lambda: self._services.conversations.size(session)),
        )

    # What the loop asks for -----------------------------------------------------------------------

    async def append(self, ordinal: int, message: Message) -> None:
        """The loop's journal: one message, committed when this returns."""
        await self._store([(ordinal, message)])

    async def _store(self, messages: Sequence[tuple[int, Message]]) -> None:
        plan = self._plan
        await self._services.conversations.append(plan.session, plan.run_id, messages)

    async def _flush(self, dropped: Sequence[Message]) -> None:
        """To the day's file first; then the context starts behind what was dropped."""
        plan = self._plan
        now = datetime.now(plan.timezone)
        await self._services.daily.flush(plan.memory_scope, dropped, now)
        self._left += len(dropped)
        start = self._history[min(self._left, len(self._history) - 1)]
        await self._services.conversations.leave(plan.session, start.id)

    async def _book(self, call: ModelCall) -> None:
        await self._services.usage.book([self._usage_row(call)])

    def _usage_row(self, call: ModelCall) -> UsageRow:
        plan = self._plan
        return UsageRow(
            plan.run_id,
            call.number,
            plan.session,
            plan.person,
            plan.model.name,
            "answer",
            call.outcome,
            call.usage,
            plan.model.cost_microusd(call.usage),
        )

    def _display(self, event: RunEvent) -> None:
        """A step's text goes to the preview as it comes, with a paragraph between steps."""
        match event:
            case TextShown(text):
                if self._shown.paragraph_due:
                    self._shown.paragraph_due = False
                    text = "\n\n" + text
                self._shown.parts.append(text)
                if self._sink is not None:
                    self._sink.show(text)
            case StepEnded():
                self._shown.paragraph_due = bool(self._shown.parts)
            case _:
                pass

    # The half that it cannot reach ----------------------------------------------------------------

    async def settle(self, outcome: Outcome) -> None:
        """Store and book everything again, then say the last word."""
        if outcome.ending == "interrupted":
            await self._quietly(self._discard())
            await self._quietly(self._book_calls())
            return  # the rows stay open: the next start takes them up
        await self._quietly(self._keep(outcome))
        reply = await self._last_word(outcome)
        await self._quietly(self._deliver(reply))
        self.ended_as = _OUTCOMES[outcome.ending]

    async def _discard(self) -> None:
        if self._sink is not None:
            await self._sink.discard()

    async def _keep(self, outcome: Outcome) -> None:
        """The run's own messages, legal whatever happened, and each of its model calls."""
        if self._question is None:
            return
        messages = [(0, self._question)]
        if self._agent is None:
            mark = STOPPED_MARK if outcome.ending == "cancelled" else FAILED_MARK
            messages.append((1, Message("assistant", (TextBlock(mark),))))
        else:
            self._agent.close(STOPPED_MARK if outcome.ending == "cancelled" else FAILED_MARK)
            messages += enumerate(self._agent.last_run_new_messages, start=1)
        await self._store(messages)
        await self._book_calls()

    async def _book_calls(self) -> None:
        """Every call again: those that were cancelled are not booked yet."""
        calls = self._agent.calls if self._agent is not None else []
        await self._services.usage.book([self._usage_row(call) for call in calls])

    async def _last_word(self, outcome: Outcome) -> str:
        """What the chat reads at the end: the text that was shown, and a sentence where needed."""
        shown, say = self._shown.text, self._services.texts.say
        language = self._plan.language
        if outcome.ending == "cancelled":
            return _joined(shown, say(language, "stopped"))
        if outcome.error is not None:
            return _joined(shown, await self._sentence(outcome.error))
        answer = shown or (self._agent.last_run_new_messages[-1].text if self._agent else "")
        if self._agent is not None and self._agent.context_was_reset:
            answer = _joined(answer, say(language, "context_reset"))
        return answer if answer.strip() else say(language, "empty_answer")

    async def _sentence(self, error: BaseException) -> str:
        say, language = self._services.texts.say, self._plan.language
        if isinstance(error, LimitReached):
            return say(language, f"limit_{error.limit}", **error.values)
        if isinstance(error, FileUnreadable):
            return say(language, "file_failed", reason=error)
        error_id = await self._services.errors.report(error, f"run {self._plan.run_id}")
        return say(language, sentence_key(error), id=error_id)

    async def _deliver(self, text: str) -> None:
        if self._sink is None:
            self._sink = self._open_reply()
        try:
            await self._finish(self._sink, OutboundReply(text))
        except Unreachable:
            log.info("run %s: the chat cannot be reached; its answer is stored", self._plan.run_id)
        except ChannelError as error:
            await self._services.errors.report(error, f"delivery of run {self._plan.run_id}")

    async def _finish(self, sink: ReplySink, reply: OutboundReply) -> None:
        """Deliver; a platform that is out of reach is tried again, and goes on with what is left."""
        for wait_s in DELIVERY_WAITS_S:
            try:
                return await sink.finish(reply)
            except ChannelUnavailable as error:
                log.warning("run %s: %s; tried again", self._plan.run_id, error)
                await asyncio.sleep(error.retry_after_s or wait_s)
        return await sink.finish(reply)

    async def _quietly(self, step: Awaitable[None]) -> None:
        """Carry on with settling whatever one part of it does: the parts do not need each other."""
        try:
            await step
        except Exception as error:  # noqa: BLE001 - a border: reported, and the turn still ends
            await self._services.errors.report(error, f"settling run {self._plan.run_id}")


_OUTCOMES = {"completed": "answered", "cancelled": "cancelled", "failed": "failed"}


def _joined(shown: str, sentence: str) -> str:
    return f"{shown}\n\n{sentence}" if shown else sentence
