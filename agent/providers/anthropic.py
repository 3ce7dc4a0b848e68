"""Anthropic's Messages API.

`messages.create(stream=True)` with raw events: a third of the cost of `messages.stream`.
"""

from __future__ import annotations

import base64
import json
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
    JsonValue,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    begins_turn,
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
    call_ids,
    parse_arguments,
    result_text,
    unique_calls,
    well_formed,
    wire_name,
    without_tools,
)
from agent.providers.errors import refusal_of

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic, AsyncStream
    from anthropic.types import RawMessageStreamEvent

BASE_URL = "https://api.anthropic.com"
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # the API's own pattern for tool_use ids
_STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "window",
    "refusal": "refusal",
    "pause_turn": "pause",
}
_CACHED: JsonObject = {"type": "ephemeral"}


class AnthropicProvider(SdkProvider["AsyncAnthropic"]):
    """One endpoint that speaks the Messages API."""

    def _build(self) -> AsyncAnthropic:
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

        settings = self._settings
        key = settings.api_key.get_secret_value() if settings.api_key else ""
        proxy = settings.proxy.get_secret_value() if settings.proxy else None
        client = AsyncAnthropic(
            api_key=key,
            base_url=settings.base_url or BASE_URL,
            max_retries=0,
            timeout=settings.total_s,
            webhook_key="",
            open_telemetry=False,
            http_client=DefaultAsyncHttpxClient(trust_env=False, proxy=proxy),
        )
        client._custom_headers = {}  # pyright: ignore[reportPrivateUsage] - ANTHROPIC_CUSTOM_HEADERS
        _ = client.messages  # imports what the first call needs
        return client

    async def _events(
        self, client: AsyncAnthropic, request: ModelRequest, watch: StreamWatch
    ) -> AsyncGenerator[StreamEvent]:
        answer = _Answer(f"{self.name}/{request.model}", call_ids(request.messages))
        async with await self._open(client, request) as events:
            async for event in events:
                watch.beat()
                told = answer.take(event)
                if told is not None:
                    yield told
        yield answer.completed()

    async def _open(
        self, client: AsyncAnthropic, request: ModelRequest
    ) -> AsyncStream[RawMessageStreamEvent]:
        """Start the call; once more without thinking when it no longer fits what stands before it:
        the conversation may have been shortened since."""
        from anthropic import BadRequestError

        body: dict[str, Any] = render(request, f"{self.name}/{request.model}")
        events: AsyncStream[RawMessageStreamEvent]
        try:
            events = await client.messages.create(stream=True, **body)
        except BadRequestError as error:
            if not _refuses_thinking(error, body):
                raise
        else:
            return events
        body = render(request, None)
        events = await client.messages.create(stream=True, **body)
        return events


def _refuses_thinking(error: Exception, body: dict[str, Any]) -> bool:
    refusal = refusal_of(error)
    if refusal.kind not in (RefusalKind.FORMAT, RefusalKind.UNKNOWN):
        return False
    kinds = {block["type"] for message in body["messages"] for block in message["content"]}
    return "thinking" in refusal.detail and not kinds.isdisjoint(("thinking", "redacted_thinking"))


def render(request: ModelRequest, model: str | None) -> dict[str, Any]:
    """The request's body. `model`: the name on the thinking blocks that may go back; None: none."""
    traits = request.traits
    offered = request.tools if traits.tools else ()
    # The API takes calls and results only in requests that define tools.
    spoken = request.messages if offered else without_tools(request.messages)
    ids = WireIds(spoken, _ID)
    turn = max(number for number, message in enumerate(spoken) if begins_turn(message))
    messages: list[dict[str, Any]] = []
    for number, message in enumerate(spoken):
        # Thinking is bound to all that stands before it, which trimming changes between turns.
        own = model if number > turn else None
        content = list(_content(message, ids, own, traits.images))
        messages.append({"role": message.role, "content": content})
    _cache_here(messages[-1]["content"])
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens,
        "messages": messages,
    }
    if offered:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in offered
        ]
    if request.system.strip() and traits.system_prompt:
        body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHED}]
    elif offered:  # tools come before the system prompt: a mark there covers both
        body["tools"][-1]["cache_control"] = _CACHED
    return well_formed(body)


def _cache_here(content: Any) -> None:
    """The conversation so far is a prefix of the next request: let the provider keep it."""
    content[-1] = {**content[-1], "cache_control": _CACHED}


def _content(
    message: Message, ids: WireIds, model: str | None, images: bool
) -> Iterator[dict[str, JsonValue]]:
    shown: list[ImageBlock] = []  # of failed results: those may hold text only
    for block in message.blocks:
        match block:
            case TextBlock() | ImageBlock():
                yield _plain(block, images)
            case ThinkingBlock():
                yield from _thinking(block, model)
            case ToolUseBlock():
                yield {
                    "type": "tool_use",
                    "id": ids(block.id),
                    "name": wire_name(block.name),
                    "input": block.arguments,
                }
            case ToolResultBlock():
                yield _result(block, ids, images)
                if block.is_error:
                    shown += [part for part in block.content if isinstance(part, ImageBlock)]
    yield from (_plain(image, images) for image in shown)


