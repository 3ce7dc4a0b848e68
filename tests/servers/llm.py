"""What the two local LLM servers share: scripted replies, the record of requests, the streaming.

A test scripts a server in a few lines:

    async with AnthropicServer() as llm:
        llm.answer("Hello")                                   # replies are used in order
        llm.answer("Let me see.", tool("now", {"zone": "UTC"}))
        stalled = llm.answer("A long answer").stall_after(1)  # after the first content chunk
        llm.fail(429, "slow down", headers={"retry-after": "3"})
        ...
        await stalled.reached.wait()
        await llm.wait_for(lambda: llm.requests[-1].disconnected)
        assert llm.refusals == []

Positions of faults count content chunks: pieces of text, thinking and tool arguments that were
sent. 0 is after the opening of the stream and before the first of them; None is after everything
but the end marker. A request that breaks a rule is refused and uses up no reply.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import itertools
import json
import socket
import struct
import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

Json = dict[str, Any]

BATCH_BYTES = 64 * 1024  # frames without a pause between them are written together up to here
MAX_BODY_BYTES = 64 * 1024 * 1024  # ours; the providers' own limits are rules of each server


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
        """Send a chunk that is not JSON."""
        return self.insert(chunks, 'data: {"broken": \n\n')

    def slowly(self, seconds: float) -> Self:
        """Wait before each content chunk."""
        self.delay_s = seconds
        return self

    def release(self) -> None:
        """Let a reply that stalls or hangs go on."""
        self._released.set()

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


class Refused(Exception):
    """A request breaks a rule of the API. `type`, `param` and `code` are the API's own words."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        type: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.type = type
        self.param = param
        self.code = code


def missing(where: str) -> Refused:
    """A required field is absent."""
    return Refused(f"{where}: Field required")


@dataclass
class LlmRequest:
    """A request as it came in, and what became of it. Times are of `time.monotonic`, which
    processes of one machine share."""

    path: str
    headers: Mapping[str, str]
    body: Json
    size: int = 0
    arrived: float = field(default_factory=time.monotonic)
    first_chunk_at: float | None = None
    status: int | None = None
    refusal: str | None = None
    content_chunks: int = 0
    disconnected: bool = False
    finished: bool = False

    @property
    def messages(self) -> list[Json]:
        """The conversation that was sent."""
        messages: list[Json] = self.body.get("messages") or []
        return messages

    @property
    def last_user_text(self) -> str:
        """The text of the newest message of role user; empty when there is none."""
        for message in reversed(self.messages):
            if message.get("role") == "user":
                return flat_text(message.get("content"))
        return ""


