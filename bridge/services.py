"""The stores and helpers that every turn uses, from the configuration."""

from __future__ import annotations

from pathlib import Path

from agent.breaker import RunLimits
from agent.tools import Tool
from bridge.chats.erasing import shared_scope
from bridge.config import Config
from bridge.configuration.limit_layers import known_of, layers_of
from bridge.configuration.settings import Limits
from bridge.configuration.storing import storing
from bridge.errors import ErrorReporter
from bridge.limits.gate import MICRO, MonthlyGate
from bridge.limits.policies import chat_policies
from bridge.log import Redactor
from bridge.models.chat_models import ModelChoice
from bridge.models.ratios import Ratios
from bridge.operation.guard import LOW_BYTES, free_bytes
from bridge.remembering.parts import MemoryGround, memory_parts
from bridge.runs.pictures import Pictures
from bridge.runs.slots import Slots
from bridge.runs.turn_plan import TurnServices, TurnSettings
from bridge.sharing import Sharing
from bridge.texts import Texts
from memory.access.people import People
from memory.backlog import BacklogStore
from memory.chats.reach import Chats
from memory.chats.talks import Talks
from memory.conversations import Conversations
from memory.costs.chat_usage import ChatUsage
from memory.costs.token_ratios import TokenRatios
from memory.database import Database
from memory.dialogues import Dialogues
from memory.inbox import Inbox
from memory.jobs import Jobs
from memory.markdown.folders import MEMORY, TRANSCRIPTS, ChatFolders
from memory.notebook import Notebook
from memory.operators.errorlog import ErrorLog
from memory.outbox import Outbox
from memory.policies import PolicyStore
from memory.refused_images import RefusedImages
from memory.removal.person_traces import PersonTraces
from memory.runs import Runs
from memory.transcripts import Transcripts
from memory.usage import UsageStore

NO_MODELS = ModelChoice(())


def turn_services(
    config: Config,
    database: Database,
    data: Path,
    redactor: Redactor,
    more_tools: tuple[Tool, ...] = (),
    models: ModelChoice = NO_MODELS,
) -> TurnServices:
    """The stores and helpers that every turn uses. Without `models` no memory is consolidated."""
    usage, chats, ratios = UsageStore(database), Chats(database), Ratios(TokenRatios(database))
    errors = ErrorReporter(ErrorLog(database), redactor)
    gate = MonthlyGate(
        usage,
        limit_usd=config.installation.cost_per_month_usd,
        zone=config.zone,
        day_usd=config.installation.cost_per_day_usd,
        person_usd=config.installation.cost_per_person_per_day_usd,
    )
    known = known_of(config, more_tools)
    policies = chat_policies(layers_of(config), data, database, chats, known)
    folder = data / MEMORY
    notebook = Notebook(database, folder)
    sharing = Sharing(config.memory.shared, lambda: chats.moves)
    ground = MemoryGround(
        database, folder, usage, gate, ratios, policies, notebook, errors.report, sharing
    )
    return TurnServices(
        conversations=Conversations(database),
        inbox=Inbox(database),
        runs=Runs(database),
        outbox=Outbox(database),
        usage=usage,
        people=People(database),
        chats=chats,
        backlog=BacklogStore(database),
        folders=ChatFolders(data),
        traces=PersonTraces(database, data / MEMORY, shared_scope),
        talks=Talks(database),
        jobs=Jobs(database),
        memory=memory_parts(config, ground, models),
        notebook=notebook,
        transcripts=Transcripts(database, data / TRANSCRIPTS),
        ratios=ratios,
        refused_images=RefusedImages(database),
        errors=errors,
        texts=Texts.load(),
        gate=gate,
        settings=TurnSettings(
            instructions=config.instructions,
            limits=run_limits(config.limits),
            max_turns=config.context.max_turns,
            budget_tokens=config.context.budget_tokens,
        ),
        limits=PolicyStore(database),
        slots=Slots(config.limits.concurrent_runs, config.limits.concurrent_runs_per_chat),
        chat_usage=ChatUsage(database),
        dialogues=Dialogues(database),
        policies=policies,
        pictures=Pictures(lambda: free_bytes(data) >= LOW_BYTES),
        redactor=redactor,
        storing=storing(config),
        more_tools=more_tools,
    )


def run_limits(limits: Limits) -> RunLimits:
    """The caps of one run."""
    cost = limits.cost_per_run_usd
    return RunLimits(
        steps=limits.steps_per_run,
        tool_calls=limits.tool_calls_per_run,
        seconds=limits.seconds_per_run,
        tokens=limits.tokens_per_run,
        cost_microusd=None if cost is None else round(cost * MICRO),
    )
