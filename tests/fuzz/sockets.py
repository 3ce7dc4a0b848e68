"""The same conversations through the real SDKs and sockets, to the strict local servers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from pydantic import SecretStr

from agent.errors import RefusalKind
from agent.provider import Provider
from agent.providers import build_provider
from agent.settings import ProviderSettings
from tests.fuzz.operations import Step, Turn
from tests.servers.anthropic import AnthropicServer
from tests.servers.llm import (
    Answerer,
    HttpReply,
    LlmRequest,
    LlmServer,
    Part,
    Refused,
    Reply,
    Script,
    redacted_thinking,
    text,
    thinking,
    tool,
)
from tests.servers.openai import OpenAIServer
from tests.servers.openai_rules import Rules, alternating, deepseek, mistral, only_max_tokens

# By what refusals a compatible server teaches its dialect, once; everything else is a fault of form.
LESSONS = {
    "deepseek": ("Missing `reasoning_content`",),
    "mistral": ("with a length of 9", "'user' after role 'tool'"),
    "old": ("Unrecognized request argument",),
}
OVERFLOW = {
    "anthropic": "prompt is too long: 250000 tokens > 200000 maximum",
    "openai": "This model's maximum context length is 128000 tokens. However, your messages "
    "resulted in 130412 tokens. Please reduce the length of the messages.",
}
FAILURES = {
    RefusalKind.TRANSIENT: (503, "overloaded"),
    RefusalKind.RATE_LIMIT: (429, "slow down"),
    RefusalKind.AUTH: (401, "invalid x-api-key"),
    RefusalKind.FORMAT: (400, "messages: text content blocks must be non-empty"),
    RefusalKind.MEDIA: (400, "Could not process image"),
    RefusalKind.OUTPUT_CAP: (400, "max_tokens: 100 > 50, which is the maximum allowed number"),
}


@dataclass
class Endpoint:
    """A server, and a provider that speaks to it."""

    name: str
    server: LlmServer
    provider: Provider

    @property
    def kind(self) -> str:
        return "anthropic" if isinstance(self.server, AnthropicServer) else "openai"

    def answers(self, turn: Turn) -> Answerer:
        """The steps of a turn, then "done"."""
        steps = iter(turn.steps)

        def answer(_: LlmRequest) -> Script:
            step = next(steps, Step("done"))
            if step.failure is not None:
                return self._refusal(step.failure)
            return Reply(*self._parts(step))

        return answer

    def _refusal(self, kind: RefusalKind) -> HttpReply:
        status, words = FAILURES.get(kind, (400, "no"))
        words = OVERFLOW[self.kind] if kind is RefusalKind.OVERFLOW else words
        error = self.server.error_type(status)
        code = "context_length_exceeded" if kind is RefusalKind.OVERFLOW else None
        return HttpReply(
            status, self.server.error_body(Refused(words, status=status, type=error, code=code))
        )

    def _parts(self, step: Step) -> list[Part]:
        parts: list[Part] = []
        if step.thinks != "no" and self.name in ("anthropic", "deepseek"):
            withheld = step.thinks == "withheld" and self.kind == "anthropic"
            number = self.server.next_number()  # each block's data is its own
            parts.append(redacted_thinking(f"opaque {number}") if withheld else thinking("hm"))
        if step.text:
            parts.append(text(step.text, size=2))
        for call in step.calls:
            arguments = json.dumps(call.arguments) if call.raw is None else call.raw
            parts.append(tool(call.name, arguments, id=call.id))
        return parts


@dataclass
class Street:
    """All endpoints; one after the other is spoken to."""

    endpoints: list[Endpoint] = field(default_factory=list[Endpoint])

    def speak(self, turn: Turn) -> Provider:
        """The endpoint of a turn, with its answers at hand."""
        endpoint = self.endpoints[turn.author % len(self.endpoints)]
        endpoint.server.default = endpoint.answers(turn)
        return endpoint.provider

    def refusals(self) -> dict[str, list[str]]:
        """What each server refused so far; the other requests are forgotten."""
        found: dict[str, list[str]] = {}
        for endpoint in self.endpoints:
            requests = endpoint.server.requests
            requests[:] = [request for request in requests if request.refusal is not None]
            found[endpoint.name] = endpoint.server.refusals
        return found


@asynccontextmanager
async def street() -> AsyncGenerator[Street]:
    """Servers of each kind, listening."""
    rules: dict[str, Rules] = {
        "openai": Rules(),
        "deepseek": deepseek(),
        "mistral": mistral(),
        "old": only_max_tokens(),
        "alternating": alternating(),
    }
    servers: dict[str, LlmServer] = {"anthropic": AnthropicServer()}
    servers |= {name: OpenAIServer(rule) for name, rule in rules.items()}
    async with AsyncExitStack() as stack:
        made = Street()
        for name, server in servers.items():
            await stack.enter_async_context(server)
            settings = ProviderSettings(
                kind="anthropic" if name == "anthropic" else "openai",
                api_key=SecretStr(server.api_key),
                base_url=server.base_url,
            )
            provider = build_provider(name, settings)
            stack.push_async_callback(provider.aclose)
            made.endpoints.append(Endpoint(name, server, provider))
        yield made
