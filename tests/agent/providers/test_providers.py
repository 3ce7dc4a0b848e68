"""Both providers, through the real SDKs and the strict local servers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pydantic import SecretStr

from agent.deadlines import StreamWatch
from agent.errors import ProviderError, Refusal, RefusalKind
from agent.history import repair
from agent.messages import (
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    assistant_text,
    user_text,
)
from agent.provider import Completed, ModelRequest, ModelTraits, Provider, StreamEvent, TextDelta
from agent.providers import KeyMissing, build_provider, errors
from agent.settings import ProviderSettings
from agent.tools import ToolSpec
from tests.servers.anthropic import AnthropicServer
from tests.servers.anthropic import error_event as anthropic_error
from tests.servers.llm import HttpReply, LlmRequest, LlmServer, thinking, tool
from tests.servers.openai import OpenAIServer
from tests.servers.openai_rules import Rules, alternating, deepseek, mistral, only_max_tokens

ENVIRONMENT = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_ORG_ID",
    "OPENAI_PROJECT_ID",
    "OPENAI_BASE_URL",
    "OPENAI_WEBHOOK_SECRET",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
)
NOW = ToolSpec("now", "The time.", {"type": "object", "properties": {}})
PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f"
    b"\x15\xc4\x89\x00\x00\x00\nIDATx\x9cc\x00\x01\x00\x00\x05\x00\x01\r\n-\xb4\x00\x00\x00\x00IEND"
    b"\xaeB`\x82"
)


@dataclass
class Bed:
    server: LlmServer
    provider: Provider
    kind: str

    async def ask(self, *messages: Message, **changes: Any) -> list[StreamEvent]:
        request = ModelRequest(
            "test-model", "Be brief.", tuple(messages) or (user_text("hi"),), (NOW,), 500
        )
        async with self.provider.stream(replace(request, **changes)) as events:
            return [event async for event in events]

    async def answer(self, *messages: Message, **changes: Any) -> Completed:
        completed = (await self.ask(*messages, **changes))[-1]
        assert isinstance(completed, Completed)
        return completed


@asynccontextmanager
async def bed(kind: str, *, rules: Rules | None = None, **settings: Any) -> AsyncIterator[Bed]:
    server: LlmServer = AnthropicServer() if kind == "anthropic" else OpenAIServer(rules)
    async with server:
        made = ProviderSettings(
            kind=kind,  # type: ignore[arg-type]
            api_key=SecretStr(server.api_key),
            base_url=server.base_url,
            **settings,
        )
        provider = build_provider("p", made)
        try:
            yield Bed(server, provider, kind)
        finally:
            await provider.aclose()


@pytest.fixture(params=["anthropic", "openai"])
async def it(request: pytest.FixtureRequest) -> AsyncIterator[Bed]:
    async with bed(request.param) as made:
        yield made
        assert made.server.refusals == [], "a request was refused for its form"


async def test_text_streams_and_adds_up(it: Bed) -> None:
    it.server.answer("Hello, how are you today?")
    events = await it.ask()
    deltas = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(deltas) > 1
    assert "".join(deltas) == "Hello, how are you today?"
    completed = events[-1]
    assert isinstance(completed, Completed)
    assert completed.message == assistant_text("Hello, how are you today?")
    assert completed.stop_reason == "end"
    assert completed.usage is not None
    assert completed.usage.output_tokens > 0
    assert not completed.usage.estimated


async def test_a_tool_call_and_its_result_go_round(it: Bed) -> None:
    it.server.answer("Let me see.", tool("now", {"zone": "UTC"}), tool("now", {}))
    first = await it.answer()
    assert first.stop_reason == "tool_use"
    calls = first.message.tool_uses
    assert [(call.name, call.arguments) for call in calls] == [
        ("now", {"zone": "UTC"}),
        ("now", {}),
    ]
    results = tuple(
        ToolResultBlock(c.id, (TextBlock("noon"), ImageBlock("image/png", PNG))) for c in calls
    )
    it.server.answer("It is noon.")
    second = await it.answer(user_text("hi"), first.message, Message("user", results))
    assert second.message.text == "It is noon."


@pytest.mark.parametrize("arguments", ["", "  ", "{}"])
async def test_no_arguments_are_an_empty_object(it: Bed, arguments: str) -> None:
    it.server.answer(tool("now", arguments))
    (call,) = (await it.answer()).message.tool_uses
    assert (call.arguments, call.raw) == ({}, None)


@pytest.mark.parametrize("arguments", ['{"path": "a', "[1]", "null", "nonsense"])
async def test_arguments_that_are_no_object_are_handed_on_as_they_came(
    it: Bed, arguments: str
) -> None:
    it.server.answer(tool("now", arguments))
    (call,) = (await it.answer()).message.tool_uses
    assert (call.arguments, call.raw) == ({}, arguments)


async def test_a_photo_is_sent(it: Bed) -> None:
    it.server.answer("A pixel.")
    await it.answer(Message("user", (ImageBlock("image/png", PNG), TextBlock("what is it?"))))
    assert "image" in str(it.server.requests[-1].messages[-1]["content"])
    it.server.answer("I cannot see it.")
    await it.answer(
        Message("user", (ImageBlock("image/png", PNG),)), traits=ModelTraits(images=False)
    )
    assert "cannot see images" in str(it.server.requests[-1].messages[-1]["content"])


async def test_ids_of_another_provider_are_rewritten_on_both_halves(it: Bed) -> None:
    history = [
        user_text("go"),
        Message(
            "assistant",
            (ToolUseBlock("functions.exec:0", "now", {}), ToolUseBlock("x" * 90, "now", {})),
        ),
        Message(
            "user",
            (
                ToolResultBlock("functions.exec:0", (TextBlock("a"),)),
                ToolResultBlock("x" * 90, (TextBlock("b"),)),
                TextBlock("and?"),
            ),
        ),
    ]
    it.server.answer("fine")
    assert (await it.answer(*history)).message.text == "fine"


async def test_repaired_histories_are_taken(it: Bed) -> None:
    broken = [
        assistant_text("hello"),
        user_text("go"),
        Message(
            "assistant",
            (TextBlock(" "), ToolUseBlock("a", "now", {}), ToolUseBlock("a", "now", {})),
        ),
        user_text("and?"),
        assistant_text("\n\n"),
        assistant_text("half an ans"),
    ]
    it.server.answer("fine")
    assert (await it.answer(*repair(broken))).message.text == "fine"


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
async def test_thinking_goes_back_to_its_model_and_to_no_other(kind: str) -> None:
    async with bed(kind, rules=deepseek() if kind == "openai" else None) as it:
        it.server.answer(thinking("hmm"), tool("now", {}))
        first = await it.answer()
        assert isinstance(first.message.blocks[0], ThinkingBlock)
        assert (first.message.blocks[0].text, first.message.blocks[0].model) == (
            "hmm",
            "p/test-model",
        )
        (call,) = first.message.tool_uses
        result = ToolResultBlock(call.id, (TextBlock("x"),))
        talk = [user_text("hi"), first.message, Message("user", (result,))]
        it.server.answer("ok")
        await it.answer(*talk)
        assert "hmm" in str(it.server.requests[-1].body)
        assert it.server.refusals == []
        await it.answer(*talk, model="other-model")
        assert "hmm" not in str(it.server.requests[-1].body)


@pytest.mark.parametrize("rules", [only_max_tokens, mistral, alternating])
async def test_compatible_servers_are_learnt_once(rules: Callable[[], Rules]) -> None:
    """What a server does not know is left out after one refusal, and from then on."""
    async with bed("openai", rules=rules()) as it:
        for _ in range(3):
            it.server.answer(tool("now", {}))
            first = await it.answer()
            (call,) = first.message.tool_uses
            result = ToolResultBlock(call.id, (TextBlock("noon"),))
            it.server.answer("fine")
            last = await it.answer(user_text("hi"), first.message, Message("user", (result,)))
            assert last.message.text == "fine"
        assert len(it.server.refusals) <= 2


async def test_what_was_learnt_of_a_server_is_learnt_anew_when_it_has_changed() -> None:
    """A relay with another upstream, or a server that was replaced: each call was refused for ever."""
    async with bed("openai", rules=only_max_tokens()) as it:
        await it.answer()
        it.server.rules = Rules(completion_tokens_only=True)
        for _ in range(2):
            await it.answer()
        assert "max_completion_tokens" in it.server.requests[-1].body
        assert len(it.server.refusals) == 3


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ("tool_choice", "bedrock does not support parameters: {'tool_choice': 'none'}"),
        ("tool_choice", "Unsupported value: tool_choice 'none' is not supported by this model."),
        ("tools", "registry.ollama.ai/library/gemma3:4b does not support tools"),
        ("tools", '"auto" tool choice requires --enable-auto-tool-choice to be set'),
    ],
)
async def test_parameters_of_tools_that_a_server_does_not_take_are_left_out(
    parameter: str, words: str
) -> None:
    def answer(request: LlmRequest) -> HttpReply | str:
        if parameter not in request.body:
            return "fine"
        return HttpReply(400, {"error": {"message": words, "type": "invalid_request_error"}})

    call = ToolUseBlock("a", "now", {})
    result = ToolResultBlock("a", (TextBlock("noon"),))
    talk = [user_text("hi"), Message("assistant", (call,)), Message("user", (result,))]
    async with bed("openai") as it:
        it.server.default = answer
        for _ in range(2):
            assert (await it.answer(*talk, may_call=False)).message.text == "fine"
        assert len(it.server.requests) <= 4, "each is learnt once"
        assert "noon" in str(it.server.requests[-1].body)


async def test_tools_that_were_refused_once_are_offered_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A relay's one upstream, or a model that was replaced: none was offered until a restart."""
    async with bed("openai") as it:
        it.server.fail(400, "this model does not support tools")
        offered: list[bool] = []
        for pause in (600.0, 600.0, 0.0):
            monkeypatch.setattr("agent.providers.openai_chat.TOOLS_AGAIN_S", pause)
            await it.answer()
            offered.append("tools" in it.server.requests[-1].body)
        assert offered == [False, False, True]
        assert len(it.server.requests) == 4


