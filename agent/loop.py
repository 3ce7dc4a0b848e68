"""The agent loop: model call, tools, again, until an answer or a cap.

    run = AgentRun(task, ports)
    ending = await run.execute()          # the half that /cancel ends
    run.close(...)                        # makes the run's own messages legal, whatever happened
    run.last_run_new_messages             # exactly the run's own messages

The loop has two ways out. `emit` is synchronous, for display, and may drop. `await journal.append`
returns when a message is committed: an assistant message with calls before its first tool starts, a
result before the next model call. `last_run_new_messages` is kept beside the working copy, so that
trim, overflow and reset, which change the working copy only, never touch it.

What a model call needs to get through is in `agent.calls`, the working copy in `agent.working`, which
tool calls may run in `agent.admission`, what became of them in `agent.tool_log`, what stops a run that
goes in circles in `agent.breaker`. The loop is not an async generator: its timeouts
and its cleanup would leak into its consumer.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from agent import tool_args
from agent.admission import Admission
from agent.breaker import Breaker, RunLimits
from agent.calls import CallPorts, ModelCall, ModelCalls, text_of
from agent.context import Budget, Working, without_seals
from agent.errors import LimitReached, ProviderError
from agent.events import StepEnded, ToolStarted
from agent.history import lost_result
from agent.messages import Message, TextBlock, ToolResultBlock, ToolUseBlock
from agent.model import ChatModel
from agent.provider import Completed, StopReason
from agent.tool_log import Effects, ToolLog
from agent.tool_runner import run_tools
from agent.tools import Toolbox, ToolContext
from agent.working import Keeper, WorkingCopy

NOT_STARTED = "Cancelled by user before this tool finished."
UNKNOWN_OUTCOME = "Outcome unknown: stopped by the user while running."
TIME_UP = "The time for this question was up before this tool finished."
TIME_UP_UNKNOWN = "Outcome unknown: the time for this question was up while it was running."
STOPPED_MARK = "[Stopped by the user.]"
FAILED_MARK = "[This answer ended with an error.]"
EMPTY_MARK = "[No answer was given.]"
_CUTS = ("length", "window", "filter", "pause")
CLOSING_S = 30.0  # for the closing call of a run whose time is up

# Sentences of ours for one model call; they are stored nowhere.
NUDGE = "You gave no answer. Answer the user now, in words."
CLOSING = (
    "You may not call any more tools for this question. Answer the user now with what you have, and "
    "say what is missing."
)


class Journal(Protocol):
    """Where a run's messages are stored."""

    async def append(self, ordinal: int, message: Message) -> None:
        """Store the message; returns when it is committed. Idempotent on (run, ordinal)."""
        ...


class Gate(Protocol):
    """What may forbid the next model call."""

    async def check(self, step: int) -> None:
        """Raises `LimitReached`. `step` counts from 1."""
        ...


@dataclass(frozen=True, slots=True)
class AgentTask:
    """What is fixed when a run starts.

    `models`: the first answers, the others are fallbacks. `history` ends with the turn of the
    question. `budget_tokens`: what a request may have in all, beside the model's own window.
    `resumed`: messages of this run that an earlier process has stored after the question;
    `calls_before`: model calls that it has booked for the run.
    """

    models: tuple[ChatModel, ...]
    system: str
    toolbox: Toolbox
    history: Working
    tool_context: ToolContext
    limits: RunLimits
    max_turns: int
    budget_tokens: int | None = None
    calls_before: int = 0
    resumed: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentPorts:
    """What the loop asks of its surroundings."""

    keeper: Keeper
    journal: Journal
    gate: Gate
    calls: CallPorts


