"""What the settings of a provider do to its requests, and how its client lives."""

from __future__ import annotations

import asyncio
import json
import math
import os
import subprocess
import sys
import traceback
from typing import Any

import pytest
from pydantic import SecretStr

from agent.errors import ProviderError
from agent.messages import user_text
from agent.provider import Completed, ModelRequest, Provider
from agent.providers import build_provider
from agent.settings import ProviderSettings
from tests.servers.anthropic import AnthropicServer
from tests.servers.llm import LlmServer
from tests.servers.openai import OpenAIServer

SERVERS: dict[str, type[LlmServer]] = {"anthropic": AnthropicServer, "openai": OpenAIServer}


def build(kind: Any, server: LlmServer, **changes: Any) -> Provider:
    settings: dict[str, Any] = {
        "kind": kind,
        "api_key": SecretStr(server.api_key),
        "base_url": server.base_url,
        **changes,
    }
    return build_provider("p", ProviderSettings(**settings))


async def answer(provider: Provider) -> str:
    request = ModelRequest("test-model", "", (user_text("hi"),), (), 100)
    async with provider.stream(request) as events:
        completed = [event async for event in events][-1]
    assert isinstance(completed, Completed)
    return completed.message.text


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_proxy_gets_the_requests(kind: str) -> None:
    """The local server stands in for the proxy: the address of the API does not exist."""
    async with SERVERS[kind]() as server:
        address = server.base_url.replace(server.origin, "http://api.invalid")
        provider = build(kind, server, base_url=address, proxy=SecretStr(server.origin))
        server.answer("through the proxy")
        assert await answer(provider) == "through the proxy"
        assert server.requests[-1].headers["host"] == "api.invalid"
        await provider.aclose()


@pytest.mark.parametrize(("organization", "sent"), [("org-local", "org-local"), (None, None)])
async def test_the_organisation_is_the_configured_one_or_none(
    organization: str | None, sent: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-from-environment")
    async with OpenAIServer() as server:
        provider = build("openai", server, organization=organization)
        server.answer("hello")
        await answer(provider)
        assert server.requests[-1].headers.get("openai-organization") == sent
        await provider.aclose()


@pytest.mark.parametrize("kind", SERVERS)
async def test_the_first_calls_share_one_client(kind: str) -> None:
    """Nobody warmed it; ten chats ask at once."""
    async with SERVERS[kind]() as server:
        provider = build(kind, server)
        for _ in range(10):
            server.answer("hello")
        assert await asyncio.gather(*(answer(provider) for _ in range(10))) == ["hello"] * 10
        await provider.aclose()


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_closed_provider_can_be_closed_again_and_used(kind: str) -> None:
    async with SERVERS[kind]() as server:
        provider = build(kind, server)
        await provider.aclose()
        await provider.warm()
        await provider.aclose()
        await provider.aclose()
        server.answer("back")
        assert await answer(provider) == "back"
        await provider.aclose()


@pytest.mark.parametrize("kind", SERVERS)
def test_building_a_provider_imports_no_sdk(kind: str) -> None:
    """The SDKs take most of the start and of the memory: they are loaded after it, if at all."""
    code = (
        "import sys\n"
        "from agent.providers import build_provider\n"
        "from agent.settings import ProviderSettings\n"
        f"build_provider('p', ProviderSettings(kind={kind!r}, api_key='k'))\n"
        "assert not {'anthropic', 'openai', 'httpx2'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=os.getcwd())


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_key_is_in_no_repr_and_no_error(kind: str) -> None:
    async with SERVERS[kind]() as server:
        provider = build(kind, server, api_key=SecretStr("sk-very-secret-0123456789"))
        with pytest.raises(Exception, match="HTTP 401") as caught:
            await answer(provider)
        await provider.aclose()
        assert "very-secret" not in f"{provider!r} {vars(provider)!r} {caught.value!r}"


@pytest.mark.parametrize("where", ["refusal", "stream"])
@pytest.mark.parametrize("kind", SERVERS)
async def test_no_trace_repeats_the_providers_words(kind: str, where: str) -> None:
    """They carry ids of accounts; the refusal's own detail does not."""
    words = "Your account org-1a2b3c4d<ak-5e6f7a8b> reached organization max RPM: 3"
    async with SERVERS[kind]() as server:
        provider = build(kind, server)
        if where == "refusal":
            server.fail(400, words)
        else:
            error = {"type": "error", "error": {"type": "api_error", "message": words}}
            event = f"event: error\ndata: {json.dumps(error)}\n\n"
            server.answer("Hello").insert(0, event)
        with pytest.raises(ProviderError) as caught:
            await answer(provider)
        await provider.aclose()
    trace = "".join(traceback.format_exception(caught.value))
    assert "reached organization max RPM" in trace
    assert "org-1a2b3c4d" not in trace
    assert "ak-5e6f7a8b" not in trace


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_trace_tells_why_there_was_no_connection(kind: str) -> None:
    async with SERVERS[kind]() as server:
        provider = build(kind, server)
    with pytest.raises(ProviderError) as caught:
        await answer(provider)
    await provider.aclose()
    assert "ConnectError" in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_connection_that_was_closed_after_its_answer_fails_no_call(kind: str) -> None:
    """Within the same instant, and without a word in the answer's head, as llama.cpp does."""
    async with SERVERS[kind]() as server:
        host, port = server.origin.removeprefix("http://").split(":")

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            answers, questions = await asyncio.open_connection(host, int(port))
            questions.write(await reader.read(2**20))
            writer.write(await answers.readuntil(b"\r\n0\r\n\r\n"))
            questions.close()
            writer.close()

        async with await asyncio.start_server(relay, host, 0) as between:
            here = f"http://{host}:{between.sockets[0].getsockname()[1]}"
            provider = build(kind, server, base_url=server.base_url.replace(server.origin, here))
            for _ in range(20):
                server.answer("Yes.")
                assert await answer(provider) == "Yes."
            await provider.aclose()


@pytest.mark.parametrize("figure", [math.inf, 1e308, -5, "12", [12], True, {}])
@pytest.mark.parametrize("kind", SERVERS)
async def test_figures_that_are_no_tokens_are_no_report(kind: str, figure: object) -> None:
    """A server that only calls itself compatible; the answer is whole, and its use is estimated."""
    async with SERVERS[kind]() as server:
        provider = build(kind, server)
        if kind == "openai":
            usage = {"prompt_tokens": figure, "completion_tokens": 3}
            server.answer("Yes.", usage=None).insert(1, {**CHUNK, "usage": usage})
        else:
            server.answer_http(200, started(figure), {"content-type": "text/event-stream"})
        request = ModelRequest("test-model", "", (user_text("hi"),), (), 100)
        async with provider.stream(request) as events:
            completed = [event async for event in events][-1]
        await provider.aclose()
    assert isinstance(completed, Completed)
    assert (completed.message.text, completed.usage) == ("Yes.", None)


CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []}


def started(figure: object) -> str:
    """An answer of Anthropic's API whose usage is that."""
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "usage": {"input_tokens": figure}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "Yes."},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": figure}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
