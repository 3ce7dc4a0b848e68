"""Both providers against a mock that nobody here wrote, which judges the client.

Retrying is not the provider's: its errors say what to do. `persist` does just that, so that the
verdict shows whether what they say is right.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from llmock.pytest_plugin import LLMock
from pydantic import SecretStr

from agent.errors import ProviderError, RefusalKind
from agent.messages import Message, TextBlock, ToolResultBlock, user_text
from agent.provider import Completed, ModelRequest, Provider
from agent.providers import build_provider
from agent.settings import ProviderSettings
from agent.tools import ToolSpec

WEATHER = ToolSpec(
    "get_weather",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
AGAIN = {RefusalKind.TRANSIENT, RefusalKind.RATE_LIMIT}


@pytest.fixture(params=["anthropic", "openai"])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
async def provider(kind: Any, llmock: LLMock) -> AsyncIterator[Provider]:
    settings = ProviderSettings(
        kind=kind,
        api_key=SecretStr("key-for-llmock"),
        base_url=llmock.base_url(kind),
        between_chunks_s=0.2,
    )
    provider = build_provider("p", settings)
    yield provider
    await provider.aclose()


async def ask(provider: Provider, *messages: Message, tools: bool = False) -> Completed:
    request = ModelRequest(
        model="test-model",
        system="Be brief.",
        messages=messages or (user_text("What is the weather in Paris?"),),
        tools=(WEATHER,) if tools else (),
        max_output_tokens=500,
    )
    async with provider.stream(request) as events:
        completed = [event async for event in events][-1]
    assert isinstance(completed, Completed)
    return completed


async def persist(provider: Provider, *messages: Message, **options: Any) -> Completed:
    """Ask, and up to four times again, but only when and as soon as the refusal says so."""
    for pause in (0.06, 0.12, 0.24, 0.48):
        try:
            return await ask(provider, *messages, **options)
        except ProviderError as error:
            if error.refusal.kind not in AGAIN:
                raise
            stated = error.refusal.retry_after_s
            await asyncio.sleep(pause if stated is None else stated)
    return await ask(provider, *messages, **options)


NOT_JSON = "a chunk that is not JSON"
FAULTS: dict[str, Callable[[LLMock], object]] = {
    "a rate limit with its wait": lambda mock: mock.rate_limit(retry_after=0.5),
    "an outage": lambda mock: mock.fail(503),
    "overload": lambda mock: mock.fail(529),
    "a dropped connection": lambda mock: mock.disconnect(after_chunks=2),
    "a stream that ends early": lambda mock: mock.truncate(after_chunks=2),
    "a stream that ends before it says anything": lambda mock: mock.truncate(after_chunks=0),
    NOT_JSON: lambda mock: mock.corrupt(after_chunks=2),
    "a stream that falls silent": lambda mock: mock.stall(after_chunks=2, seconds=5),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_what_passes_is_asked_again_until_it_works(
    llmock: LLMock, provider: Provider, kind: str, fault: str
) -> None:
    FAULTS[fault](llmock)
    llmock.reply("Sunny, and warm for the season.", times=None)
    assert (await persist(provider)).message.text == "Sunny, and warm for the season."
    if fault == NOT_JSON and kind == "anthropic":
        # It puts an event without a name into the stream, which is no part of Anthropic's protocol.
        # The SDK skips it, nothing of the answer is missing, and there is no reason to ask again.
        assert [finding.code for finding in llmock.verdict().findings] == [
            "malformed_chunk_ignored"
        ]
        return
    assert len(llmock.requests) > 1
    if fault == NOT_JSON:
        # Whether the mock sees us leave depends on how much of the stream it had sent by then; that
        # the call was made again is seen above.
        assert {finding.code for finding in llmock.verdict().findings} <= {
            "malformed_chunk_ignored"
        }
        return
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize(
    ("status", "refused"),
    [
        (401, RefusalKind.AUTH),
        (403, RefusalKind.AUTH),
        (404, RefusalKind.AUTH),
        (422, RefusalKind.FORMAT),
    ],
)
async def test_what_never_works_is_asked_once(
    llmock: LLMock, provider: Provider, status: int, refused: RefusalKind
) -> None:
    llmock.fail(status, times=None)
    with pytest.raises(ProviderError) as caught:
        await persist(provider)
    assert caught.value.refusal.kind is refused
    llmock.assert_resilient(strict=True)
    assert len(llmock.requests) == 1


async def test_a_full_window_is_an_overflow_and_asked_once(
    llmock: LLMock, provider: Provider
) -> None:
    llmock.limits(context_window=1_000)
    with pytest.raises(ProviderError) as caught:
        await persist(provider, user_text("word " * 3_000))
    assert caught.value.refusal.kind is RefusalKind.OVERFLOW
    llmock.assert_resilient(strict=True)
    assert len(llmock.requests) == 1


async def test_a_real_quota_is_waited_for(llmock: LLMock, provider: Provider) -> None:
    """Its limiter refills ten requests a second; the eleventh must wait as long as it says."""
    llmock.limits(rpm=600)
    llmock.reply("Sunny.", times=None)
    answers = [await persist(provider, user_text(f"question {number}")) for number in range(12)]
    assert {answer.message.text for answer in answers} == {"Sunny."}
    llmock.assert_resilient(strict=True)


async def test_a_tool_call_goes_round(llmock: LLMock, provider: Provider) -> None:
    question = user_text("What is the weather in Paris?")
    first = await persist(provider, question, tools=True)
    assert first.stop_reason == "tool_use"
    (call,) = first.message.tool_uses
    assert call.name == "get_weather"
    assert isinstance(call.arguments["city"], str)
    result = ToolResultBlock(call.id, (TextBlock("sunny"),))
    last = await persist(provider, question, first.message, Message("user", (result,)), tools=True)
    assert last.stop_reason == "end"
    assert last.message.text
    assert last.usage is not None
    assert last.usage.output_tokens > 0
    llmock.assert_resilient(strict=True)


async def test_broken_arguments_of_a_call_are_handed_on_as_they_came(
    llmock: LLMock, provider: Provider
) -> None:
    llmock.break_tool_call("malformed_arguments")
    (call,) = (await persist(provider, tools=True)).message.tool_uses
    assert call.arguments == {}
    assert call.raw
    llmock.assert_resilient(strict=True)
