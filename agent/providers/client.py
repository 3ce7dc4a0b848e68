"""What both providers share: a client that is built once, and calls that fail in one way."""

from __future__ import annotations

import asyncio
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Generic, TypeVar, cast

from agent.deadlines import DeadlineExceeded, StreamWatch
from agent.errors import ProviderError, Refusal, RefusalKind
from agent.provider import ModelRequest, StopReason, StreamEvent, TextDelta, ThinkingDelta
from agent.providers.errors import read_refusal, tells_words
from agent.settings import ProviderSettings

log = logging.getLogger(__name__)

Client = TypeVar("Client")

# All streams of an endpoint together are read about so often in a second. Few people read faster than
# that, and to wake up for a chunk costs the loop several times what the chunk itself does.
READS_PER_S = 100
LONGEST_PAUSE_S = 0.1


def http_client(settings: ProviderSettings) -> Any:
    """An SDK's HTTP client. Proxies of the environment do not count."""
    from httpx2 import AsyncClient  # loaded with the SDK

    from agent.providers.transport import AiohttpTransport

    proxy = settings.proxy.get_secret_value() if settings.proxy else None
    transport = AiohttpTransport(proxy)
    return AsyncClient(transport=transport, trust_env=False, follow_redirects=True)


class AnswerFailed(Exception):
    """What came is no answer: a refusal that is read already, or a stream that lacks its end or says
    in its own way that it failed."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


def stream_ended(missing: str) -> AnswerFailed:
    """The stream ended without its end marker: a failed call, not a short answer."""
    return AnswerFailed(
        Refusal(RefusalKind.TRANSIENT, detail=f"the stream ended without {missing}")
    )


def stop_reason(said: str | None, known: Mapping[str, StopReason], model: str) -> StopReason:
    """What the reason means that a provider gives for the end of an answer; one that we do not know is
    logged, and ends it like any other."""
    if said is not None and said in known:
        return known[said]
    log.info("%s ended an answer with the unknown finish reason %.40r", model, said)
    return "other"


class SdkProvider(ABC, Generic[Client]):
    """One endpoint through its SDK. Subclasses build the client and read its stream."""

    def __init__(self, name: str, settings: ProviderSettings) -> None:
        self.name = name
        self._settings = settings
        self._client: Client | None = None
        self._building = asyncio.Lock()
        self._streams = 0  # that are open

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
        self._streams += 1
        try:
            async with (
                StreamWatch(self._settings.deadlines) as watch,
                aclosing(self._guarded(client, request, watch)) as events,
            ):
                yield events
        except DeadlineExceeded as error:
            refusal = Refusal(RefusalKind.TRANSIENT, detail=str(error))
            raise ProviderError(self.name, refusal) from error
        finally:
            self._streams -= 1

    async def _guarded(
        self, client: Client, request: ModelRequest, watch: StreamWatch
    ) -> AsyncGenerator[StreamEvent]:
        """The events; what the SDK or its HTTP library raises comes out as `ProviderError`."""
        try:
            async with aclosing(self._events(client, request, watch)) as events:
                paused_at = -math.inf
                async for event in events:
                    yield event
                    if isinstance(event, TextDelta | ThinkingDelta):
                        paused_at = await self._let_more_come(paused_at)
        except AnswerFailed as error:
            raise ProviderError(self.name, error.refusal) from error
        except Exception as error:  # noqa: BLE001 - all of it comes out
            # A trace would repeat the provider's own words, with the ids of accounts in them.
            cause = None if tells_words(error) else error
            raise ProviderError(self.name, await read_refusal(error)) from cause

    async def _let_more_come(self, paused_at: float) -> float:
        """Beside other streams, wait a moment, so that the next read finds several chunks; not again
        while it has just waited, since what has come in is not held up. When it has waited last."""
        pause_s = min((self._streams - 1) / READS_PER_S, LONGEST_PAUSE_S)
        loop = asyncio.get_running_loop()
        if pause_s <= 0 or loop.time() < paused_at + pause_s:
            return paused_at
        await asyncio.sleep(pause_s)
        return loop.time()

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await cast("Any", client).close()
