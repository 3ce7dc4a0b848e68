"""For tests of what uses a provider: one whose answers are scripted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from agent.errors import ProviderError, Refusal, RefusalKind
from agent.history import violations
from agent.messages import Message, TextBlock, ToolUseBlock, assistant_text
from agent.provider import (
    Completed,
    ModelRequest,
    StopReason,
    StreamEvent,
    TextDelta,
    Usage,
    UsageReport,
)

Step = Message | str | ProviderError | Callable[[ModelRequest], Message]


def calls(*tool_uses: tuple[str, str, dict[str, object]], text: str = "") -> Message:
    """An assistant message that calls tools: (id, name, arguments) each."""
    blocks = [ToolUseBlock(id_, name, arguments) for id_, name, arguments in tool_uses]  # type: ignore[arg-type]
    return Message("assistant", (*([TextBlock(text)] if text else []), *blocks))


def refusal(kind: RefusalKind) -> ProviderError:
    """A provider's refusal of that kind."""
    return ProviderError("scripted", Refusal(kind, 400))


class ScriptedProvider:
    """Answers with the steps in order, then with "done". Refuses what no provider takes.

    `stall` is awaited after the first half of each text, so that a test can hold a stream;
    `reported` is told before it, as some providers do.
    """

    name = "scripted"

    def __init__(self, steps: Sequence[Step] = (), stall: asyncio.Event | None = None) -> None:
        self.steps = list(steps)
        self.requests: list[ModelRequest] = []
        self.streaming = asyncio.Event()
        self.stall = stall
        self.reported: Usage | None = None
        self.break_after_text: ProviderError | None = None  # once, in the middle of a text
        self.stop_reason: StopReason | None = None  # of answers

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        """One scripted call."""
        found = violations(request.messages)
        if found:
            raise AssertionError(f"an illegal request was sent: {found}")
        self.requests.append(request)
        yield self._events(request)

    async def _events(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        step = self.steps.pop(0) if self.steps else "done"
        if isinstance(step, ProviderError):
            raise step
        if isinstance(step, str):
            message = assistant_text(step)
        else:
            message = step if isinstance(step, Message) else step(request)
        text = message.text
        if self.reported is not None:
            yield UsageReport(self.reported)
        if text:
            yield TextDelta(text[: len(text) // 2])
            self.streaming.set()
            if self.stall is not None:
                await self.stall.wait()
            if self.break_after_text is not None:
                broken, self.break_after_text = self.break_after_text, None
                raise broken
            yield TextDelta(text[len(text) // 2 :])
        stop: StopReason = "tool_use" if message.tool_uses else "end"
        if self.stop_reason is not None and not message.tool_uses:
            stop = self.stop_reason
        yield Completed(message, stop, Usage(input_tokens=10, output_tokens=5))

    async def warm(self) -> None:
        """Nothing to import."""

    async def aclose(self) -> None:
        """Nothing to close."""
