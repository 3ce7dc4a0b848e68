"""The agent loop: model call, tools, again, until an answer or a cap.

    run = AgentRun(task, ports)
    ending = await run.execute()          # the half that /cancel ends
    run.close(...)                        # makes the run's own messages legal, whatever happened
    run.last_run_new_messages             # exactly the run's own messages

The loop has two ways out. `emit` is synchronous, for display, and may drop. `await journal.append`
returns when a message is committed: an assistant message with calls before its first tool starts, a
result before the next model call. `last_run_new_messages` is kept beside the working copy, so that
trim, overflow and reset, which change the working copy only, never touch it.

The loop is not an async generator: its timeouts and its cleanup would leak into its consumer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from agent import tool_args
from agent.context import TurnWindow, Window, without_thinking
from agent.errors import ProviderError, RefusalKind
from agent.events import Emit, StepEnded, TextShown, ToolStarted
from agent.history import lost_result, repair
from agent.messages import Block, Message, TextBlock, ToolResultBlock, ToolUseBlock
from agent.provider import (
    Completed,
    ModelRequest,
    ModelTraits,
    Provider,
    TextDelta,
    ThinkingDelta,
    Usage,
    UsageReport,
)
from agent.tool_runner import run_tools
from agent.tools import Toolbox, ToolContext

NOT_STARTED = "Cancelled by user before this tool finished."
UNKNOWN_OUTCOME = "Outcome unknown: stopped while running."
STOPPED_MARK = "[Stopped by the user.]"
FAILED_MARK = "[This answer ended with an error.]"


CallOutcome = Literal["completed", "cancelled", "failed"]


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
class ModelCall:
    """One model call as it is booked. `outcome`: how it ended."""

    number: int
    model: str
    usage: Usage
    outcome: CallOutcome


@dataclass(frozen=True, slots=True)
class AgentTask:
    """What is fixed when a run starts. `history` ends with the question; `earlier`: older
    messages have left it before. `resumed`: messages of this run that an earlier process has
    stored after the question; `calls_before`: model calls that it has booked for the run."""

    provider: Provider
    model: str
    system: str
    toolbox: Toolbox
    max_output_tokens: int
    traits: ModelTraits
    history: tuple[Message, ...]
    tool_context: ToolContext
    earlier: bool = False
    calls_before: int = 0
    resumed: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentPorts:
    """What the loop asks of its surroundings.

    `flush` gets what leaves the context, in order, before it is gone; `book` each model call once
    (a cancelled one is only in `AgentRun.calls`, for whoever settles the run).
    """

    context: TurnWindow
    journal: Journal
    gate: Gate
    flush: Callable[[Sequence[Message]], Awaitable[None]]
    book: Callable[[ModelCall], Awaitable[None]]
    emit: Emit


@dataclass(slots=True)
class _Call:
    """A model call under way: what came in so far."""

    number: int
    request: ModelRequest
    text: list[str] = field(default_factory=list[str])
    thinking: list[str] = field(default_factory=list[str])
    usage: Usage | None = None


class AgentRun:
    """One execution of the loop for one turn."""

    def __init__(self, task: AgentTask, ports: AgentPorts) -> None:
        self._task = task
        self._ports = ports
        self.last_run_new_messages: list[Message] = list(task.resumed)
        self.context_was_reset = False
        self.calls: list[ModelCall] = []
        self._working: Sequence[Message] = task.history
        self._call: _Call | None = None
        self._started: set[str] = set()
        self._finished: dict[str, ToolResultBlock] = {}
        self._closed = False

    # The loop -----------------------------------------------------------------------------------

    async def execute(self) -> str:
        """Run to the end; the answer's text, which may be empty.

        Raises `LimitReached`, `ProviderError`, and `CancelledError` when it is cancelled.
        """
        await self._take(
            self._ports.context.prepare(self._task.history, earlier=self._task.earlier)
        )
        self._working = (*self._working, *self._task.resumed)
        await self._finish_resumed()
        step = 0
        while not self._answered():
            step += 1
            self._raise_if_cancelled()
            await self._ports.gate.check(step)
            completed = await self._ask_within_window()
            await self._take_step(completed)
            self._ports.emit(StepEnded())
        return self.last_run_new_messages[-1].text if self.last_run_new_messages else ""

    def _answered(self) -> bool:
        own = self.last_run_new_messages
        return bool(own) and own[-1].role == "assistant" and not own[-1].tool_uses

    async def _finish_resumed(self) -> None:
        """Calls of an earlier process without results: outcome unknown, none runs again."""
        own = self.last_run_new_messages
        if own and own[-1].tool_uses:
            results = tuple(lost_result(call.id) for call in own[-1].tool_uses)
            await self._append(Message("user", results))

    async def _take_step(self, completed: Completed) -> None:
        truncated = completed.stop_reason in ("length", "window")
        message, checked = self._checked(completed.message, truncated=truncated)
        await self._append(message)
        if not checked:
            return
        await run_tools(
            checked,
            self._task.toolbox,
            self._task.tool_context,
            started=self._tool_started,
            finished=self._tool_finished,
        )
        results = tuple(self._finished[call.id] for call in message.tool_uses)
        await self._append(Message("user", results))

    def _checked(
        self, message: Message, *, truncated: bool
    ) -> tuple[Message, list[tool_args.CheckedCall]]:
        """The message as it is stored, with ids unique in this conversation, and its calls."""
        used = {call.id for known in self._working for call in known.tool_uses}
        blocks: list[Block] = []
        checked: list[tool_args.CheckedCall] = []
        for block in message.blocks:
            if isinstance(block, ToolUseBlock):
                tool = self._task.toolbox.find(block.name)
                renamed = _with_unique_id(block, used)
                verdict = tool_args.check(renamed, tool.spec if tool else None, truncated=truncated)
                checked.append(verdict)
                blocks.append(verdict.call)
            else:
                blocks.append(block)
        return Message("assistant", tuple(blocks)), checked

    def _tool_started(self, call: ToolUseBlock) -> None:
        self._started.add(call.id)
        self._ports.emit(ToolStarted(call.name))

    def _tool_finished(self, result: ToolResultBlock) -> None:
        self._finished[result.tool_use_id] = result

    async def _append(self, message: Message) -> None:
        """Own first, then stored: a cancel in between loses nothing, `close` stores it again.

        A tool that swallowed its cancel may come back after `close`: nothing is added then.
        """
        if self._closed:
            raise asyncio.CancelledError
        self._call = None
        self.last_run_new_messages.append(message)
        self._working = (*self._working, message)
        await self._ports.journal.append(len(self.last_run_new_messages), message)

    def _raise_if_cancelled(self) -> None:
        """The level: a tool may have swallowed the edge."""
        if self._task.tool_context.cancel.cancelled:
            raise asyncio.CancelledError

    # Overflow -----------------------------------------------------------------------------------

    async def _ask_within_window(self) -> Completed:
        """A model call; a provider's overflow makes the working copy smaller and asks again."""
        while True:
            try:
                return await self._ask()
            except ProviderError as error:
                if error.refusal.kind is not RefusalKind.OVERFLOW or not await self._make_room():
                    raise

    async def _make_room(self) -> bool:
        window = self._ports.context.shrink(self._working)
        if window is None:
            window = self._ports.context.reset(self._working)
            if window is None:
                return False
            self.context_was_reset = True
        await self._take(window)
        return True

    async def _take(self, window: Window) -> None:
        if window.dropped:
            await self._ports.flush(window.dropped)
        # What a model thought before belongs to a prefix that is not sent like that any more.
        self._working = without_thinking(window.messages)

    # The model call -----------------------------------------------------------------------------

    async def _ask(self) -> Completed:
        number = self._task.calls_before + len(self.calls) + 1
        call = self._call = _Call(number, self._request())
        try:
            completed = await self._stream(call)
        except ProviderError:
            await self._ports.book(self._note(call, "failed"))
            raise
        except asyncio.CancelledError:
            self._note(call, "cancelled")  # booked when the run is settled
            raise
        await self._ports.book(self._note(call, "completed"))
        return completed

    async def _stream(self, call: _Call) -> Completed:
        async with self._task.provider.stream(call.request) as events:
            async for event in events:
                match event:
                    case TextDelta(text):
                        call.text.append(text)
                        self._ports.emit(TextShown(text))
                    case ThinkingDelta(text):
                        call.thinking.append(text)
                    case UsageReport(usage):
                        call.usage = usage
                    case Completed():
                        call.usage = event.usage or call.usage
                        return event
        raise RuntimeError(f"provider {self._task.provider.name} broke its contract: no Completed")

    def _request(self) -> ModelRequest:
        return ModelRequest(
            model=self._task.model,
            system=self._task.system,
            messages=tuple(repair(self._working)),
            tools=self._task.toolbox.specs,
            max_output_tokens=self._task.max_output_tokens,
            traits=self._task.traits,
        )

    def _note(self, call: _Call, outcome: CallOutcome) -> ModelCall:
        usage = _usage(call, complete=outcome == "completed")
        booked = ModelCall(call.number, call.request.model, usage, outcome)
        self.calls.append(booked)
        return booked

    # The end ------------------------------------------------------------------------------------

    def close(self, mark: str) -> None:
        """After an ending without an answer: make the run's own messages legal.

        Text that was shown is kept, half-made calls are not; calls without a result get one that
        says whether they had started; `mark` closes the turn.
        """
        self._closed = True
        if self._answered():
            return
        own = self.last_run_new_messages
        if own and own[-1].tool_uses:
            own.append(Message("user", tuple(self._result_of(c) for c in own[-1].tool_uses)))
            self._call = None
        partial = "".join(self._call.text).strip() if self._call else ""
        blocks = [TextBlock(partial)] if partial else []
        own.append(Message("assistant", (*blocks, TextBlock(mark))))

    def _result_of(self, call: ToolUseBlock) -> ToolResultBlock:
        known = self._finished.get(call.id)
        if known is not None:
            return known
        tool = self._task.toolbox.find(call.name)
        risky = call.id in self._started and tool is not None and tool.spec.side_effects
        return lost_result(call.id, UNKNOWN_OUTCOME if risky else NOT_STARTED)


