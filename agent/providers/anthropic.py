"""Anthropic's Messages API.

`messages.create(stream=True)` with raw events: a third of the cost of `messages.stream`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent.deadlines import StreamWatch
from agent.errors import Refusal, RefusalKind
from agent.messages import Block, Message, TextBlock, ThinkingBlock, ToolUseBlock
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
from agent.providers.anthropic_body import has_thinking, render
from agent.providers.client import (
    AnswerFailed,
    SdkProvider,
    http_client,
    stop_reason,
    stream_ended,
)
from agent.providers.errors import read_refusal
from agent.providers.named_image import naming
from agent.providers.wire import (
    Pairs,
    arguments_piece,
    clean,
    parse_arguments,
    tokens,
    unique_calls,
    word,
)

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic, AsyncStream
    from anthropic.types import RawMessageStreamEvent

log = logging.getLogger(__name__)

BASE_URL = "https://api.anthropic.com"
_STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "window",
    "refusal": "filter",  # a classifier of the provider's, also in the middle of a word
    "pause_turn": "pause",
}
# What a block is whose start did not come, by its first piece.
_BEGUN_BY = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking"}


class AnthropicProvider(SdkProvider["AsyncAnthropic"]):
    """One endpoint that speaks the Messages API."""

    def _build(self) -> AsyncAnthropic:
        from anthropic import AsyncAnthropic

        settings = self._settings
        key = settings.api_key.get_secret_value() if settings.api_key else ""
        client = AsyncAnthropic(
            api_key=key,
            base_url=settings.base_url or BASE_URL,
            max_retries=0,
            timeout=settings.total_s,
            webhook_key="",
            open_telemetry=False,
            http_client=http_client(settings),
        )
        # Instead of what ANTHROPIC_CUSTOM_HEADERS says. The SDK sends the key as a bearer token;
        # compatible endpoints may know the older header only.
        headers = {"x-api-key": key} if settings.base_url else {}
        client._custom_headers = headers  # pyright: ignore[reportPrivateUsage]
        _ = client.messages  # imports what the first call needs
        return client

    async def _events(
        self, client: AsyncAnthropic, request: ModelRequest, watch: StreamWatch
    ) -> AsyncGenerator[StreamEvent]:
        model = f"{self.name}/{request.model}"
        answer = _Answer(model, request)
        from agent.providers.heard import hear

        async with await _open(client, request, model) as events:
            hear(events.response, watch)
            async for event in events:
                watch.beat()
                told = answer.take(event)
                if told is not None:
                    yield told
        yield answer.completed()


async def _open(
    client: AsyncAnthropic, request: ModelRequest, model: str
) -> AsyncStream[RawMessageStreamEvent]:
    """Start the call; once more without thinking when its seal is refused.

    A seal is bound to everything before it, and trimming or new instructions change that.
    """
    from anthropic import BadRequestError

    thinking = True
    while True:
        body = render(request, model, thinking=thinking)
        try:
            events: AsyncStream[RawMessageStreamEvent]
            events = await client.messages.create(stream=True, **body)
        except BadRequestError as error:
            refusal = await read_refusal(error)
            about = refusal.kind is RefusalKind.FORMAT and "thinking" in refusal.detail.lower()
            if not (about and has_thinking(body)):
                raise AnswerFailed(naming(refusal, body)) from None
            thinking = False
        else:
            return events


@dataclass(slots=True)
class _Draft:
    """A content block in the making."""

    kind: str
    id: str = ""
    name: str = ""
    given: str = ""  # a call's input that came with its start; pieces stand for it
    parts: list[str] = field(default_factory=list[str])
    signature: str = ""
    data: str = ""
    ended: bool = False


class _Answer:
    """What the events of one stream add up to."""

    def __init__(self, model: str, request: ModelRequest) -> None:
        self._model = model
        self._request = request
        self._drafts: list[_Draft] = []
        self._newest: dict[int, _Draft] = {}  # of each index; some servers give all of them 0
        self._pairs = Pairs()
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
            return None if self._usage is None else UsageReport(self._usage)
        if kind == "message_delta":
            self._stop = event.delta.stop_reason
            self._usage = _usage(event.usage, self._usage)
        elif kind == "content_block_stop" and event.index in self._newest:
            self._newest[event.index].ended = True
        elif kind == "message_stop":
            self._ended = True
        return None

    def _begin(self, index: int, kind: str) -> _Draft:
        draft = self._newest[index] = _Draft(kind)
        self._drafts.append(draft)
        return draft

    def _start(self, index: int, block: Any) -> StreamEvent | None:
        draft = self._begin(index, block.type)
        if block.type == "tool_use":
            draft.id, draft.name = word(block.id), word(block.name)
            draft.given = arguments_piece(block.input)
        elif block.type == "redacted_thinking":
            draft.data = block.data
        elif block.type == "text" and block.text:
            draft.parts.append(block.text)
            return TextDelta(clean(block.text))
        return None

    def _begun_by(self, index: int, kind: str) -> _Draft:
        """A block whose start did not come. Raises `AnswerFailed` for a call: nobody knows which."""
        if kind == "input_json_delta":
            detail = "a piece of a call that never began"
            raise AnswerFailed(Refusal(RefusalKind.TRANSIENT, detail=detail))
        return self._begin(index, _BEGUN_BY.get(kind, kind))

    def _delta(self, index: int, delta: Any) -> StreamEvent | None:
        kind = delta.type
        draft = self._newest.get(index) or self._begun_by(index, kind)
        if kind == "text_delta":
            draft.parts.append(word(delta.text))
            text = self._pairs.clean(word(delta.text))
            return TextDelta(text) if text else None
        if kind == "input_json_delta":
            draft.parts.append(arguments_piece(delta.partial_json))
        elif kind == "thinking_delta":
            draft.parts.append(word(delta.thinking))
            return ThinkingDelta(word(delta.thinking))
        elif kind == "signature_delta":
            draft.signature += word(delta.signature)
        return None

    def completed(self) -> Completed:
        """The whole message. Raises `AnswerFailed` when the end marker is missing."""
        if not self._ended or self._stop is None:
            raise stream_ended("message_stop")
        blocks = [self._finished(draft) for draft in self._drafts]
        calls = unique_calls(
            [block for block in blocks if isinstance(block, ToolUseBlock)], self._request.messages
        )
        renamed = iter(calls)
        whole = tuple(
            next(renamed) if isinstance(block, ToolUseBlock) else block
            for block in blocks
            if block is not None
        )
        stop = stop_reason(self._stop, _STOPS, self._model)
        if any(draft.kind == "tool_use" and not draft.ended for draft in self._drafts):
            log.info("%s sent a call without its end", self._model)
            stop = "length"  # cut off, whatever the reason says
        return Completed(Message("assistant", whole), stop, self._usage)

    def _finished(self, draft: _Draft) -> Block | None:
        text = clean("".join(draft.parts))
        match draft.kind:
            case "text":
                return TextBlock(text) if text else None
            case "tool_use":
                arguments, raw = parse_arguments(
                    "".join(draft.parts) if text.strip() else draft.given
                )
                return ToolUseBlock(draft.id, draft.name, arguments, raw)
            case "thinking":
                return ThinkingBlock(text, self._model, signature=draft.signature or None)
            case "redacted_thinking":
                return ThinkingBlock("", self._model, redacted=draft.data)
            case _:
                return None


def _usage(reported: Any, earlier: Usage | None) -> Usage | None:
    """message_delta repeats some of message_start's figures and leaves others out. None where no number
    of tokens that were read is known."""
    if earlier is None and tokens(getattr(reported, "input_tokens", None)) is None:
        return None
    known = earlier or Usage()

    def figure(name: str, before: int) -> int:
        value = tokens(getattr(reported, name, None))
        return before if value is None else value

    return Usage(
        figure("input_tokens", known.input_tokens),
        figure("output_tokens", known.output_tokens),
        figure("cache_read_input_tokens", known.cache_read_tokens),
        figure("cache_creation_input_tokens", known.cache_write_tokens),
    )
