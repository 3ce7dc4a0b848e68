"""What an operator sees of a running bot: control socket, status, health, and alerts to owners."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agent.messages import JsonObject
from bridge.config import Config
from bridge.control import Control, ControlRefused, Verb
from bridge.inbound import load
from bridge.limits.files import located
from bridge.operation.alerts import Alerts, Cause, Owner, Reach
from bridge.operation.guard import Guard, free_bytes
from bridge.operation.status import LiveStatus
from bridge.operation.upkeep import BACKUP
from bridge.operation.watch import ChannelWatch
from bridge.runs.turn_plan import TurnServices
from channels.base import Channel
from memory.database import Database
from memory.errors import StoreError
from memory.operators.alerts import AlertStore
from memory.operators.overview import Overview
from memory.operators.trial import try_to_write
from memory.transcripts import READING, History

log = logging.getLogger(__name__)

TELL_S = 20.0  # for the owners to be told of damage, before the end


class Operation:
    """Built by `bridge.app`; `start` adds its tasks to the app's group."""

    def __init__(
        self,
        config: Config,
        database: Database,
        data: Path,
        services: TurnServices,
        channels: Mapping[str, Channel],
        owners: Callable[[], set[Owner]],
    ) -> None:
        """`owners()`: everybody who owns the bot now."""
        self._config = config
        self._database = database
        self._data = data
        self._services = services
        self._overview = Overview(database)
        self.watch = ChannelWatch(channels)
        files = services.policies.files
        self.status = LiveStatus(self._overview, self.watch)
        self.status.faulty_limits = lambda: [
            line for path, fault in files.faulty() for line in located(path, (fault,))
        ]
        reach = Reach(owners, self._language, channels)
        self.alerts = Alerts(AlertStore(database), reach, services.texts)
        self.guard = Guard(
            self.watch,
            self.alerts,
            config.zone,
            partial(free_bytes, data),
            partial(self._overview.last_run, BACKUP),
            files.faulty,
            files.read_faulty,
        )
        # What commands of `galata` may ask: a line each.
        self.verbs: dict[str, Verb] = {"status": self._tell_status, READING: self._note_reading}

    async def start(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """The tasks, which go on until they are cancelled. Raises `StoreError`."""
        await self.alerts.load()
        work: dict[str, Coroutine[Any, Any, None]] = {
            "control": Control(self._data, self.verbs).run(),
            "alerts": self.alerts.run(),
            "guard": self.guard.run(),
        }
        if self._config.health.port is not None:
            work["health"] = self._serve_health(self._config.health.port)
        return [group.create_task(_apart(name, one), name=name) for name, one in work.items()]

    async def ending_when_damaged(self, stop: asyncio.Event) -> None:
        """Damage of the database is told to the owners, and then `stop` is set: nothing can be stored
        until another start has begun a new one."""
        await self._database.damaged.wait()
        log.error("the database is damaged: galata stops, and is to be started again")
        self.alerts.raise_(Cause("database"), "alert_database")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TELL_S):
                await self.alerts.idle()
        stop.set()

    async def _tell_status(self, _: JsonObject) -> JsonObject:
        try:
            return (await self.status.get()).to_json()
        except StoreError as error:
            raise ControlRefused(f"the running galata cannot read its database: {error}") from error

    async def _note_reading(self, arguments: JsonObject) -> None:
        """`galata history` shows a conversation when this is stored."""
        actor, session = str(arguments["actor"]), str(arguments["session"])
        try:
            await History(self._database).record_reading(actor, session)
        except StoreError as error:
            raise ControlRefused(f"the running galata cannot note who reads: {error}") from error

    async def _serve_health(self, port: int) -> None:
        from bridge.operation.health import HealthServer  # its libraries take a quarter of a second

        month_cost = self._services.gate.spent_microusd
        store = partial(try_to_write, self._database)
        damaged = self._database.damaged.is_set
        server = HealthServer(self.watch, self.status, store, damaged, month_cost, self._data)
        await server.run(port)

    async def _language(self, owner: Owner) -> str | None:
        """The language of the configuration, else that of the owner's client."""
        if self._config.language != "auto":
            return self._config.language
        try:
            body = await self._overview.last_body(*owner)
            return None if body is None else load(body).sender.language
        except (StoreError, ValidationError):  # it cannot be read, or another version wrote it
            return None


async def _apart(name: str, work: Coroutine[Any, Any, None]) -> None:
    """The bot goes on without what fails here."""
    try:
        await work
    except Exception:
        log.exception("%s has ended", name)