@pytest.mark.parametrize("status", [429, 503])
async def test_what_was_learnt_of_a_server_outlives_a_next_try_that_fails(status: int) -> None:
    async with bed("openai", rules=only_max_tokens()) as it:
        it.server.fail(status, "slow down")
        with pytest.raises(ProviderError) as caught:
            await it.ask()
        assert caught.value.refusal.status == status
        it.server.answer("fine")
        assert (await it.answer()).message.text == "fine"
        assert len(it.server.refusals) == 2, "both while the first question was asked"


@pytest.mark.parametrize(("rules", "refused"), [(Rules, 1), (deepseek, 0)])
async def test_reasoning_goes_back_with_calls_to_the_servers_that_take_it(
    rules: Callable[[], Rules], refused: int
) -> None:
    async with bed("openai", rules=rules()) as it:
        for _ in range(2):
            it.server.answer(thinking("hmm"), tool("now", {}))
            first = await it.answer()
            (call,) = first.message.tool_uses
            result = ToolResultBlock(call.id, (TextBlock("noon"),))
            await it.answer(user_text("hi"), first.message, Message("user", (result,)))
        assert len(it.server.refusals) == refused


async def test_deepseek_takes_calls_that_another_model_made() -> None:
    """It refuses calls without reasoning once, and gets an empty one from then on."""
    async with bed("openai", rules=deepseek()) as it:
        call = ToolUseBlock("a", "now", {})
        result = ToolResultBlock("a", (TextBlock("noon"),))
        talk = [user_text("hi"), Message("assistant", (call,)), Message("user", (result,))]
        for _ in range(2):
            await it.answer(*talk)
        assert len(it.server.refusals) == 1


