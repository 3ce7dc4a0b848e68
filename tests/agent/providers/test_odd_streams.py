"""What servers send that the documentation does not say: read to the same message all the same.

The streams are written out chunk by chunk, and go through the real SDKs.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import SecretStr

from agent.errors import ProviderError, RefusalKind
from agent.messages import (
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    encode,
    user_text,
)
from agent.provider import (
    Completed,
    ModelRequest,
    Provider,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
    UsageReport,
)
from agent.providers import build_provider
from agent.settings import ProviderSettings
from agent.tools import ToolSpec
from tests.servers.anthropic import AnthropicServer
from tests.servers.llm import LlmServer, tool
from tests.servers.openai import OpenAIServer

Json = dict[str, Any]
NOW = ToolSpec("now", "The time.", {"type": "object", "properties": {}})
HI = user_text("hi")


@asynccontextmanager
async def bed(server: LlmServer, kind: Any) -> AsyncGenerator[Provider]:
    async with server:
        provider = build_provider(
            "p",
            ProviderSettings(
                kind=kind, api_key=SecretStr(server.api_key), base_url=server.base_url
            ),
        )
        try:
            yield provider
        finally:
            await provider.aclose()


async def ask(provider: Provider, *messages: Message) -> list[StreamEvent]:
    request = ModelRequest("test-model", "", messages or (HI,), (NOW,), 100)
    async with provider.stream(request) as events:
        return [event async for event in events]


async def openai_reads(*chunks: Json | str, done: bool = True) -> list[StreamEvent]:
    """What the OpenAI provider makes of these chunks."""
    server = OpenAIServer()
    async with bed(server, "openai") as provider:
        lines = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
        lines += ["[DONE]"] if done else []
        server.answer_http(200, "".join(f"data: {line}\n\n" for line in lines))
        return await ask(provider)


def chunk(delta: Json | None, reason: str | None = None, **more: Any) -> Json:
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        **more,
    }


def no_choices(**more: Any) -> Json:
    return {**chunk({}), "choices": [], **more}


def call(arguments: object = None, **more: Any) -> Json:
    """A delta of a call; `name` goes into its function."""
    function = {"arguments": arguments}
    if "name" in more:
        function["name"] = more.pop("name")
    return {"tool_calls": [{"type": "function", **more, "function": function}]}


def last(events: list[StreamEvent]) -> Completed:
    completed = events[-1]
    assert isinstance(completed, Completed)
    assert not any(isinstance(event, Completed) for event in events[:-1])
    return completed


END = chunk({}, "stop")
CALLED = chunk({}, "tool_calls")


async def test_chunks_that_say_nothing_change_nothing() -> None:
    events = await openai_reads(
        no_choices(prompt_filter_results=[]),
        chunk({"role": "assistant", "content": None}),
        chunk(None),
        chunk({"content": ""}),
        {"id": "c", "choices": None},
        chunk({"content": "Hel"}),
        chunk({}),
        chunk({"content": "lo", "tool_calls": None, "function_call": None}),
        chunk({"tool_calls": []}),
        chunk(None, "stop"),
        no_choices(),
    )
    assert last(events) == Completed(Message("assistant", (TextBlock("Hello"),)), "end", None)
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hel", "lo"]


@pytest.mark.parametrize("place", [0, 1, 2, 3])
async def test_usage_is_taken_wherever_it_comes(place: int) -> None:
    chunks = [chunk({"content": "a"}), chunk({"content": "b"}), END]
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
    chunks.insert(place, no_choices(usage=usage))
    events = await openai_reads(*chunks)
    assert UsageReport(Usage(9, 2)) in events
    assert last(events).usage == Usage(9, 2)


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(5, 0, 4)),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}, Usage(5, 0, 4)),
        ({"prompt_tokens": 9, "prompt_tokens_details": None}, Usage(9)),
        ({"prompt_tokens": None, "completion_tokens": None}, Usage()),
        ({}, Usage()),
    ],
)
async def test_usage_may_be_half_told(usage: Json, read: Usage) -> None:
    events = await openai_reads(chunk({"content": "a"}), {**END, "usage": usage})
    assert last(events).usage == read


CALLS: dict[str, list[Json]] = {
    "fragments by index": [
        chunk(call("", index=0, id="a", name="now")),
        chunk(call('{"n"', index=0)),
        chunk(call("", index=1, id="b", name="then")),
        chunk(call(": 1}", index=0)),
        chunk(call('{"n": 2}', index=1)),
    ],
    "id and name in each chunk": [
        chunk(call('{"n"', index=0, id="a", name="now")),
        chunk(call(": 1}", index=0, id="a", name="now")),
        chunk(call('{"n": 2}', index=1, id="b", name="then")),
    ],
    "whole, each with index 0": [
        chunk(call('{"n": 1}', index=0, id="a", name="now")),
        chunk(call('{"n": 2}', index=0, id="b", name="then")),
    ],
    "whole, without an index": [
        chunk(call('{"n": 1}', id="a", name="now")),
        chunk(call('{"n": 2}', id="b", name="then")),
    ],
    "fragments without an index": [
        chunk(call(None, id="a", name="now")),
        chunk(call('{"n"')),
        chunk(call(": 1}")),
        chunk(call("", id="b", name="then")),
        chunk(call('{"n": 2}')),
    ],
    "both in one chunk": [
        chunk(
            {
                "tool_calls": [
                    *call('{"n": 1}', index=0, id="a", name="now")["tool_calls"],
                    *call('{"n": 2}', index=1, id="b", name="then")["tool_calls"],
                ]
            }
        )
    ],
    "whole, as objects": [
        chunk(call({"n": 1}, index=0, id="a", name="now")),
        chunk(call({}, index=1, id="b", name="then")),
        chunk(call('{"n": 2}', index=1)),
    ],
    "indices that begin at 1": [
        chunk(call('{"n": 1}', index=1, id="a", name="now")),
        chunk(call('{"n": 2}', index=2, id="b", name="then")),
    ],
}


@pytest.mark.parametrize("shape", CALLS)
async def test_calls_are_put_together_however_they_come(shape: str) -> None:
    completed = last(await openai_reads(*CALLS[shape], CALLED))
    assert completed.message.blocks == (
        ToolUseBlock("a", "now", {"n": 1}),
        ToolUseBlock("b", "then", {"n": 2}),
    )
    assert completed.stop_reason == "tool_use"


@pytest.mark.parametrize("pieces", [['{"n"', ": 1}"], [{"n": 1}, None]])
async def test_a_call_of_the_old_kind_is_read(pieces: list[object]) -> None:
    completed = last(
        await openai_reads(
            chunk({"function_call": {"name": "now", "arguments": pieces[0]}}),
            chunk({"function_call": {"arguments": pieces[1]}}),
            chunk({}, "function_call"),
        )
    )
    (made,) = completed.message.tool_uses
    assert (made.name, made.arguments, completed.stop_reason) == ("now", {"n": 1}, "tool_use")
    assert made.id


async def test_what_stands_beside_content_is_read() -> None:
    """At the seam between reasoning and answer, or a call with the text before it."""
    old = {"content": "i", "function_call": {"name": "now", "arguments": "{}"}}
    events = await openai_reads(
        chunk({"reasoning_content": "h"}),
        chunk({"reasoning_content": "m", "content": "H"}),
        chunk(old),
        chunk({}, "function_call"),
    )
    assert last(events).message.blocks[:2] == (ThinkingBlock("hm", "p/test-model"), TextBlock("Hi"))
    assert [made.name for made in last(events).message.tool_uses] == ["now"]
    order = [event.text for event in events if isinstance(event, ThinkingDelta | TextDelta)]
    assert order == ["h", "m", "H", "i"]


async def test_reasoning_that_is_no_text_is_passed_over() -> None:
    odd: Json = {"reasoning_content": {"text": "h"}, "refusal": False}
    completed = last(await openai_reads(chunk(odd), chunk({"content": "Hi"}), END))
    assert completed.message.blocks == (TextBlock("Hi"),)


async def test_an_answer_that_ends_with_an_error_is_asked_for_again() -> None:
    with pytest.raises(ProviderError) as caught:
        await openai_reads(chunk({"content": "a"}), chunk({}, "error"))
    assert caught.value.refusal.kind is RefusalKind.TRANSIENT


@pytest.mark.parametrize("arguments", [[{"n": 1}], 5, False])
async def test_arguments_of_another_kind_never_become_an_empty_call(arguments: object) -> None:
    (made,) = last(
        await openai_reads(chunk(call(arguments, index=0, id="a", name="now")), CALLED)
    ).message.tool_uses
    assert (made.arguments, made.raw) == ({}, json.dumps(arguments))


async def test_ids_that_are_numbers_are_read() -> None:
    made = (
        chunk(call("{}", index=0, id=7, name="now")),
        chunk(call("{}", index=1, id=8, name="now")),
    )
    calls = last(await openai_reads(*made, CALLED)).message.tool_uses
    assert [made.id for made in calls] == ["7", "8"]


async def test_calls_without_ids_get_different_ones() -> None:
    completed = last(
        await openai_reads(
            chunk(call("{}", index=0, name="now")),
            chunk(call("{}", index=1, id="", name="now")),
            chunk(call("{}", index=2, id=None, name="now")),
            CALLED,
        )
    )
    ids = [made.id for made in completed.message.tool_uses]
    assert len(set(ids)) == 3
    assert all(ids)


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
async def test_an_id_that_comes_again_in_each_answer_is_made_unique(kind: str) -> None:
    server: LlmServer = AnthropicServer() if kind == "anthropic" else OpenAIServer()
    async with bed(server, kind) as provider:
        talk: list[Message] = [HI]
        for _ in range(3):
            server.answer(tool("now", {}, id="call_0"), tool("now", {}, id="call_1"))
            answer = last(await ask(provider, *talk)).message
            results = (ToolResultBlock(made.id, (TextBlock("x"),)) for made in answer.tool_uses)
            talk += [answer, Message("user", tuple(results))]
        server.answer("done")
        assert last(await ask(provider, *talk)).message.text == "done"
        assert server.refusals == []
        ids = [made.id for message in talk for made in message.tool_uses]
        assert ids[:2] == ["call_0", "call_1"]
        assert len(set(ids)) == 6


@pytest.mark.parametrize(
    ("reason", "read"),
    [
        ("stop", "end"),
        ("length", "length"),
        ("content_filter", "filter"),
        ("model_context_window_exceeded", "window"),
        ("eos", "other"),
        ("", "other"),
    ],
)
async def test_finish_reasons_are_read_and_unknown_ones_end_the_answer(
    reason: str, read: str
) -> None:
    completed = last(await openai_reads(chunk({"content": "a"}), chunk({}, reason)))
    assert (completed.stop_reason, completed.message.text) == (read, "a")


async def test_a_finish_reason_without_the_end_marker_is_enough() -> None:
    assert last(await openai_reads(chunk({"content": "a"}), END, done=False)).message.text == "a"


async def test_the_end_marker_without_a_finish_reason_is_not() -> None:
    with pytest.raises(ProviderError) as caught:
        await openai_reads(chunk({"content": "a"}))
    assert caught.value.refusal.kind is RefusalKind.TRANSIENT


async def test_a_refusal_is_shown_as_the_answer() -> None:
    events = await openai_reads(chunk({"refusal": "I will"}), chunk({"refusal": " not."}), END)
    assert last(events).message.text == "I will not."
    assert last(events).stop_reason == "refusal"
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["I will", " not."]


async def test_an_answer_in_parts_is_read_and_one_that_is_no_text_is_asked_for_again() -> None:
    """Mistral's reasoning models."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    parts = [thought, {"type": "text", "text": "Hi"}, {"type": "reference", "reference_ids": [1]}]
    events = await openai_reads(chunk({"content": parts}), chunk({"content": " you"}), END)
    assert [event.text for event in events if isinstance(event, ThinkingDelta)] == ["hm"]
    assert last(events).message.blocks == (TextBlock("Hi you"),)
    with pytest.raises(ProviderError) as caught:
        await openai_reads(chunk({"content": 5}), END)
    assert caught.value.refusal.kind is RefusalKind.TRANSIENT


