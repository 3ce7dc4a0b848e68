"""OpenAI's Chat Completions API, and the many servers that speak it.

Compatible servers differ: some know only `max_tokens`, some refuse `stream_options`, some send chunks
without choices, calls without ids, or no usage. What a server does not know is remembered.
"""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent.deadlines import StreamWatch
from agent.errors import RefusalKind
from agent.messages import (
    Block,
    ImageBlock,
    JsonObject,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agent.provider import (
    Completed,
    ModelRequest,
    StopReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
    UsageReport,
)
from agent.providers.client import (
    NO_IMAGES,
    SdkProvider,
    StreamEnded,
    WireIds,
    parse_arguments,
    unique_calls,
)
from agent.providers.errors import refusal_of
from agent.settings import ProviderSettings

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk

BASE_URL = "https://api.openai.com/v1"
_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")  # 40 characters is the API's limit for a call's id
_STOPS: dict[str, StopReason] = {
    "stop": "end",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "length",
    "content_filter": "refusal",
    "model_context_window_exceeded": "window",
}
# Parameters that a server may not know, and what to send instead.
_OPTIONAL = ("max_completion_tokens", "stream_options", "reasoning_content")


class OpenAIChatProvider(SdkProvider["AsyncOpenAI"]):
    """One endpoint that speaks Chat Completions."""

    def __init__(self, name: str, settings: ProviderSettings) -> None:
        super().__init__(name, settings)
        self._unknown: set[str] = set()

    def _build(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        settings = self._settings
        proxy = settings.proxy.get_secret_value() if settings.proxy else None
        client = AsyncOpenAI(
            api_key=settings.api_key.get_secret_value() if settings.api_key else "none",
            base_url=settings.base_url or BASE_URL,
            max_retries=0,
            timeout=settings.total_s,
            webhook_secret="",
            http_client=DefaultAsyncHttpxClient(trust_env=False, proxy=proxy),
        )
        # Set afterwards: None in the constructor means "look into the environment".
        client.organization, client.project = settings.organization, None
        client._custom_headers = {}  # pyright: ignore[reportPrivateUsage] - OPENAI_CUSTOM_HEADERS
        return client

    async def _events(
        self, client: AsyncOpenAI, request: ModelRequest, watch: StreamWatch
    ) -> AsyncGenerator[StreamEvent]:
        answer = _Answer(f"{self.name}/{request.model}", request.max_output_tokens)
        async with await self._open(client, request) as chunks:
            async for chunk in chunks:
                watch.beat()
                for told in answer.take(chunk):
                    yield told
        yield answer.completed()

    async def _open(
        self, client: AsyncOpenAI, request: ModelRequest
    ) -> AsyncStream[ChatCompletionChunk]:
        """Start the call; once more without a parameter that the server does not know."""
        from openai import APIStatusError

        while True:
            body: dict[str, Any] = render(request, f"{self.name}/{request.model}", self._unknown)
            try:
                chunks: AsyncStream[ChatCompletionChunk]
                chunks = await client.chat.completions.create(stream=True, **body)
            except APIStatusError as error:
                unknown = _unknown_parameter(error, body)
                if unknown is None:
                    raise
                self._unknown.add(unknown)
            else:
                return chunks


def _unknown_parameter(error: Exception, body: dict[str, Any]) -> str | None:
    """The optional parameter that a 400 or 422 complains of by name, if we sent it."""
    refusal = refusal_of(error)
    if refusal.status not in (400, 422) or refusal.kind is RefusalKind.OVERFLOW:
        return None
    for name in _OPTIONAL:
        sent = name in body or any(name in message for message in body["messages"])
        if sent and name in refusal.detail:
            return name
    return None


def render(request: ModelRequest, model: str, unknown: set[str]) -> dict[str, Any]:
    """The request's body. `unknown`: parameters that this server does not know."""
    cap = "max_tokens" if "max_completion_tokens" in unknown else "max_completion_tokens"
    body: dict[str, Any] = {
        "model": request.model,
        "messages": list(_messages(request, model, "reasoning_content" not in unknown)),
        cap: request.max_output_tokens,
    }
    if "stream_options" not in unknown:
        body["stream_options"] = {"include_usage": True}
    if request.tools and request.traits.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in request.tools
        ]
    return body


def _messages(request: ModelRequest, model: str, reasoning: bool) -> Iterator[JsonObject]:
    ids = WireIds(request.messages, _ID)
    if request.system.strip() and request.traits.system_prompt:
        yield {"role": "system", "content": request.system}
    for message in request.messages:
        if message.role == "assistant":
            rendered = _assistant(message, ids, tools=request.traits.tools)
            thinking = _thinking(message, model)
            if reasoning and thinking:
                rendered["reasoning_content"] = thinking
            yield rendered
        else:
            yield from _user(message, ids, request)


def _assistant(message: Message, ids: WireIds, *, tools: bool) -> JsonObject:
    text = message.text
    calls = message.tool_uses
    if calls and not tools:
        text = "\n\n".join([text, *(f"[used the tool {call.name}]" for call in calls)]).strip()
        calls = ()
    rendered: JsonObject = {"role": "assistant", "content": text or None}
    if calls:
        rendered["tool_calls"] = [_call(call, ids) for call in calls]
    return rendered


def _thinking(message: Message, model: str) -> str:
    """The reasoning of this very model: some servers want it back, others do not know it."""
    return "".join(
        block.text
        for block in message.blocks
        if isinstance(block, ThinkingBlock) and block.model == model
    )


def _call(call: ToolUseBlock, ids: WireIds) -> JsonObject:
    import json

    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {
        "id": ids(call.id),
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _user(message: Message, ids: WireIds, request: ModelRequest) -> Iterator[JsonObject]:
    """Results each in a message of its own, as text; their images follow with what the user said."""
    images: list[Block] = []
    told: list[Block] = []
    for result in message.tool_results:
        text = "\n\n".join(part.text for part in result.content if isinstance(part, TextBlock))
        pictures = [part for part in result.content if isinstance(part, ImageBlock)]
        images += pictures
        text = text or ("(see the image below)" if pictures else "(empty)")
        if request.traits.tools:
            yield {"role": "tool", "tool_call_id": ids(result.tool_use_id), "content": text}
        else:
            told.append(TextBlock(f"[the tool answered: {text}]"))
    said = [block for block in message.blocks if not isinstance(block, ToolResultBlock)]
    blocks = [*told, *images, *said]
    if blocks:
        yield {"role": "user", "content": _content(blocks, images=request.traits.images)}


def _content(blocks: list[Block], *, images: bool) -> Any:
    parts: list[JsonObject] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            parts.append({"type": "text", "text": block.text})
        elif isinstance(block, ImageBlock) and not images:
            parts.append({"type": "text", "text": NO_IMAGES})
        elif isinstance(block, ImageBlock):
            data = base64.b64encode(block.data).decode("ascii")
            url = f"data:{block.media_type};base64,{data}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(str(part["text"]) for part in parts)
    return parts


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    parts: list[str] = field(default_factory=list[str])


class _Answer:
    """What the chunks of one stream add up to."""

    def __init__(self, model: str, most_tokens: int) -> None:
        self._model = model
        self._most_tokens = most_tokens
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: dict[int, _Call] = {}
        self._usage: Usage | None = None
        self._stop: str | None = None

    def take(self, chunk: Any) -> Iterator[StreamEvent]:
        """Read one chunk; what it tells the caller."""
        if chunk.usage is not None:
            self._usage = _usage(chunk.usage)
            yield UsageReport(self._usage)
        for choice in chunk.choices or ():
            if choice.finish_reason is not None:
                self._stop = choice.finish_reason
            delta = choice.delta
            if delta is None:
                continue
            if delta.content:
                self._text.append(delta.content)
                yield TextDelta(delta.content)
            reasoning = getattr(delta, "reasoning_content", None)
            if reasoning:
                self._thinking.append(reasoning)
                yield ThinkingDelta(reasoning)
            if delta.tool_calls:
                self._take_calls(delta.tool_calls)

    def _take_calls(self, deltas: list[Any]) -> None:
        for delta in deltas:
            index = delta.index
            if index is None:  # a server without indices: an id begins a call, else it goes on
                index = len(self._calls) if delta.id or not self._calls else max(self._calls)
            call = self._calls.setdefault(index, _Call())
            call.id = call.id or (delta.id or "")
            if delta.function is not None:
                call.name = call.name or (delta.function.name or "")
                call.parts.append(delta.function.arguments or "")

    def completed(self) -> Completed:
        """The whole message. Raises `StreamEnded` when no finish reason came."""
        if self._stop is None:
            raise StreamEnded("the stream ended without a finish reason")
        blocks: list[Block] = []
        if self._thinking:
            blocks.append(ThinkingBlock("".join(self._thinking), self._model))
        if self._text:
            blocks.append(TextBlock("".join(self._text)))
        calls = [self._finished(self._calls[index]) for index in sorted(self._calls)]
        blocks += unique_calls(calls)
        stop = _STOPS.get(self._stop, "other")
        if any(call.raw is not None for call in calls) and self._at_cap():
            stop = "length"  # some servers call a cut answer `tool_calls` (field case 143)
        return Completed(Message("assistant", tuple(blocks)), stop, self._usage)

    def _at_cap(self) -> bool:
        return self._usage is not None and self._usage.output_tokens >= self._most_tokens

    @staticmethod
    def _finished(call: _Call) -> ToolUseBlock:
        arguments, raw = parse_arguments("".join(call.parts))
        return ToolUseBlock(call.id, call.name, arguments, raw)


def _usage(reported: Any) -> Usage:
    details = getattr(reported, "prompt_tokens_details", None)
    cached = getattr(details, "cached_tokens", None) or 0
    return Usage(
        input_tokens=max(0, (reported.prompt_tokens or 0) - cached),
        output_tokens=reported.completion_tokens or 0,
        cache_read_tokens=cached,
    )
