"""What both providers share: a client that is built once, and calls that fail in one way."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import Any, Generic, TypeVar, cast

from agent.deadlines import DeadlineExceeded, StreamWatch
from agent.errors import ProviderError, Refusal, RefusalKind
from agent.messages import JsonObject, Message, ToolUseBlock
from agent.provider import ModelRequest, StreamEvent
from agent.providers.errors import refusal_of
from agent.settings import ProviderSettings

log = logging.getLogger(__name__)
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
        value: object = json.loads(text)
    except ValueError:
        return {}, text
    if not isinstance(value, dict):
        return {}, text
    return cast("JsonObject", value), None


def unique_calls(calls: Iterable[ToolUseBlock]) -> list[ToolUseBlock]:
    """Calls of one answer with ids that are there and differ."""
    seen: set[str] = set()
    result: list[ToolUseBlock] = []
    for number, call in enumerate(calls, start=1):
        id_ = call.id or f"call_{number}"
        while id_ in seen:
            id_ = f"{id_}_{number}"
        seen.add(id_)
        same = id_ == call.id
        result.append(call if same else ToolUseBlock(id_, call.name, call.arguments, call.raw))
    return result


class WireIds:
    """Tool ids as a provider takes them: deterministic, the same for a call and its result, and
    different for different ids. Stored ids stay as they are."""

    def __init__(self, messages: Iterable[Message], pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self._taken = {
            call.id
            for message in messages
            for call in message.tool_uses
            if pattern.fullmatch(call.id)
        }

    def __call__(self, id_: str) -> str:
        """The id on the wire."""
        if self._pattern.fullmatch(id_):
            return id_
        wire = "call_" + hashlib.sha256(id_.encode()).hexdigest()[:24]
        while wire in self._taken:
            wire = "call_" + hashlib.sha256(wire.encode()).hexdigest()[:24]
        return wire
