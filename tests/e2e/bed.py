"""The whole app on the local protocol servers, in this process, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agent.messages import JsonObject
from agent.settings import ModelSettings, PriceSettings, ProviderSettings
from agent.tools import Tool, ToolContext, ToolOutput, ToolSpec
from bridge.app import serve
from bridge.configuration.settings import Channels, Config, Slack, Telegram
from bridge.log import Redactor
from bridge.operation.signals import Signals
from tests.servers.anthropic import AnthropicServer
from tests.servers.llm import LlmServer
from tests.servers.openai import OpenAIServer
from tests.servers.slack import SlackServer
from tests.servers.telegram import TelegramServer


class Hanging:
    """A tool that changes something outside, has begun and does not end."""

    spec = ToolSpec("pay", "Pays a bill.", {"type": "object"}, side_effects=True)

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()
        raise AssertionError("it does not end by itself")


class App:
    """A running bot; `stop` it like a SIGTERM does."""

    def __init__(self, config: Config, data: Path, more_tools: tuple[Tool, ...] = ()) -> None:
        self.config = config
        self.data = data
        self.more_tools = more_tools
        self.stopping = Signals()
        self.task: asyncio.Task[int] | None = None

    async def start(self) -> None:
        redactor = Redactor(self.config.secrets())
        self.stopping = Signals()
        self.task = asyncio.create_task(
            serve(
                self.config,
                self.data,
                redactor,
                self.stopping,
                console=False,
                more_tools=self.more_tools,
            )
        )

    async def stop(self) -> int:
        assert self.task is not None
        self.stopping.asked.set()
        return await self.task


def config(llm: LlmServer, *, kind: str = "anthropic", **channels: Any) -> Config:
    return Config(
        timezone="Europe/Berlin",
        model="main",
        providers={
            "p": ProviderSettings.model_validate(
                {"kind": kind, "api_key": llm.api_key, "base_url": llm.base_url}
            )
        },
        models={
            "main": ModelSettings(
                provider="p",
                id="test-model",
                context_tokens=100_000,
                price=PriceSettings.model_validate(
                    {"input": 1, "output": 5, "as_of": "2026-11-01"}
                ),
            )
        },
        channels=Channels(**channels),
    )


def telegram_settings(server: TelegramServer, **ids: Any) -> Telegram:
    base_url = server.base_url.removesuffix("/bot")
    return Telegram.model_validate({"token": server.token, "base_url": base_url, **ids})


def slack_settings(server: SlackServer, **ids: Any) -> Slack:
    return Slack.model_validate(
        {
            "bot_token": server.bot_token,
            "app_token": server.app_token,
            "base_url": server.base_url,
            **ids,
        }
    )


@asynccontextmanager
async def llm_server(kind: str = "anthropic") -> AsyncGenerator[LlmServer]:
    server: LlmServer = AnthropicServer() if kind == "anthropic" else OpenAIServer()
    async with server:
        yield server
        assert server.refusals == [], "a request was refused for its form"


@asynccontextmanager
async def running(
    made: Config, data: Path, more_tools: tuple[Tool, ...] = ()
) -> AsyncGenerator[App]:
    app = App(made, data, more_tools)
    await app.start()
    try:
        yield app
    finally:
        await app.stop()
