"""A strict OpenAI Chat Completions endpoint on loopback; see `tests.servers.llm` for the scripting.

    async with OpenAIServer() as llm:
        llm.answer("Let me see.", tool("now", {"zone": "UTC"}))
        client = openai.AsyncOpenAI(base_url=llm.base_url, api_key=llm.api_key)

What it refuses, and in which words: `tests.servers.openai_rules`, whose `Rules` also make it a
compatible server (DeepSeek, Mistral, Gemini, one that knows only `max_tokens`).
Run by itself (`python -m tests.servers.openai --chars 32000 --chunks 8000`) it serves a benchmark
in another process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from aiohttp import web

from tests.servers.llm import (
    Auto,
    Frame,
    Json,
    LlmRequest,
    LlmServer,
    Refused,
    Reply,
    Text,
    Thinking,
    ToolUse,
    Usage,
    serve_forever,
)
from tests.servers.openai_rules import Rules, check_headers, check_request

CREATED = 1_790_000_000  # a fixed time keeps replies reproducible
EMPTY_CHOICES: Json = {  # a chunk as Azure sends first, and others in between
    "id": "",
    "object": "chat.completion.chunk",
    "created": 0,
    "model": "",
    "choices": [],
}
NULL_DELTA: Json = {
    **EMPTY_CHOICES,
    "choices": [{"index": 0, "delta": None, "finish_reason": None}],
}


def event(data: Json) -> bytes:
    """One server-sent event."""
    return f"data: {json.dumps(data)}\n\n".encode()


def error_event(message: str, *, type: str = "server_error", code: str | None = None) -> bytes:
    """An error in mid-stream: `reply.insert(2, error_event("…")).end_after(2)`."""
    return event({"error": {"message": message, "type": type, "param": None, "code": code}})


class OpenAIServer(LlmServer):
    """`POST /v1/chat/completions` and `GET /v1/models`. `rules` holds what a test may set."""

    api_key = "sk-proj-local-test-key"
    path = "/v1/chat/completions"

    def __init__(self, rules: Rules | None = None) -> None:
        super().__init__()
        self.rules = rules or Rules()
        self.reasoning_field = "reasoning_content"

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    def add_routes(self, app: web.Application) -> None:
        app.router.add_get("/v1/models", self._handle_models)

    async def _handle_models(self, raw: web.Request) -> web.StreamResponse:
        def answer(request: LlmRequest) -> Json:
            check_headers(request.headers, self.api_key)
            models = [
                {"id": name, "object": "model", "created": CREATED, "owned_by": "local"}
                for name in self.rules.models
            ]
            return {"object": "list", "data": models}

        return await self.guarded(raw, answer)

    def check(self, request: LlmRequest) -> None:
        check_headers(request.headers, self.api_key)
        check_request(request.body, self.rules)

    def not_json(self, reason: str) -> Refused:
        return Refused(f"We could not parse the JSON body of your request. ({reason})")

    def error_type(self, status: int) -> str:
        if status == 429:
            return "requests"
        return "server_error" if status >= 500 else "invalid_request_error"

    def error_body(self, refused: Refused) -> Json:
        return {
            "error": {
                "message": refused.message,
                "type": refused.type,
                "param": refused.param,
                "code": refused.code,
            }
        }

    def frames(self, reply: Reply, request: LlmRequest) -> Iterator[Frame]:
        envelope = self._envelope("chat.completion.chunk", request)
        yield Frame(chunk(envelope, {"role": "assistant", "content": ""}))
        calls = 0
        for part in reply.parts:
            if isinstance(part, ToolUse):
                yield from self._call_frames(envelope, calls, part)
                calls += 1
            else:
                key = "content" if isinstance(part, Text) else self.reasoning_field
                head, tail = around(envelope, key)
                for piece in part.pieces:
                    yield Frame(head + json.dumps(piece).encode() + tail, content=True)
        yield Frame(chunk(envelope, {}, finish_reason(reply)))
        options = request.body.get("stream_options") or {}
        usage = self._usage(reply, request)
        if usage is not None and options.get("include_usage"):
            yield Frame(event({**envelope, "choices": [], "usage": usage}))

    def end_marker(self) -> bytes:
        return b"data: [DONE]\n\n"

    def whole(self, reply: Reply, request: LlmRequest) -> Json:
        message: Json = {"role": "assistant", "content": joined(reply, Text), "refusal": None}
        reasoning = joined(reply, Thinking)
        if reasoning is not None:
            message[self.reasoning_field] = reasoning
        calls = [part for part in reply.parts if isinstance(part, ToolUse)]
        if calls:
            message["tool_calls"] = [self._call(part, "".join(part.pieces)) for part in calls]
        choice = {"index": 0, "message": message, "finish_reason": finish_reason(reply)}
        body = {**self._envelope("chat.completion", request), "choices": [choice]}
        usage = self._usage(reply, request)
        if usage is not None:
            body["usage"] = usage
        return body

    def _call_frames(self, envelope: Json, index: int, part: ToolUse) -> Iterator[Frame]:
        """Id and name come in the first chunk only, later ones carry the index alone."""
        call = {"index": index, **self._call(part, part.pieces[0] if part.whole else "")}
        yield Frame(chunk(envelope, {"tool_calls": [call]}), content=True)
        for piece in () if part.whole else part.pieces:
            fragment = {"index": index, "function": {"arguments": piece}}
            yield Frame(chunk(envelope, {"tool_calls": [fragment]}), content=True)

    def _call(self, part: ToolUse, arguments: str) -> Json:
        id_ = part.id if part.id is not None else self.rules.new_id(self.next_number())
        return {
            "id": id_,
            "type": "function",
            "function": {"name": part.name, "arguments": arguments},
        }

    def _envelope(self, kind: str, request: LlmRequest) -> Json:
        return {
            "id": f"chatcmpl-{self.next_number():029d}",
            "object": kind,
            "created": CREATED,
            "model": request.body.get("model"),
        }

    def _usage(self, reply: Reply, request: LlmRequest) -> Json | None:
        if reply.usage is None:
            return None
        if isinstance(reply.usage, Usage):
            usage = reply.usage
        else:
            produced = sum(len(piece or "") for part in reply.parts for piece in part.pieces)
            usage = Usage(self.rules.count(request.body), max(1, -(-produced // 4)))
        prompt = usage.input + usage.cache_read + usage.cache_write
        return {
            "prompt_tokens": prompt,
            "completion_tokens": usage.output,
            "total_tokens": prompt + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        }


def chunk(envelope: Json, delta: Json, reason: str | None = None) -> bytes:
    """A chunk of one choice."""
    return event({**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def around(envelope: Json, key: str) -> tuple[bytes, bytes]:
    """The bytes before and after the value of `key` in a delta, so that many chunks are cheap."""
    head, tail = chunk(envelope, {key: "\0"}).split(b'"\\u0000"')
    return head, tail


def joined(reply: Reply, kind: type[Text] | type[Thinking]) -> str | None:
    """The text of all parts of a kind, None when there are none."""
    pieces: list[Any] = [
        piece for part in reply.parts if isinstance(part, kind) for piece in part.pieces
    ]
    kept = [piece for piece in pieces if piece is not None]
    return "".join(kept) if kept or any(isinstance(p, kind) for p in reply.parts) else None


def finish_reason(reply: Reply) -> str | None:
    """The scripted reason, else the one that fits the parts."""
    if not isinstance(reply.stop, Auto):
        return reply.stop
    return "tool_calls" if any(isinstance(part, ToolUse) for part in reply.parts) else "stop"


if __name__ == "__main__":
    serve_forever(OpenAIServer)
