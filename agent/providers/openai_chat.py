"""OpenAI's Chat Completions API, and the many servers that speak it.

Compatible servers differ in what they take (`openai_body.Dialect`, learnt and remembered for each
model) and in what they send: chunks without choices, calls without ids or indices, no usage.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

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
from agent.providers.client import (
    AnswerFailed,
    SdkProvider,
    http_client,
    stop_reason,
    stream_ended,
)
from agent.providers.errors import read_refusal
from agent.providers.named_image import naming
from agent.providers.openai_body import Dialect, learnt, render
from agent.providers.wire import (
    Pairs,
    arguments_piece,
    clean,
    parse_arguments,
    tokens,
    unique_calls,
    word,
)
from agent.settings import ProviderSettings

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk

log = logging.getLogger(__name__)

BASE_URL = "https://api.openai.com/v1"
# Seconds after which a model that took no tools is offered them again: without them it can do little,
# the refusal may have been another upstream's, and the server may be another by then.
TOOLS_AGAIN_S = 600.0
_STOPS: dict[str, StopReason] = {
    "stop": "end",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "length",
    "content_filter": "filter",
    "abort": "pause",  # SGLang's, for a request that it gave up
    "model_context_window_exceeded": "window",
}


class OpenAIChatProvider(SdkProvider["AsyncOpenAI"]):
    """One endpoint that speaks Chat Completions."""

    def __init__(self, name: str, settings: ProviderSettings) -> None:
        super().__init__(name, settings)
        self._dialects: dict[str, Dialect] = {}
        self._tools_refused_at: dict[str, float] = {}

    def _build(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI

        settings = self._settings
        client = AsyncOpenAI(
            api_key=settings.api_key.get_secret_value() if settings.api_key else "none",
            base_url=settings.base_url or BASE_URL,
            max_retries=0,
            timeout=settings.total_s,
            webhook_secret="",  # none, and not the environment's
            http_client=http_client(settings),
        )
        # Set afterwards: None in the constructor means "look into the environment".
        client.organization, client.project = settings.organization, None
        client.admin_api_key = None
        # Instead of what OPENAI_CUSTOM_HEADERS says.
        client._custom_headers = {}  # pyright: ignore[reportPrivateUsage]
        _ = client.chat.completions  # imports what the first call needs
        return client

    async def _events(
        self, client: AsyncOpenAI, request: ModelRequest, watch: StreamWatch
    ) -> AsyncGenerator[StreamEvent]:
        model = f"{self.name}/{request.model}"
        answer = _Answer(model, request)
        from agent.providers.heard import hear

        async with await self._open(client, request, model) as chunks:
            hear(chunks.response, watch)
            async for chunk in chunks:
                watch.beat()
                for told in answer.take(chunk):
                    yield told
        yield answer.completed()

    async def _open(
        self, client: AsyncOpenAI, request: ModelRequest, model: str
    ) -> AsyncStream[ChatCompletionChunk]:
        """Start the call; again while each refusal teaches something new of the server. What was
        learnt stays, also when the next try fails for another reason or is cancelled."""
        from openai import APIStatusError

        dialect = self._known(request.model)
        tried = {dialect}
        while True:
            body = render(request, model, dialect)
            try:
                chunks: AsyncStream[ChatCompletionChunk]
                chunks = await client.chat.completions.create(stream=True, **body)
            except APIStatusError as error:
                refusal = await read_refusal(error)
                dialect = learnt(dialect, refusal, body)
                if dialect in tried:
                    raise AnswerFailed(naming(refusal, body)) from None
                tried.add(dialect)
                self._learn(request.model, dialect)
                log.info("%s is spoken to in another way from now on: %s", model, dialect)
            else:
                return chunks

    def _learn(self, model: str, dialect: Dialect) -> None:
        if not dialect.tools:
            self._tools_refused_at[model] = asyncio.get_running_loop().time()
        self._dialects[model] = dialect

    def _known(self, model: str) -> Dialect:
        dialect = self._dialects.get(model, Dialect())
        refused_at = self._tools_refused_at.get(model, -math.inf)
        if asyncio.get_running_loop().time() < refused_at + TOOLS_AGAIN_S:
            return dialect
        return replace(dialect, tools=True)


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    parts: list[str] = field(default_factory=list[str])


class _Answer:
    """What the chunks of one stream add up to."""

    def __init__(self, model: str, request: ModelRequest) -> None:
        self._model = model
        self._request = request
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[_Call] = []
        self._open: dict[int, _Call] = {}  # the newest call of each index
        self._usage: Usage | None = None
        self._stop: str | None = None
        self._counted = False  # whether the newest chunk is the one that ends a stream: usage alone
        self._refused = False
        self._pairs = Pairs()

    def take(self, chunk: Any) -> Iterator[StreamEvent]:
        """Read one chunk; what it tells the caller."""
        usage = getattr(chunk, "usage", None)
        if usage is not None and (told := _usage(usage)) is not None:
            self._usage = told
            yield UsageReport(told)
        choices = getattr(chunk, "choices", None) or ()
        self._counted = usage is not None and not choices
        for choice in choices:
            delta = getattr(choice, "delta", None)
            if delta is not None:
                # Asked in the cheapest way: most chunks have a piece of text and nothing else.
                if delta.model_extra or delta.function_call or delta.refusal:
                    yield from self._rarer(delta)
                if delta.content:
                    yield from self._content(delta.content)
                if delta.tool_calls:
                    self._take_calls(delta.tool_calls)
            reason = getattr(choice, "finish_reason", None)
            if reason is not None:
                self._stop = reason

    def _content(self, content: object) -> Iterator[StreamEvent]:
        """A piece of the answer; Mistral's reasoning models give a list of parts. Raises
        `AnswerFailed`."""
        match content:
            case str():
                self._text.append(content)
                if text := self._pairs.clean(content):
                    yield TextDelta(text)
            case list():
                for part in cast("list[object]", content):
                    yield from self._part(part)
            case _:
                detail = f"content that is no text: {content!r:.40}"
                raise AnswerFailed(Refusal(RefusalKind.TRANSIENT, detail=detail))

    def _part(self, part: object) -> Iterator[StreamEvent]:
        match part:
            case {"type": "text", "text": str(text)}:
                yield from self._content(text)
            case {"type": "thinking", "thinking": list()}:
                for thought in cast("dict[str, list[object]]", part)["thinking"]:
                    match thought:
                        case {"text": str(text)}:
                            yield ThinkingDelta(clean(text))
                        case _:
                            pass
            case _:
                log.info("%s sent a part that is neither text nor thought", self._model)

    def _rarer(self, delta: Any) -> Iterator[StreamEvent]:
        """What few chunks hold, with content or without. Only `reasoning_content` is kept: servers that
        call it `reasoning` (vLLM, OpenRouter) do not want it back."""
        thought = getattr(delta, "reasoning_content", None)
        if isinstance(thought, str) and thought:
            self._thinking.append(thought)
        thought = thought or getattr(delta, "reasoning", None)
        if isinstance(thought, str) and thought:
            yield ThinkingDelta(clean(thought))
        refusal = getattr(delta, "refusal", None)
        if isinstance(refusal, str) and refusal:
            self._refused = True
            self._text.append(refusal)
            yield TextDelta(clean(refusal))
        legacy = getattr(delta, "function_call", None)
        if legacy is not None:
            self._fill(self._open.get(0) or self._begin(0), legacy)

    def _take_calls(self, deltas: Iterable[Any]) -> None:
        for delta in deltas:
            id_, index = word(delta.id), getattr(delta, "index", None)
            if index is None:  # a server without indices: an id begins a call, else it goes on
                index = len(self._calls) if id_ else max(len(self._calls) - 1, 0)
            call = self._open.get(index)
            if call is None or (id_ and call.id and id_ != call.id):  # Gemini: all have index 0
                call = self._begin(index)
            call.id = call.id or id_
            self._fill(call, getattr(delta, "function", None))

    def _begin(self, index: int) -> _Call:
        call = self._open[index] = _Call()
        self._calls.append(call)
        return call

    @staticmethod
    def _fill(call: _Call, function: Any) -> None:
        if function is None:
            return
        call.name = call.name or word(function.name)
        call.parts.append(arguments_piece(function.arguments))

    def completed(self) -> Completed:
        """The whole message. Raises `AnswerFailed` when no end came, or one that is called an error
        (OpenRouter, vLLM). Some servers give no finish reason; the usage of all of it is an end
        too."""
        if self._stop == "error":
            detail = "the server ended the answer with an error"
            raise AnswerFailed(Refusal(RefusalKind.TRANSIENT, detail=detail))
        if self._stop is None and not self._counted:
            raise stream_ended("a finish reason")
        calls = unique_calls(map(_finished, self._calls), self._request.messages)
        blocks: list[Block] = []
        if self._thinking:
            blocks.append(ThinkingBlock(clean("".join(self._thinking)), self._model))
        if self._text:
            blocks.append(TextBlock(clean("".join(self._text))))
        blocks += calls
        stop = "refusal" if self._refused else stop_reason(self._stop, _STOPS, self._model)
        return Completed(Message("assistant", tuple(blocks)), stop, self._usage)


def _finished(call: _Call) -> ToolUseBlock:
    arguments, raw = parse_arguments("".join(call.parts))
    return ToolUseBlock(call.id, call.name, arguments, raw)


def _usage(reported: Any) -> Usage | None:
    """`prompt_tokens` includes what the cache served; DeepSeek gives that in a field of its own. None
    where they are no numbers of tokens."""
    details = getattr(reported, "prompt_tokens_details", None)
    cached = tokens(getattr(details, "cached_tokens", None))
    if cached is None:
        cached = tokens(getattr(reported, "prompt_cache_hit_tokens", None)) or 0
    told = [getattr(reported, name, None) for name in ("prompt_tokens", "completion_tokens")]
    read, written = (0 if figure is None else tokens(figure) for figure in told)
    if read is None or written is None:
        return None
    return Usage(max(0, read - cached), written, cache_read_tokens=cached)
