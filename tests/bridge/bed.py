"""A bridge on a real database, with a channel without a platform and a scripted provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC
from pathlib import Path

from agent.provider import ModelTraits
from agent.testing import ScriptedProvider, Step
from bridge.access import Access, ChannelAccess
from bridge.agent_bridge import AgentBridge, BridgeSettings
from bridge.errors import ErrorReporter
from bridge.gate import MonthlyGate
from bridge.log import Redactor
from bridge.models import ChatModel
from bridge.session import Scope
from bridge.texts import Texts
from bridge.turn import TurnServices
from channels.base import InboundMessage
from channels.testing import FakeChannel
from memory.conversations import Conversations
from memory.daily import DailyFiles
from memory.database import Database
from memory.errorlog import ErrorLog
from memory.inbox import Inbox
from memory.people import People
from memory.usage import UsageStore


class Bed:
    def __init__(
        self,
        database: Database,
        provider: ScriptedProvider,
        group: asyncio.TaskGroup,
        folder: Path,
        *,
        max_turns: int,
        scope: Scope,
        limit_usd: float,
        language: str | None,
    ) -> None:
        self.database = database
        self.provider = provider
        self.channel = FakeChannel()
        usage = UsageStore(database)
        self.services = TurnServices(
            conversations=Conversations(database),
            inbox=Inbox(database),
            usage=usage,
            people=People(database),
            daily=DailyFiles(folder / "memory"),
            errors=ErrorReporter(ErrorLog(database), Redactor()),
            texts=Texts.load(),
            gate=MonthlyGate(usage, max_steps=5, limit_usd=limit_usd, zone=UTC),
            max_turns=max_turns,
        )
        rules = ChannelAccess(frozenset({"owner"}), frozenset({"ana", "bo", "team"}))
        self.access = Access({"fake": rules}, self.services.people)
        self.bridge = AgentBridge(
            BridgeSettings(scope, UTC, language, queue_length=3),
            self.services,
            self.access,
            ChatModel(
                "m", "m-1", provider, 1000, ModelTraits(), "Be brief.", lambda usage: 1_000_000
            ),
            {"fake": self.channel},
            group,
        )

    async def send(
        self, text: str, *, person: str = "ana", chat: str = "1", private: bool = True
    ) -> InboundMessage:
        message = self.channel.message(text, person=person, chat=chat, private=private)
        await self.bridge.receive(message)
        return message

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                self.channel.changed.clear()
                await self.channel.changed.wait()

    async def ask(self, text: str, **where: object) -> str:
        count = len(self.channel.finals)
        await self.send(text, **where)  # type: ignore[arg-type]
        await self.until(lambda: len(self.channel.finals) > count)
        await self.bridge.idle()
        return self.channel.finals[-1]

    def said(self, request: int = -1) -> list[tuple[str, str]]:
        return [(m.role, m.text) for m in self.provider.requests[request].messages]


@asynccontextmanager
async def bed(
    folder: Path,
    steps: Sequence[Step] = (),
    *,
    stall: asyncio.Event | None = None,
    max_turns: int = 20,
    scope: Scope = "shared",
    limit_usd: float = 100,
    language: str | None = None,
) -> AsyncIterator[Bed]:
    database = await Database.open(folder / "galata.db")
    try:
        async with asyncio.TaskGroup() as group:
            made = Bed(
                database,
                ScriptedProvider(steps, stall),
                group,
                folder,
                max_turns=max_turns,
                scope=scope,
                limit_usd=limit_usd,
                language=language,
            )
            await made.access.load()
            yield made
            await made.bridge.close(0)
    finally:
        await database.close()
