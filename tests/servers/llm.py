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
import json
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Self

from aiohttp import web

from tests.servers.llm_request import LlmRequest, Refused, flat_text, lower, missing
from tests.servers.llm_script import (
    AUTO,
    Auto,
    HttpReply,
    Json,
    Part,
    Reply,
    Text,
    Thinking,
    ToolUse,
    Usage,
    long_text,
    redacted_thinking,
    split,
    text,
    thinking,
    tool,
)
from tests.servers.llm_stream import Frame, Stream, hang_up

__all__ = [  # what tests and the servers import from here
    "AUTO",
    "Auto",
    "Frame",
    "HttpReply",
    "Json",
    "LlmRequest",
    "LlmServer",
    "Part",
    "Refused",
    "Reply",
    "Text",
    "Thinking",
    "ToolUse",
    "Usage",
    "flat_text",
    "long_text",
    "missing",
    "redacted_thinking",
    "split",
    "text",
    "thinking",
    "tool",
]
MAX_BODY_BYTES = 64 * 1024 * 1024  # ours; the providers' own limits are rules of each server

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
        request = self._received(raw, data)
        try:
            if data:
                self._parse(data, request)
            reply = HttpReply(200, answer(request))
        except Refused as refused:
            reply = HttpReply(refused.status, self.error_body(refused))
        return self._send_http(reply, request)

    async def _handle(self, raw: web.Request) -> web.StreamResponse:
        data = await raw.read()
        request = self._received(raw, data)
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

    def _received(self, raw: web.Request, data: bytes) -> LlmRequest:
        id_ = f"req_{self.next_number():06d}"
        return LlmRequest(id_, raw.path, lower(raw.headers), {}, len(data))

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
            frames = self.frames(script, request)
            stream = Stream(raw, request, script, frames, self.end_marker(), self.notify)
            return await stream.send()
        return await self._send_whole(raw, request, script)

    def _send_http(self, reply: HttpReply, request: LlmRequest) -> web.Response:
        body, content_type = reply.encoded()
        headers = {"content-type": content_type, "request-id": request.id}
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
