"""The embedded model, for real: tokens and requests are asserted, never what it says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from agent.errors import ProviderError, RefusalKind
from agent.messages import Message, user_text
from agent.model import ChatModel
from agent.provider import Completed, ModelRequest, TextDelta
from bridge.log import Redactor
from bridge.models.local_model import CONTEXT_TOKENS, available, local_chat_model

pytestmark = pytest.mark.localmodel


@pytest.fixture
async def model() -> AsyncIterator[ChatModel]:
    assert available(), "requirements/local.txt is installed by `make test`"
    async with local_chat_model(Redactor()) as made:
        yield made


def request(model: ChatModel, *messages: Message, tokens: int = 4) -> ModelRequest:
    return ModelRequest(model.id, "Be brief.", messages, (), tokens, model.traits)


async def test_a_conversation_streams_and_reports_its_tokens(model: ChatModel) -> None:
    async with model.provider.stream(request(model, user_text("Say hello."))) as events:
        told = [event async for event in events]
    deltas = [event for event in told if isinstance(event, TextDelta)]
    first = told[-1]
    assert isinstance(first, Completed)
    assert first.usage is not None
    assert 1 <= first.usage.output_tokens <= 4
    assert len(deltas) > 1
    longer = (user_text("Say hello."), first.message, user_text("And again, please."))
    async with model.provider.stream(request(model, *longer)) as events:
        second = [event async for event in events][-1]
    assert isinstance(second, Completed)
    assert second.usage is not None

    def read(usage: object) -> int:
        return usage.input_tokens + usage.cache_read_tokens  # type: ignore[attr-defined]

    assert read(second.usage) > read(first.usage), "the earlier turn was part of the request"


async def test_a_real_overflow_is_recognised_with_its_limit(model: ChatModel) -> None:
    with pytest.raises(ProviderError) as caught:
        async with model.provider.stream(request(model, user_text("word " * 9_000))) as events:
            _ = [event async for event in events]
    refusal = caught.value.refusal
    assert refusal.kind is RefusalKind.OVERFLOW
    assert refusal.limit_tokens == CONTEXT_TOKENS


async def test_a_cancelled_stream_ends_at_once_and_the_next_works(model: ChatModel) -> None:
    seen = asyncio.Event()

    async def read() -> None:
        long = request(model, user_text("Count to one thousand."), tokens=500)
        async with model.provider.stream(long) as events:
            async for _ in events:
                seen.set()

    task = asyncio.ensure_future(read())
    first = asyncio.ensure_future(seen.wait())
    await asyncio.wait([task, first], return_when=asyncio.FIRST_COMPLETED)
    first.cancel()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with model.provider.stream(request(model, user_text("Hello."))) as events:
        assert [event async for event in events]