async def test_halves_of_an_emoji_in_two_chunks_are_shown_as_one() -> None:
    events = await openai_reads(chunk({"content": "Hi \ud83d"}), chunk({"content": "\ude00!"}), END)
    shown = [event.text for event in events if isinstance(event, TextDelta)]
    assert shown == ["Hi ", "\U0001f600!"]
    assert last(events).message.text == "Hi \U0001f600!"


@pytest.mark.parametrize(("field", "kept"), [("reasoning_content", True), ("reasoning", False)])
async def test_reasoning_is_told_apart_from_the_answer(field: str, kept: bool) -> None:
    events = await openai_reads(
        chunk({field: "hm"}), chunk({field: "m", "content": ""}), chunk({"content": "Hi"}), END
    )
    assert [event.text for event in events if isinstance(event, ThinkingDelta)] == ["hm", "m"]
    thought = (ThinkingBlock("hmm", "p/test-model"),) if kept else ()
    assert last(events).message.blocks == (*thought, TextBlock("Hi"))


@pytest.mark.parametrize("pieces", [["\\ud83d\\ude00"], ["\\ud83d", "\\ude00"]])
async def test_an_emoji_in_two_chunks_becomes_one(pieces: list[str]) -> None:
    texts = [json.dumps(chunk({"content": "@"})).replace("@", piece) for piece in pieces]
    assert last(await openai_reads(*texts, END)).message.text == "😀"


