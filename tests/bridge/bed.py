"""A bridge on a real database, with a channel without a platform and a scripted provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC
from pathlib import Path

from agent.breaker import RunLimits
from agent.estimate import Estimator, Family
from agent.model import ChatModel
from agent.provider import ModelTraits, Provider
from agent.testing import ScriptedProvider, Step
from agent.tools import Tool
from bridge.access import Access, ChannelAccess
from bridge.access.stores import AccessStores
from bridge.agent_bridge import AgentBridge
from bridge.chats.erasing import shared_scope
from bridge.errors import ErrorReporter
from bridge.intake.backlog import BacklogTiming
from bridge.limits.gate import MonthlyGate
from bridge.limits.kinds import Known
from bridge.limits.policies import ChatPolicies, PolicyLayers, chat_policies
from bridge.limits.sections import WhoCanStop
from bridge.log import Redactor
from bridge.models.chat_models import ModelChoice
from bridge.models.ratios import Ratios
from bridge.parts import BridgeSettings
from bridge.remembering.calls import MemoryCalls
from bridge.remembering.flushing import Flushing, Owner
from bridge.remembering.parts import MemoryParts
from bridge.remembering.switch import MemorySwitch
from bridge.runs.turn_plan import TurnServices, TurnSettings
from bridge.session import Scope
from bridge.sharing import Sharing
from bridge.texts import Texts
from bridge.tools import tool_names
from channels.base import InboundMessage
from channels.testing import FakeChannel
from memory.access.people import People
from memory.backlog import BacklogStore
from memory.chats.off import MemoryOff
from memory.chats.reach import Chats
from memory.chats.talks import Talks
from memory.conversations import Conversations
from memory.costs.chat_usage import ChatUsage
from memory.costs.token_ratios import TokenRatios
from memory.daily import DailyFiles
from memory.database import Database
from memory.dialogues import Dialogues
from memory.inbox import Inbox
from memory.jobs import Jobs
from memory.markdown.folders import MEMORY, ChatFolders
from memory.night.nights import Nights
from memory.notebook import Notebook
from memory.notes.flushed import FlushMarks
from memory.operators.errorlog import ErrorLog
from memory.outbox import Outbox
from memory.policies import PolicyStore
from memory.refused_images import RefusedImages
from memory.removal.person_traces import PersonTraces
from memory.runs import Runs
from memory.tombstones import Tombstones
from memory.transcripts import Transcripts
from memory.usage import UsageStore

NO_LAYERS = PolicyLayers()
RULES = ChannelAccess(frozenset({"owner"}), frozenset({"ana", "bo", "team", "crew", "odd"}))
LIMITS = RunLimits(steps=5, tool_calls=50, seconds=900, tokens=1_000_000)


def chat_model(provider: Provider, name: str = "m", *, window: int = 100_000) -> ChatModel:
    return ChatModel(
        name,
        f"{name}-1",
        provider,
        1000,
        ModelTraits(),
        window,
        Estimator(Family.UNKNOWN),
        lambda usage: 1_000_000,
    )


def without_nights(
    database: Database, folder: Path, policies: ChatPolicies, sharing: Sharing, calls: MemoryCalls
) -> MemoryParts:
    """Day files get digests, and no night comes; `calls` make summaries."""
    daily, marks = DailyFiles(folder), FlushMarks(database)
    switch = MemorySwitch(MemoryOff(database), marks, policies)

    async def is_on(owner: Owner) -> bool:
        return await switch.is_on(owner.address, owner.person)

    flushing = Flushing(marks, daily, Tombstones(database), is_on=is_on, sharing=sharing)
    nights = Nights(database)
    return MemoryParts(flushing, nights, None, switch, sharing=sharing, calls=calls)


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
        more_tools: Sequence[Tool] = (),
        fallbacks: Sequence[Provider] = (),
        who_can_stop: WhoCanStop = "asker_and_admins",
        layers: PolicyLayers = NO_LAYERS,
        others: Sequence[ChatModel] = (),
        usage_names: bool = False,
        person_usd: float | None = None,
        shared: Sequence[str] = (),
        memory_share: float = 1,
        zone: str | None = "UTC",
    ) -> None:
        self.database = database
        self.provider = provider
        self.channel = FakeChannel()
        usage, chats = UsageStore(database), Chats(database)
        models = (chat_model(provider), *(chat_model(p, f"f{i}") for i, p in enumerate(fallbacks)))
        choice = ModelChoice(models, {model.name: model for model in (*models, *others)})
        gate = MonthlyGate(usage, limit_usd=limit_usd, zone=UTC, person_usd=person_usd)
        top = {
            **({} if zone is None else {"timezone": zone}),
            "language": language or "auto",
            "conversation": scope,
            "who_can_stop": who_can_stop,
        }
        known = Known(tuple(choice.others), tool_names(more_tools))
        policies = chat_policies(replace(layers, top=top), folder, database, chats, known)
        self.services = TurnServices(
            conversations=Conversations(database),
            inbox=Inbox(database),
            runs=Runs(database),
            outbox=Outbox(database),
            usage=usage,
            people=People(database),
            chats=chats,
            backlog=BacklogStore(database),
            folders=ChatFolders(folder),
            traces=PersonTraces(database, folder / MEMORY, shared_scope),
            talks=Talks(database),
            jobs=Jobs(database),
            memory=without_nights(
                database,
                folder / MEMORY,
                policies,
                Sharing(shared, lambda: chats.moves),
                MemoryCalls(lambda: models[0], usage, gate, memory_share),
            ),
            notebook=Notebook(database, folder / "memory"),
            errors=ErrorReporter(ErrorLog(database), Redactor()),
            texts=Texts.load(),
            gate=gate,
            transcripts=Transcripts(database, folder / "transcripts"),
            ratios=Ratios(TokenRatios(database)),
            refused_images=RefusedImages(database),
            settings=TurnSettings("Be brief.", LIMITS, max_turns, None),
            limits=PolicyStore(database),
            chat_usage=ChatUsage(database),
            dialogues=Dialogues(database),
            policies=policies,
            more_tools=tuple(more_tools),
        )
        channels = {"fake": self.channel}
        stores = AccessStores.of(database)
        self.access = Access({"fake": RULES}, self.services.chats, stores, channels)
        self.bridge = AgentBridge(
            BridgeSettings(UTC, 3, usage_names, BacklogTiming(0.05, 1)),
            self.services,
            self.access,
            choice,
            channels,
            group,
        )

    async def send(
        self, text: str, *, person: str = "ana", chat: str = "1", private: bool = True
    ) -> InboundMessage:
        message = self.channel.message(text, person=person, chat=chat, private=private)
        await self.bridge.receive(message)
        return message

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(30):
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
    more_tools: Sequence[Tool] = (),
    fallbacks: Sequence[Provider] = (),
    who_can_stop: WhoCanStop = "asker_and_admins",
    layers: PolicyLayers = NO_LAYERS,
    others: Sequence[ChatModel] = (),
    usage_names: bool = False,
    person_usd: float | None = None,
    shared: Sequence[str] = (),
    memory_share: float = 1,
    zone: str | None = "UTC",
) -> AsyncGenerator[Bed]:
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
                more_tools=more_tools,
                fallbacks=fallbacks,
                who_can_stop=who_can_stop,
                layers=layers,
                others=others,
                usage_names=usage_names,
                person_usd=person_usd,
                shared=shared,
                memory_share=memory_share,
                zone=zone,
            )
            await made.services.chats.load()
            await made.access.load()
            yield made
            await made.bridge.close(0)
    finally:
        await database.close()
