"""What a test writes for an LLM server: replies out of parts, faults at their places.

See `tests.servers.llm` for how they are used.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

Json = dict[str, Any]


class Auto:
    """Marks a value that the server fills in."""


AUTO = Auto()


@dataclass(frozen=True)
class Text:
    """A piece of the answer; each of `pieces` is one chunk (None: a chunk with null content)."""

    pieces: tuple[str | None, ...]


@dataclass(frozen=True)
class Thinking:
    """Reasoning. Without `signature` the server issues one and remembers it (Anthropic)."""

    pieces: tuple[str, ...]
    signature: str | None = None
    redacted: str | None = None


@dataclass(frozen=True)
class ToolUse:
    """A call; `pieces` are the fragments of the argument text, which need not be JSON."""

    name: str
    pieces: tuple[str, ...]
    id: str | None = None
    whole: bool = False


Part = Text | Thinking | ToolUse


def split(text: str, size: int) -> tuple[str, ...]:
    """`text` in pieces of `size` characters; an empty text has no piece."""
    return tuple(text[i : i + size] for i in range(0, len(text), size))


def text(content: str, *, size: int = 16) -> Text:
    """Text in chunks of `size` characters; `Text((...))` sets the chunks one by one."""
    return Text(split(content, size))


def thinking(content: str, *, size: int = 16, signature: str | None = None) -> Thinking:
    """A block of reasoning."""
    return Thinking(split(content, size), signature)


def redacted_thinking(data: str) -> Thinking:
    """A block of reasoning whose text is withheld (Anthropic)."""
    return Thinking((), None, data)


def tool(
    name: str,
    arguments: Json | str | None = None,
    *,
    id: str | None = None,
    size: int = 12,
    whole: bool = False,
) -> ToolUse:
    """A tool call. `arguments` as a string is sent as it stands, whether or not it is JSON.

    `whole` sends name and arguments in one chunk, as some compatible servers do.
    """
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return ToolUse(name, (raw,) if whole else split(raw, size), id, whole)


@dataclass(frozen=True)
class Usage:
    """Tokens that the server reports. `input` excludes what the cache served or stored."""

    input: int = 10
    output: int = 5
    cache_read: int = 0
    cache_write: int = 0


@dataclass
class Fault:
    """Something that happens in the stream before the content chunk after `at`."""

    at: int | None
    data: bytes = b""
    stall: bool = False
    end: bool = False
    cut: bool = False
    reset: bool = False


class Reply:
    """One scripted answer. The methods add faults and return the reply itself."""

    def __init__(
        self,
        *parts: str | Part,
        stop: str | Auto | None = AUTO,
        usage: Usage | Auto | None = AUTO,
    ) -> None:
        self.parts: tuple[Part, ...] = tuple(
            text(part) if isinstance(part, str) else part for part in parts
        )
        self.stop = stop
        self.usage = usage
        self.faults: list[Fault] = []
        self.delay_s = 0.0
        self.hanging = False
        self.reached = asyncio.Event()
        self._released = asyncio.Event()
        self._meanwhile: asyncio.Queue[bytes] = asyncio.Queue()

    def hang(self) -> Self:
        """Send nothing at all, no status line either, until released or the client leaves."""
        self.hanging = True
        return self

    def stall_after(self, chunks: int | None) -> Self:
        """Fall silent; `reached` is set then, and `release()` goes on."""
        return self._add(Fault(chunks, stall=True))

    def end_after(self, chunks: int | None) -> Self:
        """End the stream cleanly without what was to follow; None: without the end marker alone."""
        return self._add(Fault(chunks, end=True))

    def cut_after(self, chunks: int | None, *, reset: bool = False) -> Self:
        """Close the connection in mid-body; with `reset` by a TCP reset."""
        return self._add(Fault(chunks, cut=True, reset=reset))

    def insert(self, chunks: int | None, data: bytes | str | Json) -> Self:
        """Send `data` in between: an object as one `data:` event, text or bytes as they stand."""
        if isinstance(data, dict):
            data = f"data: {json.dumps(data)}\n\n"
        return self._add(Fault(chunks, data.encode() if isinstance(data, str) else data))

    def garble_after(self, chunks: int | None) -> Self:
        """Send a chunk that is not JSON; with the name of an event, since Anthropic's SDK passes over
        data without one."""
        return self.insert(chunks, 'event: content_block_delta\ndata: {"broken": \n\n')

    def slowly(self, seconds: float) -> Self:
        """Wait before each content chunk."""
        self.delay_s = seconds
        return self

    def release(self) -> None:
        """Let a reply that stalls or hangs go on."""
        self._released.set()

    def send_meanwhile(self, data: bytes) -> None:
        """Send this while the stream stalls: a ping, or a comment."""
        self._meanwhile.put_nowait(data)

    async def meanwhile(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        """Write what the test sends meanwhile; until cancelled."""
        while True:
            await write(await self._meanwhile.get())

    async def wait_released(self) -> None:
        """Tell the test that the stall is reached and wait for `release`."""
        self.reached.set()
        await self._released.wait()
        self._released.clear()

    def _add(self, fault: Fault) -> Self:
        self.faults.append(fault)
        return self


@dataclass(frozen=True)
class HttpReply:
    """An answer that is not a stream: any status, body and headers."""

    status: int
    body: bytes | str | Json = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> tuple[bytes, str]:
        """The body and its content type."""
        if isinstance(self.body, dict):
            return json.dumps(self.body).encode(), "application/json"
        data = self.body.encode() if isinstance(self.body, str) else self.body
        return data, "text/html" if data.lstrip()[:1] == b"<" else "text/plain"


def long_text(chars: int, chunks: int) -> Text:
    """Prose of exactly `chars` characters in `chunks` chunks of nearly equal length."""
    words = "The tide comes in over the flat sand and goes out again. "
    prose = (words * (chars // len(words) + 1))[:chars]
    bounds = [chars * i // chunks for i in range(chunks + 1)]
    return Text(tuple(prose[a:b] for a, b in itertools.pairwise(bounds)))
