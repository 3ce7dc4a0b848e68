"""A run of the agent loop on a scripted provider, with everything that it asks of its surroundings."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC

from agent.breaker import RunLimits
from agent.calls import CallPorts, ModelCall, leave_as_it_is
from agent.cancel import CancelToken
from agent.context import Working, turns
from agent.errors import ProviderDown, Refusal
from agent.estimate import Estimator, Family
from agent.events import RunEvent
from agent.images import Shrink
from agent.loop import AgentPorts, AgentRun, AgentTask
from agent.messages import JsonObject, Message, user_text
from agent.model import ChatModel
from agent.overflow import Rung
from agent.provider import ModelTraits, Provider
from agent.testing import ScriptedProvider, Step
from agent.tools import Toolbox, ToolContext, ToolOutput, ToolSpec
from agent.working import Renewed

SIZES = Estimator(Family.UNKNOWN)
LIMITS = RunLimits(steps=10, tool_calls=100, seconds=900, tokens=10_000_000)


class Journal:
    def __init__(self) -> None:
        self.rows: dict[int, Message] = {}

    async def append(self, ordinal: int, message: Message) -> None:
        await asyncio.sleep(0)
        self.rows.setdefault(ordinal, message)


class Open:
    """A gate that forbids nothing."""

    async def check(self, step: int) -> None:
        await asyncio.sleep(0)


class Keeper:
    """Keeps what leaves; `most` snapshots may be made."""

    def __init__(self, most: int = 5) -> None:
        self.flushed: list[Message] = []
        self.bounds: list[tuple[Rung | None, Working]] = []
        self.snapshots = 0
        self.most = most

    async def flush(
        self, dropped: Sequence[Message], note: str | None, *, room: int, summarise: bool
    ) -> str:
        await asyncio.sleep(0)
        self.flushed += dropped
        return f"[Earlier conversation] {len(self.flushed)} messages"

    async def snapshot(self) -> str | None:
        await asyncio.sleep(0)
        if self.snapshots == self.most:
            return None
        self.snapshots += 1
        return f"snapshot-{self.snapshots}.jsonl"

    async def bound(self, rung: Rung | None, working: Working) -> None:
        await asyncio.sleep(0)
        self.bounds.append((rung, working))


class Health:
    """What the calls told of their providers; `down` is raised for a provider that is in it."""

    def __init__(self) -> None:
        self.down: dict[str, ProviderDown] = {}
        self.notes: list[tuple[str, Refusal | None]] = []

    def admit(self, provider: str) -> None:
        if provider in self.down:
            raise self.down[provider]

    def note(self, provider: str, refusal: Refusal | None) -> None:
        self.notes.append((provider, refusal))


class Echo:
    def __init__(self, name: str = "echo", *, parallel: bool = False) -> None:
        self.spec = ToolSpec(
            name,
            "Says it again.",
            {"type": "object", "properties": {"say": {"type": "string"}}, "required": ["say"]},
            parallel=parallel,
            side_effects=not parallel,
        )
        self.ran: list[JsonObject] = []
        self.release: asyncio.Event | None = None
        self.begun = asyncio.Event()
        self.running = 0
        self.most_at_once = 0

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        self.ran.append(arguments)
        self.begun.set()
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        await asyncio.sleep(0)
        if self.release is not None:
            await self.release.wait()
        self.running -= 1
        return ToolOutput.of(str(arguments["say"]))


def model(
    provider: Provider, name: str = "m", *, window: int = 100_000, most_output: int = 100
) -> ChatModel:
    return ChatModel(name, f"{name}-1", provider, most_output, ModelTraits(), window, SIZES)


class Fixture:
    def __init__(
        self,
        steps: Sequence[Step],
        *,
        tools: Sequence[Echo] = (),
        max_turns: int = 20,
        window: int = 100_000,
        most_output: int = 100,
        limits: RunLimits = LIMITS,
        fallbacks: Sequence[ScriptedProvider] = (),
        shrink: Shrink = leave_as_it_is,
    ) -> None:
        self.shrink = shrink
        self.taken_back: list[Renewed | None] = []  # told one after the other
        self.provider = ScriptedProvider(steps)
        self.models = (
            model(self.provider, window=window, most_output=most_output),
            *(model(provider, f"f{i}") for i, provider in enumerate(fallbacks)),
        )
        self.tools = list(tools) or [Echo()]
        self.journal = Journal()
        self.keeper = Keeper()
        self.health = Health()
        self.booked: list[ModelCall] = []
        self.waits: list[float] = []
        self.events: list[RunEvent] = []
        self.token = CancelToken()
        self.limits = limits
        self.max_turns = max_turns

    def run(
        self,
        history: Sequence[Message] = (user_text("q"),),
        resumed: Sequence[Message] = (),
        sleep: Callable[[float], Awaitable[None]] | None = None,
    ) -> AgentRun:
        async def book(call: ModelCall) -> None:
            await asyncio.sleep(0)
            self.booked.append(call)

        async def at_once(seconds: float) -> None:
            self.waits.append(seconds)
            await asyncio.sleep(0)

        async def renew() -> Renewed | None:
            await asyncio.sleep(0)
            return self.taken_back.pop(0) if self.taken_back else None

        async def reserve(number: int, model: ChatModel, tokens: int) -> Renewed | None:
            return await renew()

        task = AgentTask(
            models=self.models,
            system="s",
            toolbox=Toolbox(self.tools),
            history=Working(tuple(turns(history))),
            tool_context=ToolContext("r", "s", UTC, self.token),
            limits=self.limits,
            max_turns=self.max_turns,
            resumed=tuple(resumed),
        )
        calls = CallPorts(
            self.health,
            book,
            self.events.append,
            sleep or at_once,
            self.shrink,
            reserve=reserve,
            renew=renew,
        )
        return AgentRun(task, AgentPorts(self.keeper, self.journal, Open(), calls))


def result_texts(message: Message) -> list[str]:
    return ["".join(getattr(p, "text", "") for p in r.content) for r in message.tool_results]
