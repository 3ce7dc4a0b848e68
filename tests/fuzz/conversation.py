"""A conversation as the bridge leads it: each turn is a run of the agent on what is stored, and each
ending leaves rows behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import UTC

from agent.breaker import RunLimits
from agent.calls import CallPorts, ModelCall
from agent.cancel import CancelToken
from agent.context import Working, turns
from agent.errors import LimitReached, ProviderError, Refusal, ToolError
from agent.loop import FAILED_MARK, STOPPED_MARK, AgentPorts, AgentRun, AgentTask
from agent.messages import (
    Block,
    ImageBlock,
    JsonObject,
    Message,
    TextBlock,
    ToolUseBlock,
)
from agent.provider import (
    Completed,
    ModelRequest,
    Provider,
    StopReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from agent.tools import Toolbox, ToolContext, ToolOutput, ToolSpec
from tests.agent.bed import Health, Keeper, Open, model
from tests.fuzz.histories import DAMAGES, PNG
from tests.fuzz.judges import Judge, judged, judges
from tests.fuzz.operations import Cut, Damage, Operation, Reset, Step, Turn

LIMITS = RunLimits(steps=6, tool_calls=100, seconds=900, tokens=10_000_000)
SCHEMA: JsonObject = {"type": "object", "properties": {"text": {"type": "string"}}}


class FuzzTool:
    """A tool that answers in one of the ways that tools have."""

    def __init__(self, name: str) -> None:
        effects = name in ("write", "slow")
        self.spec = ToolSpec(name, "A tool.", SCHEMA, parallel=not effects, side_effects=effects)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        await asyncio.sleep(0)
        match self.spec.name:
            case "fail":
                raise ToolError("It is broken.")
            case "look":
                return ToolOutput((ImageBlock("image/png", PNG),))
            case "nothing":
                return ToolOutput((TextBlock(" \n"),))
            case "slow":
                for _ in range(10):
                    await asyncio.sleep(0)
            case _:
                pass
        return ToolOutput.of(f"done {arguments.get('text')}")


TOOLS = [FuzzTool(name) for name in ("now", "write", "look", "fail", "slow", "nothing")]


Speak = Callable[[Turn], Provider]  # the provider of a turn, its steps in hand


class JudgedProvider:
    """Has every request judged, and answers with the steps of a turn, then with "done"."""

    name = "judged"

    def __init__(self, bench: list[Judge], turn: Turn) -> None:
        self._bench = bench
        self._steps = list(turn.steps)
        self._author = turn.author

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        judged(self._bench, request)
        await asyncio.sleep(0)
        yield self._events()

    async def _events(self) -> AsyncIterator[StreamEvent]:
        step = self._steps.pop(0) if self._steps else Step("done")
        author = self._author if step.author is None else step.author
        blocks: list[Block] = []
        if step.thinks != "no":
            blocks.append(self._bench[author].think("hm", withheld=step.thinks == "withheld"))
            yield ThinkingDelta("hm")
        for piece in (step.text[:2], step.text[2:]):
            await asyncio.sleep(0)
            if piece:
                yield TextDelta(piece)
        if step.failure is not None:
            raise ProviderError(self.name, Refusal(step.failure, 400))
        if step.text:
            blocks.append(TextBlock(step.text))
        blocks += [
            ToolUseBlock(c.id, c.name, {} if c.raw else c.arguments, c.raw) for c in step.calls
        ]
        stop: StopReason = "length" if step.cut else "tool_use" if step.calls else "end"
        yield Completed(Message("assistant", tuple(blocks)), stop, Usage(10, 5))

    async def warm(self) -> None:
        """Nothing to import."""

    async def aclose(self) -> None:
        """Nothing to close."""


class _Journal:
    """The rows of one run; appending again changes nothing."""

    def __init__(self, rows: Sequence[Message] = ()) -> None:
        self.rows = dict(enumerate(rows, 1))

    async def append(self, ordinal: int, message: Message) -> None:
        await asyncio.sleep(0)
        self.rows.setdefault(ordinal, message)


class _Recorded:
    """A provider that remembers what it was asked."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner
        self.name = inner.name
        self.requests: list[ModelRequest] = []

    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]:
        self.requests.append(request)
        return self._inner.stream(request)

    async def warm(self) -> None:
        """Nothing to import."""

    async def aclose(self) -> None:
        """Closed by whoever made it."""


