"""The whole bot on the local servers, for cases in which a platform takes part."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.tools import Tool
from bridge.configuration.settings import Config
from memory.database import Database
from tests.e2e.bed import App, config, llm_server, running, slack_settings, telegram_settings
from tests.servers.llm import LlmServer
from tests.servers.slack import Conversation, SlackServer, User
from tests.servers.telegram import Chat, TelegramServer

DATABASE = "galata.db"


@dataclass
class World:
    """A running bot, its model and its data folder."""

    llm: LlmServer
    app: App

    async def restart(self) -> None:
        """Stop it and start it again."""
        await self.app.stop()
        await self.app.start()

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What is stored, also while the bot runs."""
        database = await Database.open_beside(self.app.data / DATABASE)
        try:
            return [tuple(row) for row in await database.read(sql)]
        finally:
            await database.close()

    def asked(self) -> list[str]:
        """The questions of all requests, each once, however they were joined to turns."""
        texts = [request.last_user_text for request in self.llm.requests]
        return [word for text in texts for word in text.split("\n\n")]


@dataclass
class TelegramWorld(World):
    """Ana owns the bot. `group` may use it."""

    server: TelegramServer
    ana: Any
    chat: Chat
    group: Chat

    async def die(self) -> None:
        """What `kill -9` leaves: the files as they are now. Whatever the process still does reaches
        neither them nor Telegram, where its token is not known any more."""
        left = self.app.data.with_name(f"{self.app.data.name}+")
        left.mkdir()
        for file in self.app.data.glob(f"{DATABASE}*"):
            shutil.copy(file, left)
        self.server.token += "x"
        self.server.faults.release_all()
        assert self.app.task is not None
        self.app.task.cancel()
        await asyncio.gather(self.app.task, return_exceptions=True)
        channels = self.app.config.channels.model_copy(
            update={"telegram": _owned(self.server, self.ana, self.group)}
        )
        self.app.config = self.app.config.model_copy(update={"channels": channels})
        self.app.data = left


@dataclass
class SlackWorld(World):
    """Ana owns the bot. `channel` may use it; Bo is in it too."""

    server: SlackServer
    ana: User
    bo: User
    dm: Conversation
    channel: Conversation


def _owned(server: TelegramServer, ana: Any, group: Chat) -> Any:
    return telegram_settings(server, owners=[str(ana.id)], allowed=[str(group.id)])


@asynccontextmanager
async def on_telegram(
    data: Path, *, tools: Sequence[Tool] = (), privacy_mode: bool = True, forum: bool = False
) -> AsyncGenerator[TelegramWorld]:
    """A bot in Telegram, which polls already."""
    data = data / "data"
    async with TelegramServer(privacy_mode=privacy_mode) as server, llm_server() as llm:
        ana = server.user("Ana", language_code="en")
        chat = server.private(ana)
        group = server.group("Team", members=[ana], forum=forum, id=-100500)
        made: Config = config(llm, telegram=_owned(server, ana, group))
        async with running(made, data, tuple(tools)) as app:
            await server.wait_for_poll()
            yield TelegramWorld(llm, app, server, ana, chat, group)


@asynccontextmanager
async def on_slack(data: Path, *, tools: Sequence[Tool] = ()) -> AsyncGenerator[SlackWorld]:
    """A bot in Slack, which is connected already."""
    async with SlackServer() as server, llm_server() as llm:
        ana, bo = server.user("Ana"), server.user("Bo")
        dm, channel = server.dm(ana), server.channel("team", members=[ana, bo])
        settings = slack_settings(server, owners=[ana.id], allowed=[channel.id])
        async with running(config(llm, slack=settings), data, tuple(tools)) as app:
            await server.wait_for_connection(1)
            yield SlackWorld(llm, app, server, ana, bo, dm, channel)
        assert server.violations == [], "blocks that Slack would refuse"
