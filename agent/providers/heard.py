"""Signs of life that the SDKs pass over: Anthropic's pings, and comment lines (`: OPENROUTER
PROCESSING`) while a model thinks.

`httpx2` comes with the SDKs, which are imported late: so is this module.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from httpx2 import AsyncByteStream, Response

from agent.deadlines import StreamWatch


class _Heard(AsyncByteStream):
    """The bytes of a response, each piece told to the watch."""

    def __init__(self, stream: AsyncByteStream, watch: StreamWatch) -> None:
        self._stream = stream
        self._watch = watch

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._stream:
            self._watch.alive()
            yield data

    async def aclose(self) -> None:
        await self._stream.aclose()


def hear(response: Response, watch: StreamWatch) -> None:
    """Whatever comes in of the response is a sign of life; before it is read."""
    stream = response.stream
    if isinstance(stream, AsyncByteStream):
        response.stream = _Heard(stream, watch)