def _with_unique_id(call: ToolUseBlock, used: set[str]) -> ToolUseBlock:
    """Some providers use `call_0` in each answer: later ones get a suffix, on both halves."""
    fresh, number = call.id or "call", 1
    while fresh in used:
        number += 1
        fresh = f"{call.id or 'call'}_{number}"
    used.add(fresh)
    return call if fresh == call.id else ToolUseBlock(fresh, call.name, call.arguments, call.raw)


def _usage(call: _Call, *, complete: bool) -> Usage:
    """What the provider reported; else an estimate of four characters a token, marked as such.

    Of a call that did not complete the provider may have reported the input and the first token of
    the output: the text that came in counts then, if it is more.
    """
    written = (sum(map(len, call.text)) + sum(map(len, call.thinking))) // 4
    if call.usage is None:
        return Usage(_size(call.request) // 4, written, estimated=True)
    if complete or written <= call.usage.output_tokens:
        return call.usage
    return replace(call.usage, output_tokens=written, estimated=True)


def _size(request: ModelRequest) -> int:
    characters = len(request.system)
    for message in request.messages:
        for block in message.blocks:
            match block:
                case TextBlock():
                    characters += len(block.text)
                case ToolUseBlock():
                    characters += 200 + len(str(block.arguments))
                case ToolResultBlock():
                    characters += 120 + sum(
                        len(part.text) for part in block.content if isinstance(part, TextBlock)
                    )
                case _:
                    characters += 4_800  # an image: about 1,200 tokens
    return characters
