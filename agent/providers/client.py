"""What both providers share: a client that is built once, and calls that fail in one way."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any, Generic, TypeVar, cast

from agent.deadlines import DeadlineExceeded, StreamWatch
from agent.errors import ProviderError, Refusal, RefusalKind
from agent.messages import (
    Block,
    ImageBlock,
    JsonObject,
    JsonValue,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agent.provider import ModelRequest, StreamEvent
from agent.providers.errors import refusal_of
from agent.settings import ProviderSettings

Client = TypeVar("Client")

NO_IMAGES = "[An image was left out: this model cannot see images.]"


class StreamEnded(Exception):
    """The stream ended without its end marker: a failed call, not a short answer."""


class SdkProvider(ABC, Generic[Client]):
    """One endpoint through its SDK. Subclasses build the client and read its stream."""

    def __init__(self, name: str, settings: ProviderSettings) -> None:
        self.name = name
        self._settings = settings
        self._client: Client | None = None
        self._building = asyncio.Lock()

    @abstractmethod
    def _build(self) -> Client:
        """Import the SDK and build the client; slow, runs in a thread."""

    @abstractmethod
    def _events(
        self, client: Client, request: ModelRequest, watch: StreamWatch
    ) -> AsyncGenerator[StreamEvent]:
        """Make the call and read it, with a `watch.beat()` for each chunk."""

    async def warm(self) -> None:
        """Import the SDK and build the client."""
        await self._ready()

    async def _ready(self) -> Client:
        async with self._building:
            if self._client is None:
                self._client = await asyncio.to_thread(self._build)
            return self._client

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        """One call; every failure of it comes out as `ProviderError`."""
        client = await self._ready()
        try:
            async with (
                StreamWatch(self._settings.deadlines) as watch,
                aclosing(self._guarded(client, request, watch)) as events,
            ):
                yield events
        except DeadlineExceeded as error:
            refusal = Refusal(RefusalKind.TRANSIENT, detail=str(error))
            raise ProviderError(self.name, refusal) from error

    async def _guarded(
        self, client: Client, request: ModelRequest, watch: StreamWatch
    ) -> AsyncGenerator[StreamEvent]:
        """The events; what the SDK or its HTTP library raises comes out as `ProviderError`."""
        try:
            async with aclosing(self._events(client, request, watch)) as events:
                async for event in events:
                    yield event
        except Exception as error:
            raise ProviderError(self.name, refusal_of(error)) from error

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await cast("Any", client).close()


def parse_arguments(text: str) -> tuple[JsonObject, str | None]:
    """Streamed arguments as (object, None), or ({}, the text) when they are not a JSON object.
    No text at all means no arguments."""
    if not text.strip():
        return {}, None
    try:
        value: object = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return {}, well_formed(text)
    if not isinstance(value, dict):
        return {}, well_formed(text)
    return cast("JsonObject", well_formed(cast("JsonObject", value))), None


def _no_constant(name: str) -> object:
    """Python's JSON reads NaN and Infinity, which are none and which no provider takes."""
    raise ValueError(f"{name} is not JSON")


Json = TypeVar("Json", bound=JsonValue)


def well_formed(value: Json) -> Json:
    """A JSON value in which pairs of surrogates are joined and lone ones replaced: a model may send
    half an emoji, which can be neither stored nor sent."""
    if isinstance(value, str):
        if value.isascii():
            return value
        text = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return cast("Json", text)
    if isinstance(value, dict):
        return cast("Json", {well_formed(key): well_formed(item) for key, item in value.items()})
    if isinstance(value, list):
        return cast("Json", [well_formed(item) for item in value])
    return value


def unique_calls(calls: Iterable[ToolUseBlock], used: Iterable[str]) -> list[ToolUseBlock]:
    """Calls of one answer with ids that are there, and differ from each other and from `used`,
    those of the conversation: some servers begin with `call_0` in each answer."""
    seen = set(used)
    result: list[ToolUseBlock] = []
    for call in calls:
        base = id_ = call.id or "call"
        number = 1
        while id_ in seen:
            number += 1
            id_ = f"{base}_{number}"
        seen.add(id_)
        result.append(call if id_ == call.id else replace(call, id=id_))
    return result


def wire_name(name: str) -> str:
    """A tool's name as every provider takes it; a model may call one that does not exist."""
    return _NOT_IN_NAMES.sub("_", name)[:64] or "unnamed"


_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


def without_tools(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The conversation for a request that offers no tools: calls and results told as text.
    Thinking, which is bound to what stood around it, is left out."""
    return tuple(
        Message(message.role, tuple(part for block in message.blocks for part in _told(block)))
        for message in messages
    )


def _told(block: Block) -> tuple[Block, ...]:
    match block:
        case ToolUseBlock():
            arguments = json.dumps(block.arguments, ensure_ascii=False)
            return (TextBlock(f"[used the tool {block.name} with {arguments}]"),)
        case ToolResultBlock():
            how = "failed" if block.is_error else "answered"
            images = (part for part in block.content if isinstance(part, ImageBlock))
            return (TextBlock(f"[the tool {how}: {result_text(block)}]"), *images)
        case ThinkingBlock():
            return ()
        case _:
            return (block,)


def result_text(result: ToolResultBlock) -> str:
    """A result's text; where it is only an image, a word that points to it."""
    texts = [part.text for part in result.content if isinstance(part, TextBlock)]
    if texts:
        return "\n\n".join(texts)
    return "(see the image below)" if result.content else "(empty)"


def call_ids(messages: Iterable[Message]) -> set[str]:
    """The ids of all calls in a conversation."""
    return {call.id for message in messages for call in message.tool_uses}


class WireIds:
    """Tool ids as a provider takes them: deterministic, the same for a call and its result, and
    different for different ids. Stored ids stay as they are."""

    def __init__(self, messages: Iterable[Message], pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self._taken = {id_ for id_ in call_ids(messages) if pattern.fullmatch(id_)}

    def __call__(self, id_: str) -> str:
        """The id on the wire."""
        if self._pattern.fullmatch(id_):
            return id_
        wire = "call_" + hashlib.sha256(id_.encode()).hexdigest()[:24]
        while wire in self._taken:
            wire = "call_" + hashlib.sha256(wire.encode()).hexdigest()[:24]
        return wire
