"""Day files and nights on a real database and real files, with a model that is a function."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, tzinfo
from pathlib import Path

from agent.messages import Message, assistant_text
from agent.provider import ModelRequest
from agent.testing import ScriptedProvider
from bridge.inbound import entry
from bridge.limits.gate import MonthlyGate
from bridge.remembering.calls import MemoryCalls
from bridge.remembering.consolidation import Consolidation, NightStores
from bridge.remembering.flushing import Flushing, Owner
from bridge.remembering.jobs import MemoryJobs
from bridge.scheduler import Scheduler
from bridge.session import memory_scope, session_of
from bridge.sharing import Sharing
from channels.base import Address, InboundMessage, Sender
from memory.conversations import Conversations
from memory.daily import DailyFiles
from memory.database import Database
from memory.inbox import Inbox
from memory.jobs import Jobs
from memory.markdown.fact_files import FactFiles
from memory.markdown.facts import facts
from memory.night.nights import Night, Nights
from memory.night.read_days import ReadDays
from memory.notes.flushed import FlushMarks
from memory.settings import MemorySettings
from memory.tombstones import Tombstones
from memory.usage import UsageStore
from memory.whose.speakers import Speakers
from tests.bridge.bed import chat_model

ANA = Address("fake", "1", "7")
TEAM = Address("fake", "1", "-5", None, private=False)
SCOPE = memory_scope(ANA)
OWN_TOOLS = frozenset({"current_time"})

Model = Callable[[ModelRequest], Message | str]


class FunctionProvider(ScriptedProvider):
    """Answers each request with what `answer` makes of it."""

    def __init__(self, answer: Model) -> None:
        super().__init__()
        self.answer = answer

    async def _events(self, request: ModelRequest):  # type: ignore[no-untyped-def]
        made = self.answer(request)
        self.steps = [assistant_text(made) if isinstance(made, str) else made]
        async for event in super()._events(request):
            yield event


class MemoryBed:
    """`answer` is the model; it may be replaced at any time. `now` is the jobs' clock."""

    def __init__(
        self,
        database: Database,
        folder: Path,
        group: asyncio.TaskGroup,
        answer: Model,
        *,
        zone: tzinfo = UTC,
        limit_usd: float = 100,
        share: float = 0.2,
        most_lost: float = 0.2,
        settings: MemorySettings | None = None,
        sharing: Sharing | None = None,
    ) -> None:
        self.database = database
        self.sharing = sharing
        self.folder = folder
        self.zone = zone
        self.now = datetime(2026, 11, 30, 12, tzinfo=UTC)
        self.provider = FunctionProvider(answer)
        self.conversations = Conversations(database)
        self.marks = FlushMarks(database)
        self.daily = DailyFiles(folder)
        self.files = FactFiles(folder)
        self.days, self.nights = ReadDays(database, self.daily), Nights(database)
        self.tombstones = Tombstones(database)
        usage = UsageStore(database)
        gate = MonthlyGate(usage, limit_usd=limit_usd, zone=UTC)
        model = chat_model(self.provider)
        self.calls = MemoryCalls(lambda: model, usage, gate, share)
        self.changed: list[str] = []
        self.reported: list[str] = []
        whole = (sharing or Sharing()).whole
        stores = NightStores(
            self.files,
            self.daily,
            self.days,
            self.nights,
            self.tombstones,
            Speakers(database),
            whole,
            self._changed,
        )
        self.flushing = self.flushing_of(self.daily)
        self.consolidation = Consolidation(stores, self.calls, most_lost)
        self.jobs = MemoryJobs(
            settings or MemorySettings(),
            self.marks,
            self.flushing,
            self.consolidation,
            self.zone_of,
            self._report,
            Jobs(database),
            sharing,
        )
        self.rows = Jobs(database)
        self.scheduler = Scheduler(
            self.rows, self.jobs.handlers, self._report, group, lambda: self.now
        )
        self.jobs.bind(self.scheduler)

    def flushing_of(self, daily: DailyFiles) -> Flushing:
        """Another one, as after a restart."""
        return Flushing(
            self.marks,
            daily,
            self.tombstones,
            self.calls,
            self.zone_of,
            OWN_TOOLS,
            sharing=self.sharing,
        )

    async def zone_of(self, owner: Owner) -> tzinfo:
        return self.zone

    async def _changed(self, scope: str) -> None:
        self.changed.append(scope)

    async def _report(self, error: BaseException, place: str) -> str:
        self.reported.append(f"{place}: {error!r}")
        return "E1"

    @property
    def asked(self) -> list[str]:
        """The questions that the model got."""
        return [request.messages[-1].text for request in self.provider.requests]

    async def session(self, address: Address = ANA, name: str = "Ana") -> int:
        """A session in which somebody has written."""
        place = session_of(address, "7", "shared")
        session = await self.conversations.open(place)
        event = f"m:{name}:{address.thread}"
        message = InboundMessage(address, event, "1", Sender("7", name), self.now, "x")
        id_ = await Inbox(self.database).put(entry(message, place, "turn"))
        if id_ is not None:
            await Inbox(self.database).close([id_], "answered")
        return session

    async def say(
        self, session: int, *messages: Message, run: str, at: datetime | None = None
    ) -> None:
        """A settled run."""
        await self.conversations.append(session, run, list(enumerate(messages)))
        at_text = (at or self.now).astimezone(UTC).isoformat(timespec="microseconds")
        await self.database.write(
            lambda connection: connection.execute(
                "UPDATE messages SET created_at = ? WHERE run_id = ?", (at_text, run)
            )
        )

    async def flush(self, session: int) -> int:
        owner = await self.flushing.owner(session)
        assert owner is not None
        return await self.flushing.flush(session, owner)

    async def night(self, session: int, day: date, scope: str = SCOPE) -> Night:
        return await self.consolidation.night(scope, session, day)

    async def day(self, day: date, scope: str = SCOPE) -> str:
        return (await self.daily.read(scope, day)).decode()

    async def known(self, scope: str = SCOPE) -> list[str]:
        return [entry.text for entry in facts(await self.files.load(scope))]


@asynccontextmanager
async def memory_bed(folder: Path, answer: Model, **settings: object) -> AsyncIterator[MemoryBed]:
    database = await Database.open(folder / "galata.db")
    try:
        async with asyncio.TaskGroup() as group:
            made = MemoryBed(database, folder / "memory", group, answer, **settings)  # type: ignore[arg-type]
            yield made
            await made.scheduler.close()
    finally:
        await database.close()