async def test_half_an_emoji_can_be_stored_and_sent() -> None:
    half = json.dumps(chunk({"content": "a@b"})).replace("@", "\\ud83d")
    made = chunk(call('{"n": "\\ud83d"}', index=0, id="x\ud83d", name="now"))
    message = last(await openai_reads(half, made, CALLED)).message
    encode(message).encode()
    assert message.text == "a\ufffdb"
    results = (ToolResultBlock(message.tool_uses[0].id, (TextBlock("\ud83d"),)),)
    for server, kind in ((OpenAIServer(), "openai"), (AnthropicServer(), "anthropic")):
        async with bed(server, kind) as provider:
            server.answer("fine")
            talk = (user_text("\udc00?"), message, Message("user", results))
            assert last(await ask(provider, *talk)).message.text == "fine"


@pytest.mark.parametrize(
    "arguments", ['{"n": NaN}', '{"n": -Infinity}', '{"n": [1e999]}', "[" * 100_000]
)
async def test_arguments_that_no_request_can_carry_are_no_object(arguments: str) -> None:
    made = chunk(call(arguments, index=0, id="a", name="now"))
    (read,) = last(await openai_reads(made, CALLED)).message.tool_uses
    assert (read.arguments, read.raw) == ({}, arguments)


async def test_a_name_that_no_provider_takes_does_not_spoil_the_conversation() -> None:
    blocks = (
        ToolUseBlock("a", "functions.now → x", {}),
        ToolUseBlock("b", "", {}),
        ToolUseBlock("c", "n" * 300, {}),
    )
    results = tuple(ToolResultBlock(id_, (TextBlock("x"),)) for id_ in "abc")
    for server, kind in ((OpenAIServer(), "openai"), (AnthropicServer(), "anthropic")):
        async with bed(server, kind) as provider:
            server.answer("fine")
            await ask(provider, HI, Message("assistant", blocks), Message("user", results))
            assert server.refusals == []


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "Overloaded", "type": "server_error"}, RefusalKind.TRANSIENT),
        (
            {"message": "Input too long.", "code": "context_length_exceeded"},
            RefusalKind.OVERFLOW,
        ),
        ({"message": "Rate limit reached", "type": "rate_limit_exceeded"}, RefusalKind.RATE_LIMIT),
    ],
)
async def test_an_error_in_mid_stream_is_classified(error: Json, kind: RefusalKind) -> None:
    with pytest.raises(ProviderError) as caught:
        await openai_reads(chunk({"content": "a"}), {"error": error}, done=False)
    assert caught.value.refusal.kind is kind


