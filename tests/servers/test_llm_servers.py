"""The local LLM servers stream what a test scripted, with its faults, through the real SDKs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from tests.servers.anthropic import AnthropicServer
from tests.servers.anthropic import error_event as anthropic_error
from tests.servers.llm import (
    HttpReply,
    LlmServer,
    Reply,
    Text,
    Usage,
    long_text,
    redacted_thinking,
    text,
    thinking,
    tool,
)
from tests.servers.openai import EMPTY_CHOICES, NULL_DELTA, OpenAIServer
from tests.servers.openai import error_event as openai_error

HI: list[Any] = [{"role": "user", "content": "hi"}]


@pytest.fixture
async def claude() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer() as server:
        yield server


@pytest.fixture
async def gpt() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer() as server:
        yield server


@pytest.fixture
async def claude_sdk(claude: AnthropicServer) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(
        base_url=claude.base_url, api_key=claude.api_key, max_retries=0
    ) as sdk:
        yield sdk


@pytest.fixture
async def gpt_sdk(gpt: OpenAIServer) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=gpt.base_url, api_key=gpt.api_key, max_retries=0) as sdk:
        yield sdk


async def claude_events(sdk: anthropic.AsyncAnthropic, messages: list[Any] = HI) -> list[Any]:
    stream = await sdk.messages.create(model="m", max_tokens=99, messages=messages, stream=True)
    return [event async for event in stream]


async def claude_message(sdk: anthropic.AsyncAnthropic) -> Any:
    """The answer as the SDK puts it together from the stream."""
    async with sdk.messages.stream(model="m", max_tokens=99, messages=HI) as stream:
        return await stream.get_final_message()


async def gpt_chunks(sdk: openai.AsyncOpenAI, **more: Any) -> list[Any]:
    stream = await sdk.chat.completions.create(model="m", messages=HI, stream=True, **more)
    return [chunk async for chunk in stream]


def gpt_text(chunks: list[Any]) -> str:
    return "".join(
        chunk.choices[0].delta.content or ""
        for chunk in chunks
        if chunk.choices and chunk.choices[0].delta
    )


# What is scripted arrives


async def test_claude_streams_each_chunk_as_scripted(
    claude: AnthropicServer, claude_sdk: anthropic.AsyncAnthropic
) -> None:
    claude.answer(text("Hello there", size=5))
    events = await claude_events(claude_sdk)
    assert [e.type for e in events][:2] == ["message_start", "content_block_start"]
    deltas = [e.delta.text for e in events if e.type == "content_block_delta"]
    assert deltas == ["Hello", " ther", "e"]
    assert events[-1].type == "message_stop"
    assert claude.requests[0].finished
    assert claude.requests[0].content_chunks == 3


async def test_gpt_streams_each_chunk_as_scripted(
    gpt: OpenAIServer, gpt_sdk: openai.AsyncOpenAI
) -> None:
    gpt.answer(Text(("Hel", None, "lo")))
    chunks = await gpt_chunks(gpt_sdk)
    assert [c.choices[0].delta.content for c in chunks] == ["", "Hel", None, "lo", None]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices[0].finish_reason == "stop"


async def test_whole_answers_equal_streamed_ones(
    claude: AnthropicServer,
    claude_sdk: anthropic.AsyncAnthropic,
    gpt: OpenAIServer,
    gpt_sdk: openai.AsyncOpenAI,
) -> None:
    parts = (thinking("Hm."), "Let me see.", tool("now", {"zone": "UTC"}, id="call_1"))
    for _ in range(2):
        claude.answer(*parts)
        gpt.answer(*parts)
    streamed = await claude_message(claude_sdk)
    whole = await claude_sdk.messages.create(model="m", max_tokens=99, messages=HI)
    assert [b.type for b in whole.content] == ["thinking", "text", "tool_use"]
    assert [b.type for b in streamed.content] == [b.type for b in whole.content]
    assert streamed.content[2].input == whole.content[2].to_dict()["input"] == {"zone": "UTC"}
    completion = await gpt_sdk.chat.completions.create(model="m", messages=HI)
    message = completion.choices[0].message
    assert message.content == gpt_text(await gpt_chunks(gpt_sdk)) == "Let me see."
    assert message.tool_calls is not None
    assert message.tool_calls[0].id == "call_1"
    assert message.to_dict()["reasoning_content"] == "Hm."


async def test_replies_are_used_in_order_and_then_the_default(
    gpt: OpenAIServer, gpt_sdk: openai.AsyncOpenAI
) -> None:
    gpt.answer("one")
    gpt.answer_with(lambda request: f"{request.body['model']}: {request.last_user_text}")
    assert [gpt_text(await gpt_chunks(gpt_sdk)) for _ in range(3)] == ["one", "m: hi", "hi"]

    async def later(_: object) -> str:
        await asyncio.sleep(0)
        return "from now on"

    gpt.default = later
    assert gpt_text(await gpt_chunks(gpt_sdk)) == "from now on"
    assert gpt.waiting_replies == 0


async def test_claude_thinking_is_signed_and_may_be_redacted(
    claude: AnthropicServer, claude_sdk: anthropic.AsyncAnthropic
) -> None:
    claude.answer(thinking("Hm, hm."), redacted_thinking("b64=="), "Yes.")
    message = await claude_message(claude_sdk)
    assert message.content[0].thinking == "Hm, hm."
    assert message.content[0].signature
    assert message.content[1].data == "b64=="


async def test_claude_tool_input_comes_in_fragments_under_one_block(
    claude: AnthropicServer, claude_sdk: anthropic.AsyncAnthropic
) -> None:
    claude.answer(tool("a", {"x": "1234567890"}, size=4), tool("b"))
    events = await claude_events(claude_sdk)
    fragments = [e for e in events if e.type == "content_block_delta" and e.index == 0]
    assert len(fragments) > 3
    assert json.loads("".join(e.delta.partial_json for e in fragments)) == {"x": "1234567890"}
    starts = [e.content_block for e in events if e.type == "content_block_start"]
    assert [s.name for s in starts] == ["a", "b"]
    assert starts[0].id != starts[1].id


async def test_gpt_names_a_call_in_its_first_chunk_only(
    gpt: OpenAIServer, gpt_sdk: openai.AsyncOpenAI
) -> None:
    gpt.answer(tool("a", {"x": 1}, size=3), tool("b", '{"y"', whole=True))
    calls = [
        c.choices[0].delta.tool_calls[0]
        for c in await gpt_chunks(gpt_sdk)
        if c.choices[0].delta.tool_calls
    ]
    first = [c for c in calls if c.index == 0]
    assert first[0].function.name == "a"
    assert all(c.id is None and c.function.name is None for c in first[1:])
    assert "".join(c.function.arguments for c in first) == '{"x": 1}'
    (second,) = [c for c in calls if c.index == 1]
    assert (second.function.name, second.function.arguments) == ("b", '{"y"')


async def test_usage_is_reported_where_the_api_reports_it(
    claude: AnthropicServer,
    claude_sdk: anthropic.AsyncAnthropic,
    gpt: OpenAIServer,
    gpt_sdk: openai.AsyncOpenAI,
) -> None:
    usage = Usage(input=7, output=9, cache_read=100, cache_write=20)
    claude.answer("a", usage=usage)
    events = await claude_events(claude_sdk)
    start = events[0].message.usage
    assert (start.input_tokens, start.cache_read_input_tokens) == (7, 100)
    assert start.cache_creation_input_tokens == 20
    assert events[-2].usage.output_tokens == 9
    for _ in range(2):
        gpt.answer("a", usage=usage)
    gpt.answer("a", usage=None)
    options = {"stream_options": {"include_usage": True}}
    last = (await gpt_chunks(gpt_sdk, **options))[-1]
    assert last.choices == []
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (127, 9)
    assert last.usage.prompt_tokens_details.cached_tokens == 100
    assert all(c.usage is None for c in await gpt_chunks(gpt_sdk))
    assert all(c.usage is None for c in await gpt_chunks(gpt_sdk, **options))


@pytest.mark.parametrize("reason", ["model_context_window_exceeded", "abort", None])
async def test_any_reason_for_the_end_can_be_scripted(
    claude: AnthropicServer,
    claude_sdk: anthropic.AsyncAnthropic,
    gpt: OpenAIServer,
    gpt_sdk: openai.AsyncOpenAI,
    reason: str | None,
) -> None:
    claude.answer("a", stop=reason)
    gpt.answer("a", stop=reason)
    assert (await claude_message(claude_sdk)).stop_reason == reason
    assert (await gpt_chunks(gpt_sdk))[-1].choices[0].finish_reason == reason


async def test_chunks_without_choices_may_come_anywhere(
    gpt: OpenAIServer, gpt_sdk: openai.AsyncOpenAI
) -> None:
    reply = gpt.answer(Text(("a", "b")))
    reply.insert(0, EMPTY_CHOICES).insert(1, NULL_DELTA).insert(None, EMPTY_CHOICES)
    chunks = await gpt_chunks(gpt_sdk)
    assert [len(c.choices) for c in chunks] == [1, 0, 1, 1, 1, 1, 0]
    assert chunks[3].choices[0].delta is None
    assert gpt_text(chunks) == "ab"


async def test_an_empty_answer_has_no_content(
    claude: AnthropicServer,
    claude_sdk: anthropic.AsyncAnthropic,
    gpt: OpenAIServer,
    gpt_sdk: openai.AsyncOpenAI,
) -> None:
    claude.answer()
    gpt.answer()
    message = await claude_message(claude_sdk)
    assert (message.content, message.stop_reason) == ([], "end_turn")
    completion = await gpt_sdk.chat.completions.create(model="m", messages=HI)
    assert completion.choices[0].message.content is None


async def test_a_ping_opens_a_stream_of_claude(claude: AnthropicServer) -> None:
    async with httpx2.AsyncClient() as http:
        headers = {"x-api-key": claude.api_key, "anthropic-version": "2023-06-01"}
        body = {"model": "m", "max_tokens": 9, "stream": True, "messages": HI}
        answer = await http.post(f"{claude.base_url}/v1/messages", headers=headers, json=body)
    names = [line for line in answer.text.splitlines() if line.startswith("event:")]
    assert names[:2] == ["event: message_start", "event: ping"]


# Faults


async def test_a_stalled_stream_goes_on_when_released(
    gpt: OpenAIServer, gpt_sdk: openai.AsyncOpenAI
) -> None:
    reply = gpt.answer(Text(("a", "b", "c"))).stall_after(2)
    reading = asyncio.create_task(gpt_chunks(gpt_sdk))
    await asyncio.wait_for(reply.reached.wait(), 5)
    assert gpt.requests[0].content_chunks == 2
    assert not gpt.requests[0].finished
    reply.release()
    assert gpt_text(await reading) == "abc"
    assert gpt.requests[0].finished


@pytest.mark.parametrize("silent", ["before the status", "in mid-stream"])
async def test_a_client_that_leaves_is_noticed_while_the_server_is_silent(
    claude: AnthropicServer, claude_sdk: anthropic.AsyncAnthropic, silent: str
) -> None:
    reply = claude.answer(Text(("a", "b")))
    reply = reply.hang() if silent == "before the status" else reply.stall_after(1)
    reading = asyncio.create_task(claude_events(claude_sdk))
    await asyncio.wait_for(reply.reached.wait(), 5)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    await claude.wait_for(lambda: claude.requests[0].disconnected)
    assert not claude.requests[0].finished


async def test_a_whole_answer_can_be_held_back_too(
    gpt: OpenAIServer, gpt_sdk: openai.AsyncOpenAI
) -> None:
    reply = gpt.answer("a").hang()
    asking = asyncio.create_task(gpt_sdk.chat.completions.create(model="m", messages=HI))
    await asyncio.wait_for(reply.reached.wait(), 5)
    reply.release()
    assert (await asking).choices[0].message.content == "a"


@pytest.mark.parametrize("reset", [False, True])
async def test_a_cut_stream_is_a_broken_connection(
    claude: AnthropicServer,
    claude_sdk: anthropic.AsyncAnthropic,
    gpt: OpenAIServer,
    gpt_sdk: openai.AsyncOpenAI,
    reset: bool,
) -> None:
    claude.answer(Text(("a", "b"))).cut_after(1, reset=reset)
    gpt.answer(Text(("a", "b"))).cut_after(1, reset=reset)
    with pytest.raises(httpx2.ReadError if reset else httpx2.RemoteProtocolError):
        await claude_events(claude_sdk)
    with pytest.raises(openai.APIConnectionError):
        await gpt_chunks(gpt_sdk)
    assert not claude.requests[0].disconnected


async def test_a_whole_answer_can_be_cut(gpt: OpenAIServer, gpt_sdk: openai.AsyncOpenAI) -> None:
    gpt.answer("a").cut_after(0)
    with pytest.raises(openai.APIConnectionError):
        await gpt_sdk.chat.completions.create(model="m", messages=HI)


async def test_a_stream_can_end_cleanly_without_its_end_marker(
    claude: AnthropicServer,
    claude_sdk: anthropic.AsyncAnthropic,
    gpt: OpenAIServer,
    gpt_sdk: openai.AsyncOpenAI,
) -> None:
    claude.answer(Text(("a", "b"))).end_after(2)
    assert (await claude_events(claude_sdk))[-1].type == "content_block_delta"
    claude.answer(Text(("a", "b"))).end_after(None)
    assert (await claude_events(claude_sdk))[-1].type == "message_delta"
    gpt.answer(tool("write", {"path": "a", "text": "b"}, size=8)).end_after(2)
    chunks = await gpt_chunks(gpt_sdk)
    assert all(c.choices[0].finish_reason is None for c in chunks)
    assert chunks[-1].choices[0].delta.tool_calls[0].function.arguments == '{"path":'


async def test_a_chunk_may_be_no_json(
    claude: AnthropicServer,
    claude_sdk: anthropic.AsyncAnthropic,
    gpt: OpenAIServer,
    gpt_sdk: openai.AsyncOpenAI,
) -> None:
    claude.answer("abc").garble_after(1)
    gpt.answer("abc").garble_after(1)
    with pytest.raises(json.JSONDecodeError):
        await claude_events(claude_sdk)
    with pytest.raises(json.JSONDecodeError):
        await gpt_chunks(gpt_sdk)


async def test_an_error_may_come_inside_the_stream(
    claude: AnthropicServer,
    claude_sdk: anthropic.AsyncAnthropic,
    gpt: OpenAIServer,
    gpt_sdk: openai.AsyncOpenAI,
) -> None:
    claude.answer("abc").insert(1, anthropic_error()).end_after(1)
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        await claude_events(claude_sdk)
    gpt.answer("abc").insert(1, openai_error("The server is busy")).end_after(1)
    with pytest.raises(openai.APIError, match="The server is busy"):
        await gpt_chunks(gpt_sdk)


async def test_errors_have_the_shape_and_headers_of_the_api(
    claude: AnthropicServer,
    claude_sdk: anthropic.AsyncAnthropic,
    gpt: OpenAIServer,
    gpt_sdk: openai.AsyncOpenAI,
) -> None:
    claude.fail(529, "Overloaded")
    with pytest.raises(anthropic.InternalServerError) as overloaded:
        await claude_events(claude_sdk)
    assert overloaded.value.body["error"] == {  # type: ignore[index]
        "type": "overloaded_error",
        "message": "Overloaded",
    }
    gpt.fail(429, "Rate limit reached", code="rate_limit_exceeded", headers={"retry-after": "3"})
    with pytest.raises(openai.RateLimitError) as limited:
        await gpt_chunks(gpt_sdk)
    assert limited.value.response.headers["retry-after"] == "3"
    assert limited.value.code == "rate_limit_exceeded"
    assert gpt.requests[0].status == 429


@pytest.mark.parametrize(
    ("status", "body"),
    [(502, "<html><h1>Bad Gateway</h1></html>"), (500, ""), (400, {"error": "Unauthorized"})],
)
async def test_an_answer_may_be_any_status_and_body(
    claude: AnthropicServer,
    claude_sdk: anthropic.AsyncAnthropic,
    gpt: OpenAIServer,
    gpt_sdk: openai.AsyncOpenAI,
    status: int,
    body: Any,
) -> None:
    claude.answer_http(status, body)
    gpt.default = lambda _: HttpReply(status, body)
    with pytest.raises(anthropic.APIStatusError) as by_claude:
        await claude_events(claude_sdk)
    with pytest.raises(openai.APIStatusError) as by_gpt:
        await gpt_chunks(gpt_sdk)
    wire = json.dumps(body) if isinstance(body, dict) else body
    assert (by_claude.value.status_code, by_claude.value.response.text) == (status, wire)
    assert (by_gpt.value.status_code, by_gpt.value.response.text) == (status, wire)


async def test_a_slow_stream_sends_each_chunk_by_itself(
    gpt: OpenAIServer, gpt_sdk: openai.AsyncOpenAI
) -> None:
    gpt.answer(Text(("a", "b", "c"))).slowly(0.001)
    assert gpt_text(await gpt_chunks(gpt_sdk)) == "abc"


# The server itself


async def test_a_refused_request_uses_up_no_reply(
    claude: AnthropicServer, claude_sdk: anthropic.AsyncAnthropic
) -> None:
    claude.answer("for the good one")
    with pytest.raises(anthropic.BadRequestError):
        await claude_events(claude_sdk, [])
    assert claude.refusals == ["messages: at least one message is required"]
    message = await claude_message(claude_sdk)
    assert message.content[0].text == "for the good one"
    assert [r.status for r in claude.requests] == [400, 200]


@pytest.mark.parametrize("server_class", [AnthropicServer, OpenAIServer])
async def test_a_body_that_is_no_json_is_refused(server_class: type[LlmServer]) -> None:
    async with server_class() as server, httpx2.AsyncClient() as http:
        headers = {"authorization": f"Bearer {server.api_key}"}
        url = f"{server.origin}{server.path}"
        for content in (b"{", b"[]", b'{"model": "\\ud83d"}', b""):
            answer = await http.post(url, headers=headers, content=content)
            assert answer.status_code == 400
            assert "JSON" in answer.json()["error"]["message"]


async def test_waiting_gives_up_in_the_end(gpt: OpenAIServer) -> None:
    with pytest.raises(TimeoutError):
        await gpt.wait_for(lambda: bool(gpt.requests), timeout=0.01)


async def test_closing_drops_a_stalled_stream() -> None:
    async with OpenAIServer() as server:
        reply = server.answer("abc").stall_after(1)
        async with openai.AsyncOpenAI(
            base_url=server.base_url, api_key=server.api_key, max_retries=0
        ) as sdk:
            reading = asyncio.create_task(gpt_chunks(sdk))
            await asyncio.wait_for(reply.reached.wait(), 5)
            await server.aclose()
            with pytest.raises(openai.APIConnectionError):
                await reading
    assert not server.requests[0].disconnected


async def test_eight_thousand_chunks_arrive_whole(
    claude: AnthropicServer, claude_sdk: anthropic.AsyncAnthropic
) -> None:
    part = long_text(32_000, 8_000)
    claude.answer(part)
    deltas = [e for e in await claude_events(claude_sdk) if e.type == "content_block_delta"]
    assert len(deltas) == 8_000
    whole = "".join(piece or "" for piece in part.pieces)
    assert "".join(e.delta.text for e in deltas) == whole
    assert len(whole) == 32_000


async def test_a_server_runs_in_a_process_of_its_own() -> None:
    command = ("-m", "tests.servers.openai", "--chars", "40", "--chunks", "4")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdin=pipe, stdout=pipe
    )
    assert process.stdin is not None
    assert process.stdout is not None
    facts = json.loads(await process.stdout.readline())
    async with openai.AsyncOpenAI(base_url=facts["base_url"], api_key=facts["api_key"]) as sdk:
        assert len(gpt_text(await gpt_chunks(sdk))) == 40
    async with httpx2.AsyncClient() as http:
        (row,) = (await http.get(facts["control"])).json()
    assert row["arrived"] <= row["first_chunk_at"]
    assert row["last_user_text"] == "hi"
    process.stdin.close()
    assert await process.wait() == 0


async def test_models_are_listed(
    claude: AnthropicServer,
    claude_sdk: anthropic.AsyncAnthropic,
    gpt: OpenAIServer,
    gpt_sdk: openai.AsyncOpenAI,
) -> None:
    assert [m.id for m in (await claude_sdk.models.list()).data] == list(claude.rules.models)
    assert [m.id for m in (await gpt_sdk.models.list()).data] == list(gpt.rules.models)
    with pytest.raises(openai.AuthenticationError):
        await gpt_sdk.with_options(api_key="wrong").models.list()


def test_a_reply_made_outside_keeps_its_faults() -> None:
    reply = Reply("abc").stall_after(1).garble_after(2)
    assert [fault.at for fault in reply.faults] == [1, 2]