FAULTS: dict[str, Callable[[LlmServer], object]] = {
    "cut": lambda s: s.answer("Hello there, you").cut_after(1),
    "reset": lambda s: s.answer("Hello there, you").cut_after(1, reset=True),
    "clean early end": lambda s: s.answer("Hello there, you").end_after(1),
    "no JSON": lambda s: s.answer("Hello there, you").garble_after(1),
    "500": lambda s: s.fail(500, "oops"),
    "502 page": lambda s: s.answer_http(502, "<!doctype html><html>bad gateway</html>"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_broken_stream_is_a_transient_error_and_never_a_short_answer(
    it: Bed, fault: str
) -> None:
    FAULTS[fault](it.server)
    with pytest.raises(ProviderError) as caught:
        await it.ask()
    assert caught.value.refusal.kind is RefusalKind.TRANSIENT
    assert "html" not in caught.value.refusal.detail.lower() or fault == "502 page"
    it.server.answer("better")
    assert (await it.answer()).message.text == "better"


async def test_a_rate_limit_says_how_long_to_wait_and_is_not_retried_by_the_sdk(it: Bed) -> None:
    it.server.fail(429, "slow down", headers={"retry-after": "3"})
    with pytest.raises(ProviderError) as caught:
        await it.ask()
    assert caught.value.refusal.kind is RefusalKind.RATE_LIMIT
    assert caught.value.refusal.retry_after_s == 3
    assert len(it.server.requests) == 1


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
async def test_a_silent_stream_ends_by_a_deadline(kind: str) -> None:
    async with bed(kind, between_chunks_s=0.05) as it:
        stalled = it.server.answer("Hello there, you all").stall_after(1)
        with pytest.raises(ProviderError, match="between_chunks_s"):
            await it.ask()
        stalled.release()
    async with bed(kind, first_chunk_s=0.05) as it:
        it.server.answer("x").hang()
        with pytest.raises(ProviderError, match="first_chunk_s"):
            await it.ask()


async def test_a_ping_is_heard_while_a_model_thinks(
    it: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDKs pass over it: a model that thought for longer than a deadline was asked again."""
    heard = asyncio.Event()

    def alive(_: StreamWatch) -> None:
        heard.set()

    monkeypatch.setattr(StreamWatch, "alive", alive)
    stalled = it.server.answer("Hello there, you all").stall_after(1)
    request = ModelRequest("test-model", "", (user_text("hi"),), (), 500)
    async with it.provider.stream(request) as events:
        while not isinstance(await anext(events), TextDelta):
            pass
        more = asyncio.ensure_future(anext(events))
        await stalled.reached.wait()
        for ping in (b'event: ping\ndata: {"type": "ping"}\n\n', b": PROCESSING\n\n"):
            heard.clear()
            stalled.send_meanwhile(ping)
            await heard.wait()
        stalled.release()
        assert isinstance(await more, TextDelta)


async def test_cancelling_a_stalled_stream_is_a_cancel_and_closes_the_connection(it: Bed) -> None:
    stalled = it.server.answer("Hello there, you all").stall_after(1)
    task = asyncio.ensure_future(it.ask())
    await stalled.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await it.server.wait_for(lambda: it.server.requests[-1].disconnected)


async def test_a_consumers_own_error_passes_through(it: Bed) -> None:
    it.server.answer("Hello there, you all")

    async def consume() -> None:
        request = ModelRequest("test-model", "", (user_text("hi"),), (), 500)
        async with it.provider.stream(request) as events:
            async for _ in events:
                raise KeyError("mine")

    with pytest.raises(KeyError):
        await consume()


async def test_nothing_is_read_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, it: Bed
) -> None:
    for name in ENVIRONMENT:
        monkeypatch.setenv(name, "http://127.0.0.1:9/from-environment")
    for name in ("ANTHROPIC_CUSTOM_HEADERS", "OPENAI_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, "X-Evil: from-environment")
    it.server.answer("hello")
    await it.answer()
    assert "from-environment" not in str(it.server.requests[-1].headers)


async def test_a_wrong_key_is_an_auth_error_without_the_key(it: Bed) -> None:
    settings = ProviderSettings(
        kind=it.kind,  # type: ignore[arg-type]
        api_key=SecretStr("sk-wrong-key-123456"),
        base_url=it.server.base_url,
    )
    provider = build_provider("p", settings)
    with pytest.raises(ProviderError) as caught:
        await Bed(it.server, provider, it.kind).ask()
    await provider.aclose()
    assert caught.value.refusal.kind is RefusalKind.AUTH
    assert "wrong-key" not in str(caught.value)
    it.server.requests.clear()


def test_a_missing_key_names_its_key() -> None:
    with pytest.raises(KeyMissing, match=r"providers\.main\.api_key"):
        build_provider("main", ProviderSettings(kind="openai"))


async def test_an_error_event_in_the_stream_is_an_error() -> None:
    async with bed("anthropic") as it:
        it.server.answer("Hello there, you").insert(1, anthropic_error())
        with pytest.raises(ProviderError) as caught:
            await it.ask()
        assert caught.value.refusal.kind is RefusalKind.TRANSIENT


async def test_a_refusal_is_read_beside_the_event_loop(
    it: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one compiles its patterns, which takes longer than other chats may wait."""
    read, readers = errors.refusal_of, set[threading.Thread]()

    def noted(error: Exception) -> Refusal:
        readers.add(threading.current_thread())
        return read(error)

    monkeypatch.setattr(errors, "refusal_of", noted)
    it.server.fail(400, "no")
    with pytest.raises(ProviderError):
        await it.ask()
    assert readers
    assert threading.main_thread() not in readers
