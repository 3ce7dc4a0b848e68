"""The composition root: builds every part once, runs them in one task group, and ends them in order.

Stop listening -> start no run -> let runs finish, then interrupt them -> deliver -> close. Messages
that were not answered stay in the inbox and are taken up at the next start.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from agent.breaker import RunLimits
from agent.provider import Provider
from agent.tools import Tool
from bridge.access import Access
from bridge.access.stores import AccessStores
from bridge.agent_bridge import AgentBridge
from bridge.chat_models import ModelChoice, chat_models
from bridge.chats import ERASE_GONE, NIGHTLY, advice
from bridge.config import Config
from bridge.data_folder import FolderRefused, held
from bridge.erase_verb import ERASE, EraseVerb
from bridge.erasing import shared_scope
from bridge.errors import ErrorReporter
from bridge.gate import MICRO, MonthlyGate
from bridge.guard import LOW_BYTES, free_bytes
from bridge.limits.layers import known_of, layers_of
from bridge.limits.policies import chat_policies
from bridge.log import Redactor, setup
from bridge.memory_jobs import TIDY, MemoryJobs
from bridge.memory_parts import MemoryGround, memory_parts
from bridge.operation import Operation
from bridge.owners import offer_ownership
from bridge.parts import BridgeSettings
from bridge.pictures import Pictures
from bridge.policy_changes import ANNOUNCE, ANNOUNCE_LIMIT_S
from bridge.private_talks import LIMIT_S as END_S
from bridge.ratios import Ratios
from bridge.registry import access_rules, build_channels
from bridge.reloading import Reloading, Source
from bridge.scheduler import Handler
from bridge.settings import Limits
from bridge.sharing import Sharing
from bridge.signals import Signals
from bridge.slots import Slots
from bridge.storing import storing
from bridge.texts import Texts
from bridge.token_lock import TokenInUse, held_tokens
from bridge.turn_plan import TurnServices, TurnSettings
from bridge.upkeep import LIMIT_S, Upkeep, open_whole
from bridge.watch import ChannelWatch
from channels.base import Channel
from channels.console import ConsoleChannel
from channels.errors import ChannelFailed
from channels.supervise import supervise
from memory.backlog import BacklogStore
from memory.chat_usage import ChatUsage
from memory.chats import Chats
from memory.clock import stamp
from memory.conversations import Conversations
from memory.database import Database
from memory.dialogues import Dialogues
from memory.errorlog import ErrorLog
from memory.errors import StoreError
from memory.folders import MEMORY, TRANSCRIPTS, ChatFolders
from memory.inbox import Inbox
from memory.jobs import Jobs
from memory.leftovers import clear_leftovers
from memory.notebook import Notebook
from memory.outbox import Outbox
from memory.people import People
from memory.person_traces import PersonTraces
from memory.policies import PolicyStore
from memory.runs import Runs
from memory.talks import END, Talks
from memory.token_ratios import TokenRatios
from memory.transcripts import Transcripts
from memory.usage import UsageStore

log = logging.getLogger(__name__)

DATABASE = "galata.db"
NO_MODELS = ModelChoice(())
PATIENCE_S = 20.0  # for running answers at a stop; a second signal ends it at once


async def run_app(
    config: Config, *, data: Path, runtime: Path, console: bool, source: Source | None = None
) -> int:
    """Run until a signal, or until the terminal's input ends and nothing else is switched on.

    `runtime`: the user's folder for lock files (`runtime_folder`). Returns the exit code: 0, or 1 when
    nothing could be started or every channel gave up. `source`: where the configuration is from, to
    take over what changes there.
    """
    try:
        with held(data), held_tokens(config, data, runtime):
            return await _run(config, data, source, console=console)
    except (FolderRefused, TokenInUse) as error:
        print(error, file=sys.stderr)  # noqa: T201 - to whoever started it
    except StoreError as error:
        print(f"galata: {error}", file=sys.stderr)  # noqa: T201
    return 1


async def _run(config: Config, data: Path, source: Source | None, *, console: bool) -> int:
    redactor = Redactor(config.secrets())
    setup(config.log.level, as_json=config.log.json_lines, redactor=redactor)
    signals = Signals()
    with signals.on_signals():
        return await serve(config, data, redactor, signals, console=console, source=source)


async def serve(
    config: Config,
    data: Path,
    redactor: Redactor,
    signals: Signals,
    *,
    console: bool,
    more_tools: tuple[Tool, ...] = (),
    source: Source | None = None,
) -> int:
    """Everything between the first and the last line of a run; ends when `signals` ask for it.

    `more_tools`: tools beside Galata's own. Returns the exit code. Raises `StoreError` when the
    database cannot be opened.
    """
    async with AsyncExitStack() as stack:
        await asyncio.to_thread(data.mkdir, mode=0o700, parents=True, exist_ok=True)
        database = await open_whole(data / DATABASE)
        stack.push_async_callback(database.close)
        await asyncio.to_thread(clear_leftovers, data / MEMORY)
        models = await stack.enter_async_context(chat_models(config, redactor))
        services = turn_services(config, database, data, redactor, more_tools, models)
        await services.usage.settle_all()
        await services.ratios.load()
        await services.chats.load()
        channels = build_channels(config, services.texts, services.chats)
        rules, stores = access_rules(config), AccessStores.of(database)
        access = Access(rules, services.chats, stores, channels)
        await access.load()
        for move in access.outdated:
            log.warning("chat %s has become %s: %s", move.old, move.new, advice(move))
        for channel in channels.values():
            stack.push_async_callback(channel.aclose)
        async with asyncio.TaskGroup() as group:
            bridge = AgentBridge(_settings(config), services, access, models, channels, group)
            began = stamp()
            if console:
                channels["console"] = signals.terminal = ConsoleChannel(bridge.idle)
            operation = Operation(config, database, data, services, channels, access.owners)
            operation.verbs[ERASE] = EraseVerb(bridge.eraser, services.storing)
            bridge.watch_providers(operation.guard.provider_changed)
            await bridge.resume()
            jobs = services.memory.jobs
            erase = Handler(bridge.chats.by_the_clock, LIMIT_S)
            end = Handler(bridge.talks.by_the_clock, END_S)
            upkeep = Upkeep(
                config,
                database,
                data,
                services,
                group,
                more_handlers={
                    ERASE_GONE: erase,
                    END: end,
                    **bridge.door.handlers,
                    ANNOUNCE: Handler(bridge.policy_changes.by_the_clock, ANNOUNCE_LIMIT_S),
                    **(jobs.handlers if jobs else {}),
                },
                more_plans={ERASE_GONE: NIGHTLY},
            )
            operation.verbs.update(bridge.door.verbs)
            bridge.policy_changes.bind(upkeep.scheduler)
            reloading = Reloading(
                config,
                source,
                services.policies,
                services.gate,
                models.prices,
                more_tools,
                bridge.policy_changes.end_paused,
                bridge.door.change,
            )
            operation.status.restart = lambda: reloading.restart
            operation.status.refused = lambda: reloading.refused
            helpers = [
                *_memory_jobs(jobs, upkeep, operation, group),
                *await operation.start(group),
                group.create_task(upkeep.run(), name="upkeep"),
                group.create_task(reloading.run(), name="files that change"),
                group.create_task(_warm(models.usual[0].provider), name="warm"),
                group.create_task(
                    offer_ownership(access, services.people, channels), name="owners"
                ),
            ]
            failed = await _listen_until_over(
                config, bridge, channels, operation.watch, signals, group
            )
            for task in helpers:
                task.cancel()
            await signals.hurried(bridge.close(PATIENCE_S))
            await bridge.close(0)
        terminal, by_itself = signals.terminal, not signals.asked.is_set()
        piped = terminal is not None and not terminal.typed
        if piped and by_itself and await _left_unanswered(services.inbox, began):
            failed = True
    return 1 if failed else 0


async def _left_unanswered(inbox: Inbox, began: str) -> bool:
    """Whether a piped conversation ended without answers to all of its questions, which is told."""
    waiting, failed = await inbox.unanswered(ConsoleChannel.name, began)
    if waiting:
        told = f"galata: {waiting} without an answer, taken up at the next start"
        print(told, file=sys.stderr)  # noqa: T201 - to whoever started it
    return bool(waiting or failed)


def _memory_jobs(
    jobs: MemoryJobs | None, upkeep: Upkeep, operation: Operation, group: asyncio.TaskGroup
) -> list[asyncio.Task[None]]:
    if jobs is None:
        return []
    jobs.bind(upkeep.scheduler)
    operation.verbs[TIDY] = jobs.tidy_all
    return [group.create_task(jobs.run(), name="memory jobs")]


def _settings(config: Config) -> BridgeSettings:
    return BridgeSettings(
        timezone=config.zone,
        queue_length=config.limits.queue_length,
        usage_names=config.installation.usage_detail == "names",
    )


async def _listen_until_over(
    config: Config,
    bridge: AgentBridge,
    channels: Mapping[str, Channel],
    watch: ChannelWatch,
    signals: Signals,
    group: asyncio.TaskGroup,
) -> bool:
    """Listen on all channels until a signal, or until none listens any more; whether all gave up."""
    listeners = [
        group.create_task(_listen(channel, bridge, watch, config), name=f"channel {name}")
        for name, channel in channels.items()
    ]
    log.info("ready: %s", ", ".join(channels))
    signalled = asyncio.ensure_future(signals.asked.wait())
    try:
        pending: set[asyncio.Task[bool]] = set(listeners)
        while pending and not signals.asked.is_set():
            await asyncio.wait({*pending, signalled}, return_when=asyncio.FIRST_COMPLETED)
            pending = {task for task in pending if not task.done()}
        return not pending and not any(task.result() for task in listeners)
    finally:
        signalled.cancel()
        for task in listeners:
            task.cancel()
        await asyncio.gather(*listeners, return_exceptions=True)


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


async def _listen(
    channel: Channel, bridge: AgentBridge, watch: ChannelWatch, config: Config
) -> bool:
    """Whether the channel ended by itself (the terminal); false when it gave up."""

    def failing(reason: str) -> None:
        watch.failing(channel.name, config.as_given(reason))

    try:
        await supervise(channel, bridge.receive, failing=failing)
    except ChannelFailed as error:
        reason = config.as_given(str(error))
        watch.gave_up(channel.name, reason)
        log.error("channel %s stopped: %s", channel.name, reason)  # shown at every level
        return False
    watch.ended(channel.name)
    return True


async def _warm(provider: Provider) -> None:
    """Import the SDK beside everything else; a failure shows again at the first answer.

    What was imported stays for good: without it the collector's largest pauses, in which nothing is
    answered, fall from 200 ms to 50 (254,000 objects to 19,000).
    """
    try:
        await provider.warm()
    except Exception:
        log.exception("the provider could not be warmed up")
    gc.freeze()
    gc.enable()  # off since the process began (`bridge.cli.run`)