def judged_speech() -> Speak:
    """Providers that share fresh judges."""
    bench = judges()
    return lambda turn: JudgedProvider(bench, turn)


class Conversation:
    """What is stored of it, and how it goes on."""

    def __init__(self, speak: Speak, *, spins: int = 1) -> None:
        self._speak = speak
        self._spins = spins  # turns of the event loop for each await that a cancel waits for
        self.rows: list[Message] = []

    async def go_on(self, operation: Operation) -> None:
        """One operation. Raises `Refused` when a request breaks a rule of any API."""
        match operation:
            case Turn():
                await self._turn(operation)
            case Damage(kind, place, by) if self.rows:
                DAMAGES[kind](self.rows, place % len(self.rows), by)
            case Cut(start, end) if self.rows:
                first = start % len(self.rows)
                self.rows = self.rows[first : len(self.rows) - end % (len(self.rows) - first)]
            case Reset():
                self.rows = []
            case _:
                pass

    async def _turn(self, turn: Turn) -> None:
        self.rows.append(Message("user", turn.question))
        provider = _Recorded(self._speak(turn))
        own = await self._run(turn, provider, ())
        if turn.ending == "crashed and resumed":
            own = await self._run(replace(turn, cancel_at=None, ending="stored"), provider, own)
        _question_was_sent(turn, provider.requests)
        self.rows += own

    async def _run(
        self, turn: Turn, provider: Provider, resumed: Sequence[Message]
    ) -> list[Message]:
        """A run to its end; what it leaves in the store."""
        journal, token = _Journal(resumed), CancelToken()
        run = AgentRun(self._task(turn, provider, token, resumed), _ports(journal))
        task = asyncio.ensure_future(run.execute())
        token.bind(task)
        for _ in range((turn.cancel_at or 0) * self._spins):
            await asyncio.sleep(0)
        if turn.cancel_at is not None and not task.done():
            token.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        if isinstance(outcome, BaseException) and not isinstance(
            outcome, asyncio.CancelledError | ProviderError | LimitReached
        ):
            raise outcome
        if turn.ending != "stored":
            return [journal.rows[n] for n in sorted(journal.rows)]
        run.close(STOPPED_MARK if token.cancelled else FAILED_MARK)
        return run.last_run_new_messages

    def _task(
        self, turn: Turn, provider: Provider, token: CancelToken, resumed: Sequence[Message]
    ) -> AgentTask:
        return AgentTask(
            models=(model(provider), model(provider, "fallback")),
            system="Be brief.",
            toolbox=Toolbox(TOOLS),
            history=Working(tuple(turns(self.rows))),
            tool_context=ToolContext("r", "s", UTC, token),
            limits=LIMITS,
            max_turns=turn.most_turns,
            resumed=tuple(resumed),
        )


def _question_was_sent(turn: Turn, requests: Sequence[ModelRequest]) -> None:
    """Each request of a turn holds its question."""
    words = [b.text for b in turn.question if isinstance(b, TextBlock) and b.text.strip()]
    for request in requests:
        said = [m.text for m in request.messages if m.role == "user"]
        assert all(any(word in text for text in said) for word in words)


def _ports(journal: _Journal) -> AgentPorts:
    async def book(_: ModelCall) -> None:
        await asyncio.sleep(0)

    async def sleep(_: float) -> None:
        await asyncio.sleep(0)

    calls = CallPorts(Health(), book, lambda _: None, sleep)
    return AgentPorts(Keeper(), journal, Open(), calls)
