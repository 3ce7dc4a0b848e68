"""The parts of the memory that ask a model, as the configuration wants them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path

from agent.model import ChatModel
from bridge.config import Config
from bridge.limits.caps import caps_of
from bridge.limits.gate import MonthlyGate
from bridge.limits.policies import ChatPolicies, zone_of
from bridge.models.chat_models import ModelChoice
from bridge.models.ratios import Ratios
from bridge.remembering.calls import Allowance, AllowanceOf, MemoryCalls
from bridge.remembering.consolidation import Consolidation, NightStores
from bridge.remembering.flushing import Flushing, Owner, ZoneOf, owner_of
from bridge.remembering.jobs import MemoryJobs, Report
from bridge.remembering.switch import MemorySwitch
from bridge.sharing import Sharing
from bridge.tools import ConversationInfo, CurrentTime
from channels.base import Address
from memory.chats.off import MemoryOff
from memory.daily import DailyFiles
from memory.database import Database
from memory.forgotten.copies import REMEMBER_TOOL
from memory.jobs import Jobs
from memory.night.nights import Nights
from memory.night.read_days import ReadDays
from memory.notebook import Notebook
from memory.notes.flushed import FlushMarks
from memory.scopes import SHARED
from memory.tombstones import Tombstones
from memory.usage import UsageStore
from memory.whose.speakers import Speakers

# Tools whose results hold nothing that others wrote. What `forget` lists may be what a page said.
OWN_TOOLS = frozenset({CurrentTime.spec.name, ConversationInfo.spec.name, REMEMBER_TOOL})


@dataclass(frozen=True, slots=True)
class MemoryParts:
    """`jobs` None: there is no model, and nothing is consolidated. `nights`: what they have changed;
    `tells`: whether the next answer says so. `calls` make the summaries of contexts (None: there is
    no model); where `own_model`, with the notes' model, else with the one that reads the context."""

    flushing: Flushing
    nights: Nights
    jobs: MemoryJobs | None
    switch: MemorySwitch
    tells: bool = True
    sharing: Sharing = field(default_factory=Sharing)
    calls: MemoryCalls | None = None
    own_model: bool = False

    def summaries(self, reader: ChatModel) -> MemoryCalls | None:
        """The calls for the summary of a context that `reader` reads."""
        if self.calls is None or self.own_model:
            return self.calls
        return self.calls.by(reader)

    @asynccontextmanager
    async def paused(self, sessions: Sequence[int], scopes: Sequence[str]) -> AsyncGenerator[None]:
        """Nothing is noted of these sessions, and no night works on these scopes, while inside."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.flushing.paused(sessions))
            if self.jobs is not None:
                for scope in scopes:
                    await stack.enter_async_context(self.jobs.consolidation.paused(scope))
            yield

    def at_work(self, address: Address) -> bool:
        """Whether the memory of that chat is being tidied."""
        return self.jobs is not None and self.jobs.at_work(self.sharing.scope(address))


@dataclass(frozen=True, slots=True)
class MemoryGround:
    """What they stand on."""

    database: Database
    folder: Path
    usage: UsageStore
    gate: MonthlyGate
    ratios: Ratios
    policies: ChatPolicies
    notebook: Notebook
    report: Report
    sharing: Sharing


def memory_parts(config: Config, ground: MemoryGround, models: ModelChoice) -> MemoryParts:
    """All of them, on the same stores."""
    settings = config.memory
    marks, daily = FlushMarks(ground.database), DailyFiles(ground.folder)
    tombstones, nights = Tombstones(ground.database), Nights(ground.database)
    sharing = ground.sharing
    zone = _zones(ground.policies, config.zone)
    switch = MemorySwitch(MemoryOff(ground.database), marks, ground.policies)

    async def is_on(owner: Owner) -> bool:
        return await switch.is_on(owner.address, owner.person)

    if not models.usual:
        flushing = Flushing(marks, daily, tombstones, None, zone, OWN_TOOLS, is_on, sharing)
        return MemoryParts(flushing, nights, None, switch, settings.tell_overnight, sharing)
    calls = MemoryCalls(
        _corrected(models.notes or models.usual[0], ground.ratios),
        ground.usage,
        ground.gate,
        settings.budget_percent / 100,
        _allowances(marks, ground.policies, sharing),
    )
    flushing = Flushing(marks, daily, tombstones, calls, zone, OWN_TOOLS, is_on, sharing)

    async def changed(scope: str) -> None:
        await ground.notebook.refresh(sharing.whole(scope))

    speakers, days = Speakers(ground.database), ReadDays(ground.database, daily)
    stores = NightStores(
        ground.notebook.files, daily, days, nights, tombstones, speakers, sharing.whole, changed
    )
    consolidation = Consolidation(stores, calls, settings.most_lost_percent / 100)
    rows = Jobs(ground.database)
    jobs = MemoryJobs(settings, marks, flushing, consolidation, zone, ground.report, rows, sharing)
    return MemoryParts(
        flushing,
        nights,
        jobs,
        switch,
        settings.tell_overnight,
        sharing,
        calls,
        own_model=models.notes is not None,
    )


def _zones(policies: ChatPolicies, shared: tzinfo) -> ZoneOf:
    """`shared`: where the days of a memory begin that is of several chats."""

    async def zone(owner: Owner) -> tzinfo:
        if owner.scope == SHARED:
            return shared
        await policies.read(owner.address)
        return zone_of(policies.of(owner.address, owner.person))

    return zone


def _allowances(marks: FlushMarks, policies: ChatPolicies, sharing: Sharing) -> AllowanceOf:
    async def allowance(session: int) -> Allowance | None:
        owner = await owner_of(marks, session, sharing)
        if owner is None:
            return None
        address = owner.address
        await policies.read(address)
        policy = policies.of(address, owner.person)
        place = (address.channel, address.account, address.chat)
        return Allowance(place, zone_of(policy), caps_of(policy, private=address.private))

    return allowance


def _corrected(model: ChatModel, ratios: Ratios) -> Callable[[], ChatModel]:
    return lambda: ratios.corrected(model)