class AgentRun:
    """One execution of the loop for one turn."""

    def __init__(self, task: AgentTask, ports: AgentPorts) -> None:
        self._task = task
        self._ports = ports
        self._working = WorkingCopy(task.history, ports.keeper)
        self._calls = ModelCalls(
            task.models,
            task.system,
            task.toolbox.specs,
            self._working,
            ports.calls,
            made_before=task.calls_before,
        )
        self._breaker = Breaker(task.limits)
        self._ends_at = asyncio.get_running_loop().time() + task.limits.seconds
        self._time_is_up = False
        self.last_run_new_messages: list[Message] = list(task.resumed)
        self.notices: list[LimitReached] = []  # what else a person is told after the answer
        self.cut_by: StopReason | None = None  # what ended the answer before its end, or begin
        self.gave_no_answer = False
        self._tools = ToolLog(task.toolbox)
        self._admission = Admission(task.toolbox, self._breaker)
        self._closed = False

    @property
    def context_was_reset(self) -> bool:
        """Whether the conversation was left out because the model could not take it."""
        return self._working.was_reset

    @property
    def has_acted(self) -> bool:
        """Whether a tool has started."""
        return not self._tools.empty

    @property
    def steps(self) -> Sequence[Message]:
        """The run's own messages as far as they are whole: without a message whose calls have not
        begun."""
        own = self.last_run_new_messages
        return own[:-1] if own and own[-1].tool_uses else own

    @property
    def calls(self) -> list[ModelCall]:
        """The model calls that were made, also those that failed or were cancelled."""
        return self._calls.made

    # The loop -------------------------------------------------------------------------------------

    async def execute(self) -> str:
        """Run to the end; the answer's text, which may be empty.

        Raises `LimitReached`, `ProviderError`, `ProviderDown`, and `CancelledError` when it is
        cancelled.
        """
        await self._working.trim(self._budget(), self._calls.model.sizes)
        # The process before may have trimmed otherwise: its seals may not fit what is sent now.
        for message in without_seals(self._task.resumed):
            self._working.append(message)
        await self._finish_resumed()
        step = 0
        while not self.has_answered:
            step += 1
            self._raise_if_cancelled()
            await self._ports.gate.check(step)
            stop = self._stop_before(step)
            if stop is not None:
                await self._close_with_an_answer(stop)
            else:
                await self._take_step(await self._ask())
            self._ports.calls.emit(StepEnded())
        return self.last_run_new_messages[-1].text

    def _budget(self) -> Budget:
        model = self._calls.model
        most = min(self._task.budget_tokens or model.context_tokens, model.context_tokens)
        tokens = most - model.max_output_tokens - self._calls.fixed_tokens()
        return Budget(tokens, self._task.max_turns)

    async def _ask(self) -> Completed:
        """A model call. A hint is sent once: what was thought in answer to it is bound to a text that
        is not sent again, and would be refused."""
        hint = self._breaker.hint()
        completed = await self._ask_in_time(advice=hint)
        if hint is None:
            return completed
        (message,) = without_seals([completed.message])
        return replace(completed, message=message)

    async def _ask_in_time(self, *, tools: bool = True, advice: str | None) -> Completed:
        """A model call with its retries and waits. Raises `LimitReached` when the run's time is up
        before it is through: what was shown stays, and asking again would say it anew."""
        clock = asyncio.timeout_at(self._ends_at)
        try:
            async with clock:
                return await self._calls.ask(tools=tools, advice=advice)
        except TimeoutError:
            if not clock.expired():
                raise
            raise self._reached("seconds") from None

    @property
    def has_answered(self) -> bool:
        """Whether the run's own messages end with an answer."""
        own = self.last_run_new_messages
        return bool(own) and own[-1].role == "assistant" and not own[-1].tool_uses

    def _stop_before(self, step: int) -> LimitReached | None:
        """The cap or breaker that ends the run before this step."""
        tripped = self._breaker.tripped()
        if tripped is not None:
            return tripped
        made, limits = self.calls, self._task.limits
        left_s = self._ends_at - asyncio.get_running_loop().time()
        cap = self._breaker.cap(
            step,
            seconds=math.inf if self._time_is_up else limits.seconds - left_s,
            tokens=sum(call.usage.total for call in made),
            cost_microusd=sum(call.cost_microusd or 0 for call in made),
        )
        return None if cap is None else self._reached(cap)

    def _reached(self, cap: str) -> LimitReached:
        return LimitReached(cap, limit=self._task.limits.words(cap))

    async def _close_with_an_answer(self, stop: LimitReached) -> None:
        """One call with tools off, so that what was found so far is not lost; a short one where the
        run's time is up. The person is told why the run ended; without an answer that is all that is
        told. Raises `LimitReached`."""
        latest = max(self._ends_at, asyncio.get_running_loop().time() + CLOSING_S)
        try:
            async with asyncio.timeout_at(latest):
                completed = await self._calls.ask(tools=False, advice=CLOSING)
        except (ProviderError, TimeoutError) as error:
            raise stop from error
        answer = _words_only(completed.message)
        if not text_of(answer):
            raise stop
        self.notices.append(stop)
        await self._append(answer)

    async def _finish_resumed(self) -> None:
        """Calls of an earlier process count on; those without results are of unknown outcome, and
        none runs again."""
        own = self.last_run_new_messages
        results = {result.tool_use_id: result for m in own for result in m.tool_results}
        for call in (call for message in own for call in message.tool_uses):
            known = results.get(call.id)
            self._tools.resume(call, known)
            if self._breaker.judge(call) is None:
                self._breaker.note(call, failed=known is None or known.is_error)
        if own and own[-1].tool_uses:
            lost = tuple(lost_result(call.id) for call in own[-1].tool_uses)
            await self._append(Message("user", lost))

    async def _take_step(self, completed: Completed) -> None:
        if not completed.message.tool_uses:
            await self._append(await self._answer(completed))
            return
        most = self._calls.output_tokens
        truncated = tool_args.cut_off(completed, self._task.toolbox, most)
        if truncated:
            self._breaker.cut_off(completed.message.tool_uses)
        message, checked = self._admission.admit(
            completed.message, self._working.messages, truncated=truncated
        )
        await self._append(message)
        await self._run_tools(checked)
        results = tuple(
            self._tools.result_of(call, TIME_UP_UNKNOWN, TIME_UP) for call in message.tool_uses
        )
        await self._append(Message("user", results))

    async def _run_tools(self, checked: Sequence[tool_args.CheckedCall]) -> None:
        """Each call gets its result, but for those under way or still to come when the run's time
        is up."""
        try:
            async with asyncio.timeout_at(self._ends_at):
                await run_tools(
                    checked,
                    self._task.toolbox,
                    self._task.tool_context,
                    started=self._tool_started,
                    finished=self._tool_finished,
                )
        except TimeoutError:
            self._time_is_up = True

    async def _answer(self, completed: Completed) -> Message:
        """The answer; an empty one is asked for once more, and marked when it stays empty."""
        if not text_of(completed.message):
            completed = await self._ask_in_time(tools=False, advice=NUDGE)
        answer = _words_only(completed.message)
        if completed.stop_reason in _CUTS:
            self.cut_by = completed.stop_reason
        if not text_of(answer):
            self.gave_no_answer = True
            return Message("assistant", (TextBlock(EMPTY_MARK),))
        return answer

    def _tool_started(self, call: ToolUseBlock) -> None:
        self._tools.start(call)
        self._ports.calls.emit(ToolStarted(call.name))

    def _tool_finished(self, call: ToolUseBlock, result: ToolResultBlock) -> None:
        self._tools.finish(call, result)
        if self._admission.passed(call):
            self._breaker.note(call, failed=result.is_error)

    async def _append(self, message: Message) -> None:
        """Own first, then stored: a cancel in between loses nothing, `close` stores it again.

        A tool that swallowed its cancel may come back after `close`: nothing is added then.
        """
        if self._closed:
            raise asyncio.CancelledError
        self._calls.forget_partial()
        self.last_run_new_messages.append(message)
        self._working.append(message)
        await self._ports.journal.append(len(self.last_run_new_messages), message)

    def _raise_if_cancelled(self) -> None:
        """The level: a tool may have swallowed the edge."""
        if self._task.tool_context.cancel.cancelled:
            raise asyncio.CancelledError

    # The end --------------------------------------------------------------------------------------

    def close(self, mark: str) -> None:
        """After an ending without an answer: make the run's own messages legal.

        Text that was shown is kept, half-made calls are not; calls without a result get one that
        says whether they had started; `mark` closes the turn.
        """
        self._closed = True
        if self.has_answered:
            return
        own = self.last_run_new_messages
        partial = self._calls.partial_text
        if own and own[-1].tool_uses:
            results = (
                self._tools.result_of(call, UNKNOWN_OUTCOME, NOT_STARTED)
                for call in own[-1].tool_uses
            )
            own.append(Message("user", tuple(results)))
            partial = ""
        blocks = [TextBlock(partial)] if partial else []
        own.append(Message("assistant", (*blocks, TextBlock(mark))))

    def effects(self) -> Effects:
        """What the tools of this run have changed, as far as that is known."""
        return self._tools.effects()


def _words_only(message: Message) -> Message:
    """Without calls: a model may make them although it was told not to."""
    blocks = tuple(block for block in message.blocks if not isinstance(block, ToolUseBlock))
    return Message(message.role, blocks)
