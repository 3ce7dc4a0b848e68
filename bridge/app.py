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
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from agent.provider import Provider
from agent.tools import Tool
from bridge.access import Access
from bridge.access.stores import AccessStores
from bridge.agent_bridge import AgentBridge
from bridge.chats.erase_verb import ERASE, EraseVerb
from bridge.chats.keeper import ERASE_GONE, NIGHTLY, advice
from bridge.chats.private_talks import LIMIT_S as END_S
from bridge.config import Config
from bridge.log import Redactor, setup
from bridge.models.chat_models import ModelChoice, chat_models
from bridge.operation.data_folder import DATABASE, FolderRefused, held
from bridge.operation.owners import offer_ownership
from bridge.operation.policy_changes import ANNOUNCE, ANNOUNCE_LIMIT_S
from bridge.operation.running import Operation
from bridge.operation.signals import PATIENCE_S, Signals
from bridge.operation.token_lock import TokenInUse, held_tokens
from bridge.operation.upkeep import LIMIT_S, Upkeep, clear_damaged, open_whole, patiently
from bridge.operation.watch import ChannelWatch
from bridge.parts import BridgeSettings
from bridge.registry import access_rules, build_channels
from bridge.reloading import Reloading, Source
from bridge.remembering.jobs import TIDY, MemoryJobs
from bridge.runs.turn_plan import TurnServices
from bridge.scheduler import Handler
from bridge.services import turn_services
from channels.base import Channel
from channels.console import ConsoleChannel
from channels.errors import ChannelFailed
from channels.supervise import supervise
from memory.chats.talks import END
from memory.clock import stamp
from memory.database import Database
from memory.errors import StoreError
from memory.inbox import Inbox
from memory.markdown.folders import MEMORY
from memory.markdown.leftovers import clear_leftovers

log = logging.getLogger(__name__)


async def run_app(
    config: Config, *, data: Path, runtime: Path, console: bool, source: Source | None = None
) -> int:
    """Run until a signal, or until the terminal's input ends and nothing else is switched on.

    `runtime`: the user's folder for lock files (`runtime_folder`). Returns the exit code: 0, or 1 when
    nothing could be started, every channel gave up, or the database is damaged. `source`: where the
    configuration is from, to take over what changes there.
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


@dataclass(frozen=True, slots=True)
class _Opened:
    """What is there before anything runs; `stack` closes it."""

    data: Path
    database: Database
    models: ModelChoice
    services: TurnServices
    channels: dict[str, Channel]
    access: Access


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
        opened = await _open(stack, config, data, redactor, more_tools, signals.asked)
        services, channels = opened.services, opened.channels
        async with asyncio.TaskGroup() as group:
            bridge = AgentBridge(
                _settings(config), services, opened.access, opened.models, channels, group
            )
            began = stamp()
            if console:
                channels["console"] = signals.terminal = ConsoleChannel(bridge.idle)
            operation = Operation(
                config, opened.database, data, services, channels, opened.access.owners
            )
            bridge.watch_providers(operation.guard.provider_changed)
            try:
                await patiently(bridge.resume, signals.asked)
            except StoreError as error:  # nothing has begun
                log.error("%s", error)
                return 1
            bridge.tell_of_lost_questions(data / DATABASE)
            upkeep = _upkeep(config, opened, bridge, operation, group)
            reloading = _reloading(config, source, more_tools, opened, bridge, operation)
            helpers = [
                *_memory_jobs(services.memory.jobs, upkeep, operation, group),
                *await operation.start(group),
                group.create_task(upkeep.run(), name="upkeep"),
                group.create_task(operation.ending_when_damaged(signals.asked), name="damage"),
                group.create_task(reloading.run(), name="files that change"),
                group.create_task(_warm(opened.models.usual[0].provider), name="warm"),
                group.create_task(
                    offer_ownership(opened.access, services.people, channels), name="owners"
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
    return 1 if failed or opened.database.damaged.is_set() else 0


async def _open(
    stack: AsyncExitStack,
    config: Config,
    data: Path,
    redactor: Redactor,
    more_tools: tuple[Tool, ...],
    asked_to_stop: asyncio.Event,
) -> _Opened:
    await asyncio.to_thread(data.mkdir, mode=0o700, parents=True, exist_ok=True)
    database = await patiently(lambda: open_whole(data / DATABASE), asked_to_stop)
    stack.push_async_callback(clear_damaged, database, data / DATABASE)
    stack.push_async_callback(database.close)
    await asyncio.to_thread(clear_leftovers, data / MEMORY)
    models = await stack.enter_async_context(chat_models(config, redactor))
    services = turn_services(config, database, data, redactor, more_tools, models)
    await patiently(services.usage.settle_all, asked_to_stop)
    await services.ratios.load()
    await services.chats.load()
    channels = build_channels(config, services.texts, database, services.chats, services.policies)
    access = Access(access_rules(config), services.chats, AccessStores.of(database), channels)
    await access.load()
    for move in access.outdated:
        log.warning("chat %s has become %s: %s", move.old, move.new, advice(move))
    for channel in channels.values():
        stack.push_async_callback(channel.aclose)
    return _Opened(data, database, models, services, channels, access)


def _upkeep(
    config: Config,
    opened: _Opened,
    bridge: AgentBridge,
    operation: Operation,
    group: asyncio.TaskGroup,
) -> Upkeep:
    """The scheduler with all that the bridge's parts do by the clock."""
    services = opened.services
    jobs = services.memory.jobs
    upkeep = Upkeep(
        config,
        opened.database,
        opened.data,
        services,
        group,
        more_handlers={
            ERASE_GONE: Handler(
                partial(bridge.chats.by_the_clock, heard=operation.watch.has_heard), LIMIT_S
            ),
            END: Handler(bridge.talks.by_the_clock, END_S),
            ANNOUNCE: Handler(bridge.policy_changes.by_the_clock, ANNOUNCE_LIMIT_S),
            **bridge.door.handlers,
            **(jobs.handlers if jobs else {}),
        },
        more_plans={ERASE_GONE: NIGHTLY},
    )
    bridge.policy_changes.bind(upkeep.scheduler)
    operation.verbs[ERASE] = EraseVerb(bridge.eraser, services.storing)
    operation.verbs.update(bridge.door.verbs)
    return upkeep


def _reloading(
    config: Config,
    source: Source | None,
    more_tools: tuple[Tool, ...],
    opened: _Opened,
    bridge: AgentBridge,
    operation: Operation,
) -> Reloading:
    """What takes over a changed configuration, and tells what it could not."""
    reloading = Reloading(
        config,
        source,
        opened.services.policies,
        opened.services.gate,
        opened.models.prices,
        more_tools,
        bridge.policy_changes.end_paused,
        bridge.door.change,
    )
    operation.status.restart = lambda: reloading.restart
    operation.status.refused = lambda: reloading.refused
    return reloading


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
