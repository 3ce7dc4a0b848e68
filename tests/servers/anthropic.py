"""A strict Anthropic Messages endpoint on loopback; see `tests.servers.llm` for the scripting.

    async with AnthropicServer() as llm:
        llm.answer(thinking("Hm."), "The answer is 4.")
        client = anthropic.AsyncAnthropic(base_url=llm.base_url, api_key=llm.api_key)

What it refuses, and in which words: `tests.servers.anthropic_rules`.
Run by itself (`python -m tests.servers.anthropic --chars 32000 --chunks 8000`) it serves a
benchmark in another process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from aiohttp import web

from tests.servers.anthropic_rules import (
    COUNT_PARAMETERS,
    Rules,
    check_headers,
    check_parameters,
    check_prompt,
    check_request,
)
from tests.servers.llm import (
    Auto,
    Frame,
    Json,
    LlmRequest,
    LlmServer,
    Part,
    Refused,
    Reply,
    Text,
    Thinking,
    ToolUse,
    Usage,
    serve_forever,
)

ERROR_TYPES = {  # https://docs.claude.com/en/api/errors
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
CREATED = "2026-09-01T00:00:00Z"
PING = b'event: ping\ndata: {"type": "ping"}\n\n'


def event(data: Json) -> bytes:
    """One server-sent event, named by its type."""
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()


def error_event(kind: str = "overloaded_error", message: str = "Overloaded") -> bytes:
    """An error in mid-stream: `reply.insert(2, error_event()).end_after(2)`."""
    return event({"type": "error", "error": {"type": kind, "message": message}})


class AnthropicServer(LlmServer):
    """`POST /v1/messages`. `rules` holds what a test may set: window, caps, prefill."""

    api_key = "sk-ant-api03-local-test-key"
    path = "/v1/messages"

    def __init__(self, rules: Rules | None = None) -> None:
        super().__init__()
        self.rules = rules or Rules()
        self.pings = True

    @property
    def base_url(self) -> str:
        return self.origin

    def add_routes(self, app: web.Application) -> None:
        app.router.add_post("/v1/messages/count_tokens", self._handle_count)
        app.router.add_get("/v1/models", self._handle_models)

    async def _handle_count(self, raw: web.Request) -> web.StreamResponse:
        def answer(request: LlmRequest) -> Json:
            check_headers(request.headers, self.api_key, self.rules)
            check_parameters(request.body, COUNT_PARAMETERS)
            check_prompt(request.body, self.rules)
            return {"input_tokens": self.rules.count(request.body)}

        return await self.guarded(raw, answer)

    async def _handle_models(self, raw: web.Request) -> web.StreamResponse:
        def answer(request: LlmRequest) -> Json:
            check_headers(request.headers, self.api_key, self.rules)
            names = self.rules.models
            rows = [
                {"type": "model", "id": name, "display_name": name, "created_at": CREATED}
                for name in names
            ]
            return {"data": rows, "has_more": False, "first_id": names[0], "last_id": names[-1]}

        return await self.guarded(raw, answer)

    def check(self, request: LlmRequest) -> None:
        check_headers(request.headers, self.api_key, self.rules)
        version = request.headers["anthropic-version"]
        check_request(request.body, version, request.size, self.rules)

    def not_json(self, reason: str) -> Refused:
        return Refused(f"The request body is not valid JSON: {reason}")

    def error_type(self, status: int) -> str:
        return ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")

    def error_body(self, refused: Refused) -> Json:
        detail = {"type": refused.type, "message": refused.message}
        return {"type": "error", "error": detail, "request_id": f"req_{self.next_number():06d}"}

    def frames(self, reply: Reply, request: LlmRequest) -> Iterator[Frame]:
        yield Frame(event({"type": "message_start", "message": self._opening(reply, request)}))
        if self.pings:
            yield Frame(PING)
        seals = self._seals(reply, request)
        for index, part in enumerate(reply.parts):
            yield from self._block_frames(index, part, seals[index])
        delta = {"stop_reason": stop_reason(reply), "stop_sequence": None}
        usage = {"output_tokens": self._usage(reply, request).output}
        yield Frame(event({"type": "message_delta", "delta": delta, "usage": usage}))

    def end_marker(self) -> bytes:
        return event({"type": "message_stop"})

    def whole(self, reply: Reply, request: LlmRequest) -> Json:
        usage = self._usage(reply, request)
        message = self._opening(reply, request)
        seals = self._seals(reply, request)
        message["content"] = [
            self._block(part, seal) for part, seal in zip(reply.parts, seals, strict=True)
        ]
        message["stop_reason"] = stop_reason(reply)
        message["usage"]["output_tokens"] = usage.output
        return message

    def _opening(self, reply: Reply, request: LlmRequest) -> Json:
        usage = self._usage(reply, request)
        return {
            "id": f"msg_01{self.next_number():022d}",
            "type": "message",
            "role": "assistant",
            "model": request.body.get("model"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": usage.input,
                "cache_creation_input_tokens": usage.cache_write,
                "cache_read_input_tokens": usage.cache_read,
                "output_tokens": 1,
            },
        }

    def _usage(self, reply: Reply, request: LlmRequest) -> Usage:
        if isinstance(reply.usage, Usage):
            return reply.usage
        produced = sum(len(piece or "") for part in reply.parts for piece in part.pieces)
        return Usage(self.rules.count(request.body), max(1, -(-produced // 4)))

    def _seals(self, reply: Reply, request: LlmRequest) -> list[str]:
        """A signature for each thinking block; those of other parts are empty."""
        seals, last = [], None
        for part in reply.parts:
            if isinstance(part, Thinking):
                last = self.rules.seals.sign(part, request.body, last)
            seals.append(last if isinstance(part, Thinking) and last else "")
        return seals

    def _block_frames(self, index: int, part: Part, seal: str) -> Iterator[Frame]:
        """One block: its start, its deltas, its end."""
        opening = self._block(part, seal, opening=True)
        start = {"type": "content_block_start", "index": index, "content_block": opening}
        yield Frame(event(start))
        kind, key = DELTAS[type(part)]
        head = (
            f'event: content_block_delta\ndata: {{"type": "content_block_delta", "index": {index}, '
        )
        head += f'"delta": {{"type": "{kind}", "{key}": '
        for piece in part.pieces:
            if piece is not None:
                yield Frame(f"{head}{json.dumps(piece)}}}}}\n\n".encode(), content=True)
        if isinstance(part, Thinking) and part.redacted is None:
            delta = {"type": "signature_delta", "signature": seal}
            yield Frame(event({"type": "content_block_delta", "index": index, "delta": delta}))
        yield Frame(event({"type": "content_block_stop", "index": index}))

    def _block(self, part: Part, seal: str, *, opening: bool = False) -> Json:
        """A content block; at the opening of a stream it is still empty."""
        joined = "" if opening else "".join(piece or "" for piece in part.pieces)
        if isinstance(part, Text):
            return {"type": "text", "text": joined}
        if isinstance(part, ToolUse):
            id_ = part.id if part.id is not None else f"toolu_01{self.next_number():022d}"
            arguments = json.loads(joined) if joined else {}
            return {"type": "tool_use", "id": id_, "name": part.name, "input": arguments}
        if part.redacted is not None:
            return {"type": "redacted_thinking", "data": part.redacted}
        return {"type": "thinking", "thinking": joined, "signature": "" if opening else seal}


DELTAS = {
    Text: ("text_delta", "text"),
    Thinking: ("thinking_delta", "thinking"),
    ToolUse: ("input_json_delta", "partial_json"),
}


def stop_reason(reply: Reply) -> str | None:
    """The scripted reason, else the one that fits the blocks."""
    if not isinstance(reply.stop, Auto):
        return reply.stop
    return "tool_use" if any(isinstance(part, ToolUse) for part in reply.parts) else "end_turn"


if __name__ == "__main__":
    serve_forever(AnthropicServer)