def _result(block: ToolResultBlock, ids: WireIds, images: bool) -> dict[str, JsonValue]:
    if block.is_error:
        content: list[JsonValue] = [{"type": "text", "text": result_text(block)}]
    else:
        content = [_plain(part, images) for part in block.content]
    return {
        "type": "tool_result",
        "tool_use_id": ids(block.tool_use_id),
        "content": content,
        "is_error": block.is_error,
    }


def _plain(block: TextBlock | ImageBlock, images: bool) -> JsonObject:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    if not images:
        return {"type": "text", "text": NO_IMAGES}
    data = base64.b64encode(block.data).decode("ascii")
    source: JsonObject = {"type": "base64", "media_type": block.media_type, "data": data}
    return {"type": "image", "source": source}


def _thinking(block: ThinkingBlock, model: str | None) -> Iterator[dict[str, JsonValue]]:
    """Byte-identical to the model that sealed it, and to no other."""
    if block.model != model:
        return
    if block.redacted is not None:
        yield {"type": "redacted_thinking", "data": block.redacted}
    elif block.signature:
        yield {"type": "thinking", "thinking": block.text, "signature": block.signature}


@dataclass(slots=True)
class _Draft:
    """A content block in the making."""

    kind: str
    id: str = ""
    name: str = ""
    parts: list[str] = field(default_factory=list[str])
    signature: str = ""
    data: str = ""


class _Answer:
    """What the events of one stream add up to."""

    def __init__(self, model: str, used: set[str]) -> None:
        self._model = model
        self._used = used
        self._drafts: dict[int, _Draft] = {}
        self._usage: Usage | None = None
        self._stop: str | None = None
        self._ended = False

    def take(self, event: Any) -> StreamEvent | None:
        """Read one raw event; what it tells the caller."""
        kind = event.type
        if kind == "content_block_delta":
            return self._delta(event.index, event.delta)
        if kind == "content_block_start":
            return self._start(event.index, event.content_block)
        if kind == "message_start":
            self._usage = _usage(event.message.usage, None)
            return UsageReport(self._usage)
        if kind == "message_delta":
            self._stop = event.delta.stop_reason
            self._usage = _usage(event.usage, self._usage)
        elif kind == "message_stop":
            self._ended = True
        return None

    def _start(self, index: int, block: Any) -> StreamEvent | None:
        draft = self._drafts[index] = _Draft(block.type)
        if block.type == "tool_use":
            draft.id, draft.name = block.id, block.name
            if block.input:  # a compatible server may send the whole input at once
                draft.parts.append(json.dumps(block.input))
        elif block.type == "redacted_thinking":
            draft.data = block.data
        elif block.type == "text" and block.text:
            draft.parts.append(block.text)
            return TextDelta(block.text)
        return None

    def _delta(self, index: int, delta: Any) -> StreamEvent | None:
        kind = delta.type
        draft = self._drafts[index]
        if kind == "text_delta":
            draft.parts.append(delta.text)
            return TextDelta(delta.text) if delta.text else None
        if kind == "input_json_delta":
            draft.parts.append(delta.partial_json)
        elif kind == "thinking_delta":
            draft.parts.append(delta.thinking)
            return ThinkingDelta(delta.thinking)
        elif kind == "signature_delta":
            draft.signature += delta.signature
        return None

    def completed(self) -> Completed:
        """The whole message. Raises `StreamEnded` when the end marker is missing."""
        if not self._ended or self._stop is None:
            raise StreamEnded("the stream ended without message_stop")
        blocks = [self._finished(self._drafts[index]) for index in sorted(self._drafts)]
        made = (block for block in blocks if isinstance(block, ToolUseBlock))
        calls = iter(unique_calls(made, self._used))
        whole = tuple(
            next(calls) if isinstance(block, ToolUseBlock) else block
            for block in blocks
            if block is not None
        )
        stop = _STOPS.get(self._stop, "other")
        return Completed(Message("assistant", whole), stop, self._usage)

    def _finished(self, draft: _Draft) -> Block | None:
        text = well_formed("".join(draft.parts))
        match draft.kind:
            case "text":
                return TextBlock(text) if text else None
            case "tool_use":
                arguments, raw = parse_arguments("".join(draft.parts))
                return ToolUseBlock(draft.id, draft.name, arguments, raw)
            case "thinking":
                return ThinkingBlock(text, self._model, signature=draft.signature or None)
            case "redacted_thinking":
                return ThinkingBlock("", self._model, redacted=draft.data)
            case _:
                return None


def _usage(reported: Any, earlier: Usage | None) -> Usage:
    """message_delta repeats some of message_start's figures and leaves others out."""
    known = earlier or Usage()

    def figure(name: str, before: int) -> int:
        value = getattr(reported, name, None)
        return before if value is None else int(value)

    return Usage(
        figure("input_tokens", known.input_tokens),
        figure("output_tokens", known.output_tokens),
        figure("cache_read_input_tokens", known.cache_read_tokens),
        figure("cache_creation_input_tokens", known.cache_write_tokens),
    )