async def anthropic_reads(*events: Json) -> list[StreamEvent]:
    """What the Anthropic provider makes of these events."""
    server = AnthropicServer()
    async with bed(server, "anthropic") as provider:
        lines = (f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
        server.answer_http(200, "".join(lines))
        return await ask(provider)


def start(**usage: int) -> Json:
    message: Json = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
    return {"type": "message_start", "message": {**message, "usage": usage}}


def block(index: int, content: Json, *deltas: Json) -> list[Json]:
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def stop(reason: str | None, **usage: int) -> list[Json]:
    return [
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage},
        {"type": "message_stop"},
    ]


TEXT = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hi"})


@pytest.mark.parametrize(
    ("reason", "read"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("max_tokens", "length"),
        ("pause_turn", "pause"),
        ("refusal", "filter"),
        ("model_context_window_exceeded", "window"),
        ("something_new", "other"),
    ],
)
async def test_stop_reasons_are_read_and_unknown_ones_end_the_answer(
    reason: str, read: str
) -> None:
    completed = last(await anthropic_reads(start(input_tokens=3), *TEXT, *stop(reason)))
    assert (completed.stop_reason, completed.message.text) == (read, "Hi")


@pytest.mark.parametrize("ending", [[], stop(None), stop("end_turn")[:1], stop("end_turn")[1:]])
async def test_a_stream_without_its_end_is_no_answer(ending: list[Json]) -> None:
    with pytest.raises(ProviderError) as caught:
        await anthropic_reads(start(), *TEXT, *ending)
    assert caught.value.refusal.kind is RefusalKind.TRANSIENT


