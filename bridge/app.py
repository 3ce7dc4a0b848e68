"""The composition root: builds every part once, runs them in one task group, and ends them in order.

Stop listening -> start no run -> let runs finish, then interrupt them -> deliver -> close. Messages
that were not answered stay in the inbox and are taken up at the next start.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import AsyncGenerator, Coroutine, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from agent.breaker import RunLimits
from agent.estimate import Estimator, family_of
from agent.model import ChatModel
from agent.provider import Provider
from agent.providers import build_provider
from agent.tools import Tool
from bridge.access import Access
from bridge.agent_bridge import AgentBridge, BridgeSettings
from bridge.config import Config
from bridge.data_folder import FolderRefused, held
from bridge.errors import ErrorReporter
from bridge.gate import MICRO, MonthlyGate
from bridge.log import Redactor, setup
from bridge.owners import offer_ownership
from bridge.ratios import Ratios
from bridge.registry import access_rules, build_channels
from bridge.settings import Limits
from bridge.texts import Texts
from bridge.turn_plan import TurnServices, TurnSettings
from channels.base import Channel
from channels.console import ConsoleChannel
from channels.errors import ChannelFailed
from channels.supervise import supervise
from memory.conversations import Conversations
from memory.daily import DailyFiles
from memory.database import Database
from memory.errorlog import ErrorLog
from memory.errors import StoreError
from memory.inbox import Inbox
from memory.people import People
from memory.token_ratios import TokenRatios
from memory.transcripts import Transcripts
from memory.usage import UsageStore

log = logging.getLogger(__name__)

DATABASE = "galata.db"
PATIENCE_S = 20.0  # for running answers at a stop; a second signal ends it at once


async def run_app(config: Config, *, data: Path, console: bool) -> int:
    """Run until a signal, or until the terminal's input ends and nothing else is switched on.

    Returns the exit code: 0, or 1 when nothing could be started or every channel gave up.
    """
    try:
        with held(data):
            return await _run(config, data, console=console)
    except FolderRefused as error:
        print(error, file=sys.stderr)  # noqa: T201 - to whoever started it
    except StoreError as error:
        print(f"galata: {error}", file=sys.stderr)  # noqa: T201
    return 1


async def _run(config: Config, data: Path, *, console: bool) -> int:
    redactor = Redactor(config.secrets())
    setup(config.log.level, as_json=config.log.json_lines, redactor=redactor)
    stopping = Stopping()
    with stopping.on_signals():
        return await serve(config, data, redactor, stopping, console=console)


async def serve(
    config: Config,
    data: Path,
    redactor: Redactor,
    stopping: Stopping,
    *,
    console: bool,
    more_tools: tuple[Tool, ...] = (),
) -> int:
    """Everything between the first and the last line of a run; ends when `stopping` asks for it.

    `more_tools`: tools beside Galata's own. Returns the exit code. Raises `StoreError` when the
    database cannot be opened.
    """
    async with AsyncExitStack() as stack:
        await asyncio.to_thread(data.mkdir, mode=0o700, parents=True, exist_ok=True)
        database = await Database.open(data / DATABASE)
        stack.push_async_callback(database.close)
        models = await stack.enter_async_context(chat_models(config, redactor))
        services = turn_services(config, database, data, redactor, more_tools)
        await services.ratios.load()
        access = Access(access_rules(config), services.people)
        await access.load()
        channels = build_channels(config, services.texts)
        for channel in channels.values():
            stack.push_async_callback(channel.aclose)
        async with asyncio.TaskGroup() as group:
            bridge = AgentBridge(_settings(config), services, access, models, channels, group)
            if console:
                terminal = ConsoleChannel(bridge.idle)
                channels["console"] = stopping.terminal = terminal
            await bridge.resume()
            helpers = [
                group.create_task(_warm(models[0].provider), name="warm"),
                group.create_task(
                    offer_ownership(access, services.people, channels), name="owners"
                ),
            ]
            failed = await _listen_until_over(bridge, channels, stopping, group)
            for task in helpers:
                task.cancel()
            await stopping.hurried(bridge.close(PATIENCE_S))
            await bridge.close(0)
    return 1 if failed else 0


def _settings(config: Config) -> BridgeSettings:
    return BridgeSettings(
        scope=config.conversation,
        timezone=config.zone,
        language=None if config.language == "auto" else config.language,
        queue_length=config.limits.queue_length,
        who_can_stop=config.who_can_stop,
    )


async def _listen_until_over(
    bridge: AgentBridge,
    channels: Mapping[str, Channel],
    stopping: Stopping,
    group: asyncio.TaskGroup,
) -> bool:
    """Listen on all channels until a signal, or until none listens any more; whether all gave up."""
    listeners = [
        group.create_task(_listen(channel, bridge), name=f"channel {name}")
        for name, channel in channels.items()
    ]
    log.info("ready: %s", ", ".join(channels))
    signalled = asyncio.ensure_future(stopping.asked.wait())
    try:
        pending: set[asyncio.Task[bool]] = set(listeners)
        while pending and not stopping.asked.is_set():
            await asyncio.wait({*pending, signalled}, return_when=asyncio.FIRST_COMPLETED)
            pending = {task for task in pending if not task.done()}
        return not pending and not any(task.result() for task in listeners)
    finally:
        signalled.cancel()
        for task in listeners:
            task.cancel()
        await asyncio.gather(*listeners, return_exceptions=True)


@asynccontextmanager
async def chat_models(config: Config, redactor: Redactor) -> AsyncGenerator[tuple[ChatModel, ...]]:
    """The configured model and its fallbacks; without any provider the embedded one, started here."""
    async with AsyncExitStack() as stack:
        if config.local_model:
            from bridge.local_model import local_chat_model

            yield (await stack.enter_async_context(local_chat_model(redactor)),)
            return
        names = tuple(dict.fromkeys((config.model, *config.fallback_models)))
        providers: dict[str, Provider] = {}
        for name in {config.models[model].provider: None for model in names}:
            providers[name] = build_provider(name, config.providers[name])
            stack.push_async_callback(providers[name].aclose)
        yield tuple(_chat_model(config, name, providers) for name in names)


def _chat_model(config: Config, name: str, providers: Mapping[str, Provider]) -> ChatModel:
    entry = config.models[name]
    kind = config.providers[entry.provider].kind
    budget = config.context.budget_tokens
    if budget is not None and budget > entry.window:
        log.warning(
            "context.budget_tokens (%d) is larger than the window of %s (%d), which counts",
            budget,
            name,
            entry.window,
        )
    return ChatModel(
        name=name,
        id=entry.id,
        provider=providers[entry.provider],
        max_output_tokens=entry.max_output_tokens,
        traits=entry.traits,
        context_tokens=entry.window,
        sizes=Estimator(family_of(entry.id, kind)),
        price=entry.price.cost_microusd if entry.price else None,
    )


def turn_services(
    config: Config,
    database: Database,
    data: Path,
    redactor: Redactor,
    more_tools: tuple[Tool, ...] = (),
) -> TurnServices:
    """The stores and helpers that every turn uses."""
    usage = UsageStore(database)
    return TurnServices(
        conversations=Conversations(database),
        inbox=Inbox(database),
        usage=usage,
        people=People(database),
        daily=DailyFiles(data / "memory"),
        transcripts=Transcripts(database, data / "transcripts"),
        ratios=Ratios(TokenRatios(database)),
        errors=ErrorReporter(ErrorLog(database), redactor),
        texts=Texts.load(),
        gate=MonthlyGate(usage, limit_usd=config.limits.cost_per_month_usd, zone=config.zone),
        settings=TurnSettings(
            instructions=config.instructions,
            limits=run_limits(config.limits),
            max_turns=config.context.max_turns,
            budget_tokens=config.context.budget_tokens,
        ),
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


async def _listen(channel: Channel, bridge: AgentBridge) -> bool:
    """Whether the channel ended by itself (the terminal); false when it gave up."""
    try:
        await supervise(channel, bridge.receive)
    except ChannelFailed as error:
        print(f"galata: {error}", file=sys.stderr)  # noqa: T201 - to whoever started it
        log.error("channel %s stopped: %s", channel.name, error)
        return False
    return True


async def _warm(provider: Provider) -> None:
    """Import the SDK beside everything else; a failure shows again at the first answer."""
    try:
        await provider.warm()
    except Exception:
        log.exception("the provider could not be warmed up")


class Stopping:
    """Signals: the first asks to stop (in the terminal Ctrl-C first stops the answer), the second
    hurries."""

    def __init__(self) -> None:
        self.terminal: ConsoleChannel | None = None
        self.asked = asyncio.Event()
        self._hurry = asyncio.Event()
        self._interrupting: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def on_signals(self) -> Generator[None]:
        """Handle SIGINT and SIGTERM while inside."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._stop)
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGTERM)
            loop.remove_signal_handler(signal.SIGINT)

    async def hurried(self, work: Coroutine[Any, Any, None]) -> None:
        """Await `work`, but no longer than until the second signal."""
        task = asyncio.ensure_future(work)
        hurry = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait({task, hurry}, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        task.cancel()
        await asyncio.gather(task, hurry, return_exceptions=True)

    def _stop(self) -> None:
        if self.asked.is_set():
            self._hurry.set()
        self.asked.set()

    def _interrupt(self) -> None:
        if self.terminal is None or self.asked.is_set():
            self._stop()
        elif self._interrupting is None or self._interrupting.done():
            self._interrupting = asyncio.ensure_future(self._interrupt_answer(self.terminal))

    async def _interrupt_answer(self, terminal: ConsoleChannel) -> None:
        if not await terminal.interrupt():
            self._stop()
