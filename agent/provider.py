"""The seam to a model: one streamed call.

`async with provider.stream(request) as events: async for event in events: ...` gives any number of
`TextDelta`, `ThinkingDelta` and `UsageReport`, then exactly one `Completed`, and nothing after it.
A stream that ends without its provider's end marker is a failed call, not a short answer. Every
failure is a `ProviderError`; the SDKs' own exceptions never come out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from agent.messages import Message
from agent.tools import ToolSpec

# end: the answer is complete. length: cut by max_output_tokens. window: the model's window is full.
# refusal: the model declines in words of its own. filter: the provider ended it. pause: it was broken
# off. other: a reason that we do not know; treated as end. What decides whether tools run is the
# presence of calls, not the reason (field cases 143 and 149).
StopReason = Literal["end", "tool_use", "length", "window", "refusal", "filter", "pause", "other"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call. `input_tokens` excludes what was read from or written to the cache.

    `estimated` marks figures that the provider did not report.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    estimated: bool = False

    @property
    def read_tokens(self) -> int:
        """Everything that was read: new, from the cache, and written to it."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def total(self) -> int:
        """Everything that was read and written."""
        return self.read_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """What a model can take. What it cannot is rendered as text, or left out with a note."""

    images: bool = True
    tools: bool = True
    system_prompt: bool = True


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call. `messages` is legal (`agent.history.repair`); an empty `system` is left out.

    `max_output_tokens` caps the answer. `tools` empty: no tools are offered. `may_call` false: the
    tools are there, since the history has calls of them, and the model may not call any.
    """

    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    max_output_tokens: int
    traits: ModelTraits = ModelTraits()
    may_call: bool = True


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Some more of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """Some more of the model's reasoning; never shown as the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Usage as far as it is known, so that a call that is cut is booked with what was reported."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Completed:
    """The whole message. `usage` is None when the provider did not report any."""

    message: Message
    stop_reason: StopReason
    usage: Usage | None


StreamEvent = TextDelta | ThinkingDelta | UsageReport | Completed


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds: until the first event, between two events, and for the whole call."""

    first_s: float = 120.0
    between_s: float = 60.0
    total_s: float = 900.0


class Provider(Protocol):
    """An endpoint that speaks one API; it serves any number of calls at once."""

    @property
    def name(self) -> str:
        """The name that the configuration gives it."""
        ...

    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]:
        """Start a call. Leaving the context closes the connection, also in mid-stream."""
        ...

    async def warm(self) -> None:
        """Import the SDK and build the client, off the event loop where that takes long."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...