def lower(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers with lower-case names."""
    return {name.lower(): value for name, value in headers.items()}


def flat_text(content: Any) -> str:
    """The text in a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")


@dataclass(frozen=True)
class Frame:
    """Bytes of the stream; `content` marks those that count as a content chunk."""

    data: bytes
    content: bool = False


Script = Reply | HttpReply | str | Part | tuple[str | Part, ...]
Answerer = Callable[[LlmRequest], Script | Awaitable[Script]]


def echo(request: LlmRequest) -> Script:
    """The default answer: what the user said last."""
    return request.last_user_text or "(nothing to echo)"


def as_reply(script: Script) -> Reply | HttpReply:
    """What a test wrote, as a reply."""
    if isinstance(script, Reply | HttpReply):
        return script
    if isinstance(script, tuple):
        return Reply(*script)
    return Reply(script)


class LlmServer(ABC):
    """A strict endpoint on loopback. `default` answers when no scripted reply is left."""

    api_key: str
    path: str

    def __init__(self) -> None:
        self.requests: list[LlmRequest] = []
        self.default: Answerer = echo
        self._queue: deque[Reply | HttpReply | Answerer] = deque()
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._closing = False
        self._numbers = 0
        self.port = 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def start(self, port: int = 0) -> None:
        """Listen on 127.0.0.1; port 0 takes a free one."""
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_post(self.path, self._handle)
        app.router.add_get("/_control/requests", self._handle_control)
        self.add_routes(app)
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=0.05
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def aclose(self) -> None:
        """Stop listening and drop the connections that are left."""
        self._closing = True
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def origin(self) -> str:
        """`http://127.0.0.1:PORT`."""
        return f"http://127.0.0.1:{self.port}"

    @property
    @abstractmethod
    def base_url(self) -> str:
        """What the SDK takes as `base_url`."""

    @property
    def refusals(self) -> list[str]:
        """The messages of the requests that broke a rule, in order."""
        return [request.refusal for request in self.requests if request.refusal is not None]

    def answer(
        self,
        *parts: str | Part,
        stop: str | Auto | None = AUTO,
        usage: Usage | Auto | None = AUTO,
    ) -> Reply:
        """Queue an answer; the reply that comes back takes faults."""
        reply = Reply(*parts, stop=stop, usage=usage)
        self._queue.append(reply)
        return reply

    def answer_with(self, answerer: Answerer) -> None:
        """Queue an answer that is made from the request (a function, async or not)."""
        self._queue.append(answerer)

    def answer_http(
        self, status: int, body: bytes | str | Json = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        """Queue an answer of exactly this status, body and headers."""
        self._queue.append(HttpReply(status, body, headers or {}))

    def fail(
        self,
        status: int,
        message: str,
        *,
        type: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Queue an error in the API's own shape; `type` defaults to that of the status."""
        refused = Refused(message, status=status, type=type or self.error_type(status), code=code)
        self._queue.append(HttpReply(status, self.error_body(refused), headers or {}))

    @property
    def waiting_replies(self) -> int:
        """How many queued replies are not used yet."""
        return len(self._queue)

    async def wait_for(self, predicate: Callable[[], bool], timeout: float = 5.0) -> None:
        """Wait until `predicate` holds; asked again whenever something happens here."""
        async with asyncio.timeout(timeout):
            while not predicate():
                await self._changed.wait()

    def next_number(self) -> int:
        """A number for ids, unique in this server."""
        self._numbers += 1
        return self._numbers

    @abstractmethod
    def check(self, request: LlmRequest) -> None:
        """Apply the API's rules; raises `Refused`."""

    @abstractmethod
    def not_json(self, reason: str) -> Refused:
        """What the API says to a body that is no JSON object."""

    @abstractmethod
    def frames(self, reply: Reply, request: LlmRequest) -> Iterator[Frame]:
        """The stream but for its end marker."""

    @abstractmethod
    def end_marker(self) -> bytes:
        """What says that the stream is complete."""

    @abstractmethod
    def whole(self, reply: Reply, request: LlmRequest) -> Json:
        """The same answer as one body."""

    @abstractmethod
    def error_body(self, refused: Refused) -> Json:
        """An error in the API's shape."""

    @abstractmethod
    def error_type(self, status: int) -> str:
        """The API's error type for a status."""

    def add_routes(self, app: web.Application) -> None:
        """Further paths of the API; none by default."""
        del app

    def notify(self) -> None:
        """Wake those who wait in `wait_for`."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _handle_control(self, _: web.Request) -> web.Response:
        """For a benchmark in another process: when each request came and its first chunk left."""
        rows = [
            {
                "arrived": request.arrived,
                "first_chunk_at": request.first_chunk_at,
                "last_user_text": request.last_user_text,
                "refusal": request.refusal,
                "finished": request.finished,
                "disconnected": request.disconnected,
            }
            for request in self.requests
        ]
        return web.json_response(rows)

    async def guarded(
        self, raw: web.Request, answer: Callable[[LlmRequest], Json]
    ) -> web.StreamResponse:
        """A further endpoint of the API: `answer` may raise `Refused`. Not recorded."""
        data = await raw.read()
        request = LlmRequest(raw.path, lower(raw.headers), {}, len(data))
        try:
            if data:
                self._parse(data, request)
            reply = HttpReply(200, answer(request))
        except Refused as refused:
            reply = HttpReply(refused.status, self.error_body(refused))
        return self._send_http(reply, request)

    async def _handle(self, raw: web.Request) -> web.StreamResponse:
        data = await raw.read()
        request = LlmRequest(raw.path, lower(raw.headers), {}, len(data))
        self.requests.append(request)
        try:
            self._parse(data, request)
            self.check(request)
        except Refused as refused:
            request.refusal = refused.message
            self.notify()
            return self._send_http(HttpReply(refused.status, self.error_body(refused)), request)
        self.notify()
        try:
            return await self._answer(raw, request)
        except (asyncio.CancelledError, ConnectionError):
            request.disconnected = not (self._closing or request.finished)
            self.notify()
            raise

    def _parse(self, data: bytes, request: LlmRequest) -> None:
        """The body; half of a surrogate pair is no JSON for strict parsers."""
        try:
            body = json.loads(data)
            json.dumps(body, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise self.not_json("no low surrogate in string") from error
        except ValueError as error:
            raise self.not_json(str(error)) from error
        if not isinstance(body, dict):
            raise self.not_json("not an object")
        request.body = body

    async def _answer(self, raw: web.Request, request: LlmRequest) -> web.StreamResponse:
        script = self._queue.popleft() if self._queue else self.default
        if not isinstance(script, Reply | HttpReply):
            made = script(request)
            script = as_reply(await made if inspect.isawaitable(made) else made)
        if isinstance(script, HttpReply):
            return self._send_http(script, request)
        if script.hanging:
            self.notify()
            await script.wait_released()
        if request.body.get("stream"):
            return await _Stream(self, raw, request, script).send()
        return await self._send_whole(raw, request, script)

    def _send_http(self, reply: HttpReply, request: LlmRequest) -> web.Response:
        body, content_type = reply.encoded()
        headers = {"content-type": content_type, "request-id": f"req_{self.next_number():06d}"}
        headers.update(reply.headers)
        request.status, request.finished = reply.status, True
        self.notify()
        return web.Response(status=reply.status, body=body, headers=headers)

    async def _send_whole(
        self, raw: web.Request, request: LlmRequest, reply: Reply
    ) -> web.StreamResponse:
        """The answer as one body; a stall comes before it, a cut in its middle."""
        for fault in reply.faults:
            if fault.stall:
                await reply.wait_released()
        request.status, request.finished = 200, True
        self.notify()
        if any(fault.cut for fault in reply.faults):
            return await self._send_half(raw, reset=any(fault.reset for fault in reply.faults))
        return web.json_response(self.whole(reply, request))

    async def _send_half(self, raw: web.Request, *, reset: bool) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "application/json"})
        response.content_length = 1000
        await response.prepare(raw)
        await response.write(b'{"id": ')
        hang_up(raw, reset=reset)
        return response


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


class _Stream:
    """One streamed answer on its way: frames, and faults at their places."""

    def __init__(
        self, server: LlmServer, raw: web.Request, request: LlmRequest, reply: Reply
    ) -> None:
        self._server = server
        self._raw = raw
        self._request = request
        self._reply = reply
        self._batch = bytearray()
        self._response = web.StreamResponse(
            headers={
                "content-type": "text/event-stream; charset=utf-8",
                "cache-control": "no-cache",
                "request-id": f"req_{server.next_number():06d}",
            }
        )

    async def send(self) -> web.StreamResponse:
        """Send it all; a scripted end returns early, a client that left raises."""
        self._request.status = 200
        await self._response.prepare(self._raw)
        try:
            await self._send_frames()
            await self._apply(None)
            self._batch += self._server.end_marker()
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
        for frame in self._server.frames(self._reply, self._request):
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
                self._server.notify()
                await self._reply.wait_released()

    async def _flush(self) -> None:
        if not self._batch:
            return
        data, self._batch = bytes(self._batch), bytearray()
        if self._request.first_chunk_at is None and self._request.content_chunks:
            self._request.first_chunk_at = time.monotonic()
        await self._response.write(data)

    def _finish(self) -> None:
        self._request.finished = True
        self._server.notify()


def serve_forever(server_class: type[LlmServer]) -> None:
    """Run a server until its standard input closes, for a benchmark or a playground.

    Prints one line of JSON: `base_url`, `api_key` and `control` (see `_handle_control`). Every
    answer is `--chars` characters in `--chunks` chunks, or an echo when `--chars` is 0.
    """
    parser = argparse.ArgumentParser(description=serve_forever.__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--chars", type=int, default=0)
    parser.add_argument("--chunks", type=int, default=1)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each chunk")
    options = parser.parse_args()

    async def main() -> None:
        server = server_class()
        await server.start(options.port)
        try:
            if options.chars:
                part = long_text(options.chars, options.chunks)
                server.default = lambda _: Reply(part).slowly(options.delay)
            control = f"{server.origin}/_control/requests"
            facts = {"base_url": server.base_url, "api_key": server.api_key, "control": control}
            print(json.dumps(facts), flush=True)
            await asyncio.to_thread(sys.stdin.read)
        finally:
            await server.aclose()

    asyncio.run(main())


def long_text(chars: int, chunks: int) -> Text:
    """Prose of exactly `chars` characters in `chunks` chunks of nearly equal length."""
    words = "The tide comes in over the flat sand and goes out again. "
    prose = (words * (chars // len(words) + 1))[:chars]
    bounds = [chars * i // chunks for i in range(chunks + 1)]
    return Text(tuple(prose[a:b] for a, b in itertools.pairwise(bounds)))
