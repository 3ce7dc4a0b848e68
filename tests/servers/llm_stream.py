"""How a scripted answer goes out as server-sent events, with its faults at their places."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from aiohttp import web

from tests.servers.llm_request import LlmRequest
from tests.servers.llm_script import Reply

BATCH_BYTES = 64 * 1024  # frames without a pause between them are written together up to here


@dataclass(frozen=True)
class Frame:
    """Bytes of the stream; `content` marks those that count as a content chunk."""

    data: bytes
    content: bool = False


def hang_up(raw: web.Request, *, reset: bool) -> None:
    """Close the client's connection at once, with a TCP reset if wanted."""
    transport = raw.transport
    if transport is None:
        return
    if reset:
        sock: socket.socket = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    else:
        transport.close()


class _Ended(Exception):
    """The script ends the stream here, cleanly."""


class _CutOff(Exception):
    """The script cuts the connection here."""

    def __init__(self, reset: bool) -> None:
        super().__init__()
        self.reset = reset


class Stream:
    """One streamed answer on its way: frames, and faults at their places."""

    def __init__(
        self,
        raw: web.Request,
        request: LlmRequest,
        reply: Reply,
        frames: Iterable[Frame],
        end_marker: bytes,
        notify: Callable[[], None],
    ) -> None:
        self._frames = frames
        self._end_marker = end_marker
        self._notify = notify
        self._raw = raw
        self._request = request
        self._reply = reply
        self._batch = bytearray()
        self._response = web.StreamResponse(
            headers={
                "content-type": "text/event-stream; charset=utf-8",
                "cache-control": "no-cache",
                "request-id": request.id,
            }
        )

    async def send(self) -> web.StreamResponse:
        """Send it all; a scripted end returns early, a client that left raises."""
        self._request.status = 200
        await self._response.prepare(self._raw)
        try:
            await self._send_frames()
            await self._apply(None)
            self._batch += self._end_marker
        except _Ended:
            pass
        except _CutOff as cut:
            self._finish()
            hang_up(self._raw, reset=cut.reset)
            return self._response
        await self._flush()
        await self._response.write_eof()
        self._finish()
        return self._response

    async def _send_frames(self) -> None:
        """The frames, with the faults that count chunks. Those past the end come at the end."""
        waiting = sorted({fault.at for fault in self._reply.faults if fault.at is not None})
        sent, pause = 0, self._reply.delay_s
        for frame in self._frames:
            if frame.content:
                if waiting and waiting[0] <= sent:
                    await self._apply(waiting.pop(0))
                if pause:
                    await self._flush()
                    await asyncio.sleep(pause)
            self._batch += frame.data
            if frame.content:
                sent += 1
                self._request.content_chunks = sent
                if waiting and waiting[0] == sent:
                    await self._apply(waiting.pop(0))
            if len(self._batch) >= BATCH_BYTES:
                await self._flush()
        for at in waiting:
            await self._apply(at)

    async def _apply(self, at: int | None) -> None:
        for fault in self._reply.faults:
            if fault.at != at:
                continue
            self._batch += fault.data
            if fault.end:
                raise _Ended
            if fault.stall or fault.cut:
                await self._flush()
            if fault.cut:
                raise _CutOff(fault.reset)
            if fault.stall:
                self._notify()
                meanwhile = asyncio.ensure_future(self._reply.meanwhile(self._response.write))
                try:
                    await self._reply.wait_released()
                finally:
                    meanwhile.cancel()

    async def _flush(self) -> None:
        if not self._batch:
            return
        data, self._batch = bytes(self._batch), bytearray()
        if self._request.first_chunk_at is None and self._request.content_chunks:
            self._request.first_chunk_at = time.monotonic()
        await self._response.write(data)

    def _finish(self) -> None:
        self._request.finished = True
        self._notify()