async def test_an_answer_without_content_is_an_answer() -> None:
    events = await anthropic_reads(start(input_tokens=3), *stop("end_turn", output_tokens=1))
    assert last(events) == Completed(Message("assistant", ()), "end", Usage(3, 1))


async def test_usage_comes_first_and_is_completed_at_the_end() -> None:
    begun = start(
        input_tokens=3, output_tokens=1, cache_read_input_tokens=7, cache_creation_input_tokens=2
    )
    events = await anthropic_reads(begun, *TEXT, *stop("end_turn", output_tokens=5))
    assert events[0] == UsageReport(Usage(3, 1, 7, 2))
    assert last(events).usage == Usage(3, 5, 7, 2)


async def test_blocks_and_events_of_an_unknown_kind_are_passed_over() -> None:
    completed = last(
        await anthropic_reads(
            start(),
            {"type": "ping"},
            {"type": "brand_new_event", "x": 1},
            *block(0, {"type": "hologram", "x": 1}, {"type": "hologram_delta", "x": 2}),
            *block(1, {"type": "text", "text": "Al"}, {"type": "text_delta", "text": "so"}),
            *stop("end_turn"),
        )
    )
    assert completed.message.blocks == (TextBlock("Also"),)


@pytest.mark.parametrize("given", [{"n": 1}, '{"n": 1}'])
@pytest.mark.parametrize("pieces", [(), ('{"n"', ": 1}"), ({"n": 1},), (None,)])
async def test_a_call_whose_input_comes_at_once_is_read(given: object, pieces: Any) -> None:
    """Also where its pieces come as well."""
    content = {"type": "tool_use", "id": "a", "name": "now", "input": given}
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    completed = last(await anthropic_reads(start(), *block(0, content, *deltas), *stop("tool_use")))
    assert completed.message.blocks == (ToolUseBlock("a", "now", {"n": 1}),)


async def test_blocks_that_all_have_one_index_are_all_kept() -> None:
    calls: list[Json] = [
        {"type": "tool_use", "id": id_, "name": "now", "input": {}} for id_ in "ab"
    ]
    completed = last(
        await anthropic_reads(
            start(), *TEXT, *block(0, calls[0]), *block(0, calls[1]), *stop("tool_use")
        )
    )
    assert completed.message.blocks == (
        TextBlock("Hi"),
        ToolUseBlock("a", "now", {}),
        ToolUseBlock("b", "now", {}),
    )
    assert completed.stop_reason == "tool_use"


async def test_a_text_whose_start_did_not_come_is_read_and_a_call_is_asked_for_again() -> None:
    events = await anthropic_reads(start(), *TEXT[1:], *stop("end_turn"))
    assert last(events).message.text == "Hi"
    piece = {"type": "input_json_delta", "partial_json": "{}"}
    with pytest.raises(ProviderError) as caught:
        await anthropic_reads(start(), *block(0, {}, piece)[1:], *stop("tool_use"))
    assert caught.value.refusal.kind is RefusalKind.TRANSIENT


async def test_calls_between_texts_keep_their_order_when_ids_are_renamed() -> None:
    made: Json = {"type": "tool_use", "id": "a", "name": "now", "input": {}}
    completed = last(
        await anthropic_reads(
            start(),
            *block(0, {"type": "text", "text": "one"}),
            *block(1, made),
            *block(2, {"type": "text", "text": "two"}),
            *block(3, made),
            *stop("tool_use"),
        )
    )
    kinds = [type(part).__name__ for part in completed.message.blocks]
    assert kinds == ["TextBlock", "ToolUseBlock", "TextBlock", "ToolUseBlock"]
    assert [part.id for part in completed.message.tool_uses] == ["a", "a_2"]
