"""What field cases are played on: the real SDKs against the strict local servers.

`chat` is a bridge on a real database, so that a case goes all the way from a person's message to what
the chat shows; `run` is one run of the loop, for what needs no chat. Both fail when a request was
refused for its form, unless a test says that it wants that.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

from pydantic import SecretStr

from agent.breaker import RunLimits
from agent.messages import (
    Block,
    ImageBlock,
    JsonObject,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agent.model import ChatModel
from agent.provider import Provider
from agent.providers import anthropic_history, build_provider, openai_history
from agent.retry import WAITS_S
from agent.settings import ProviderSettings
from agent.testing import ScriptedProvider
from agent.tools import Tool, ToolContext, ToolOutput, ToolSpec
from bridge.agent_bridge import AgentBridge
from bridge.models.chat_models import ModelChoice
from bridge.parts import BridgeSettings
from bridge.runs.turn_plan import TurnSettings
from memory.database import Database
from tests.agent import bed as agent_bed
from tests.bridge.bed import LIMITS, Bed, chat_model
from tests.servers.anthropic import AnthropicServer
from tests.servers.llm import LlmRequest, LlmServer
from tests.servers.openai import OpenAIServer

Kind = Literal["anthropic", "openai"]
KINDS: tuple[Kind, ...] = ("anthropic", "openai")
Json = dict[str, Any]


class Called:
    """A tool that keeps what it was called with and answers what `answer` makes of it."""

    def __init__(
        self,
        name: str,
        answer: Callable[[JsonObject], str | tuple[TextBlock | ImageBlock, ...]] = lambda _: "ok",
        *,
        required: Sequence[str] = (),
        side_effects: bool = False,
    ) -> None:
        properties: JsonObject = {key: {"type": "string"} for key in required}
        schema: JsonObject = {
            "type": "object",
            "properties": properties,
            "required": list(required),
        }
        self.spec = ToolSpec(name, f"Does {name}.", schema, side_effects=side_effects)
        self.ran: list[JsonObject] = []
        self._answer = answer

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        self.ran.append(arguments)
        await asyncio.sleep(0)
        made = self._answer(arguments)
        return ToolOutput.of(made) if isinstance(made, str) else ToolOutput(made)


class Chat(Bed):
    """The bridge's test bed with any provider in place of the scripted one."""

    def __init__(
        self,
        database: Database,
        group: asyncio.TaskGroup,
        folder: Path,
        server: LlmServer,
        model: ChatModel,
        settings: TurnSettings,
        tools: Sequence[Tool],
    ) -> None:
        super().__init__(
            database,
            ScriptedProvider(),
            group,
            folder,
            max_turns=settings.max_turns,
            scope="shared",
            limit_usd=10_000,
            language=None,
            more_tools=tools,
        )
        self.server = server
        self.services = replace(self.services, settings=settings)
        self.bridge = AgentBridge(
            BridgeSettings(UTC, 3),
            self.services,
            self.access,
            ModelChoice((model,)),
            {"fake": self.channel},
            group,
        )

    async def remember(self, *messages: Message, run: str = "earlier", session: int = 1) -> None:
        """Put messages into the store as one earlier run; the conversation has begun already."""
        await self.services.conversations.append(session, run, list(enumerate(messages)))

    async def stored(self, where: str = "1") -> list[Json]:
        """The stored messages, in order."""
        rows = await self.database.read(f"SELECT body FROM messages WHERE {where} ORDER BY id")
        return [json.loads(row[0]) for row in rows]


def provider_for(server: LlmServer, kind: Kind, name: str = "p") -> Provider:
    """The real SDK on a local server."""
    key = SecretStr(server.api_key)
    return build_provider(name, ProviderSettings(kind=kind, api_key=key, base_url=server.base_url))


def server_for(kind: Kind) -> LlmServer:
    """A strict server with its usual rules."""
    return AnthropicServer() if kind == "anthropic" else OpenAIServer()


@asynccontextmanager
async def chat(
    folder: Path,
    kind: Kind = "openai",
    *,
    server: LlmServer | None = None,
    tools: Sequence[Tool] = (),
    window: int = 100_000,
    most_output: int = 1_000,
    max_turns: int = 20,
    limits: RunLimits = LIMITS,
    budget: int | None = None,
    may_refuse: bool = False,
) -> AsyncGenerator[Chat]:
    """A bridge with one model. `may_refuse`: the server's rules are part of the case."""
    async with AsyncExitStack() as stack:
        database = await Database.open(folder / "galata.db")
        stack.push_async_callback(database.close)
        llm = await stack.enter_async_context(server or server_for(kind))
        provider = provider_for(llm, kind)
        stack.push_async_callback(provider.aclose)
        model = replace(
            chat_model(provider, window=window), max_output_tokens=most_output, id="test-model"
        )
        settings = TurnSettings("Be brief.", limits, max_turns, budget)
        group = await stack.enter_async_context(asyncio.TaskGroup())
        made = Chat(database, group, folder, llm, model, settings, tools)
        await made.access.load()
        with patch.dict("agent.retry.WAITS_S", dict.fromkeys(WAITS_S, (0.0, 0.0, 0.0))):
            yield made
            await made.bridge.close(0)
        assert may_refuse or llm.refusals == [], "a request was refused for its form"


@dataclass(frozen=True)
class Run:
    """A bed for one run of the loop; `it.run(history)` begins it."""

    server: LlmServer
    it: agent_bed.Fixture

    @property
    def requests(self) -> list[LlmRequest]:
        return self.server.requests


@asynccontextmanager
async def run(
    kind: Kind = "openai",
    *,
    server: LlmServer | None = None,
    tools: Sequence[Tool] = (),
    window: int = 100_000,
    most_output: int = 1_000,
    limits: RunLimits = agent_bed.LIMITS,
    may_refuse: bool = False,
) -> AsyncGenerator[Run]:
    """One run without a store."""
    async with server or server_for(kind) as llm, aclosing(provider_for(llm, kind)) as provider:
        fixture = agent_bed.Fixture([], tools=tools, limits=limits)  # type: ignore[arg-type]
        fixture.models = (agent_bed.model(provider, window=window, most_output=most_output),)
        yield Run(llm, fixture)
        assert may_refuse or llm.refusals == [], "a request was refused for its form"


def texts(request: LlmRequest) -> str:
    """All of a request as one text, to look for words in."""
    return json.dumps(request.body, ensure_ascii=False)


def facts(request: LlmRequest, kind: Kind) -> list[tuple[str, str]]:
    """What a request says, the same for both APIs: the speaker with a paragraph, `call ID` or
    `result ID: words`."""
    reader = anthropic_history if kind == "anthropic" else openai_history
    rows = [row for row in request.messages if row["role"] != "system"]
    read = reader.read(rows)
    assert read.faults == []
    return [(m.role, fact) for m in read.messages for block in m.blocks for fact in _facts(block)]


def _facts(block: Block) -> list[str]:
    match block:
        case TextBlock(words):
            return words.split("\n\n")  # OpenAI's renderer joins texts like this
        case ToolUseBlock():
            return [f"call {block.id}"]
        case ToolResultBlock():
            parts = [p.text if isinstance(p, TextBlock) else "(image)" for p in block.content]
            return [f"result {block.tool_use_id}: {' '.join(parts)}"]
        case _:
            return [f"({type(block).__name__})"]
