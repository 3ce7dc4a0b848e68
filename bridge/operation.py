"""What an operator sees of a running bot: its control socket, its status and its health."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from agent.messages import JsonObject
from bridge.config import Config
from bridge.control import Control, Verb
from bridge.status import LiveStatus
from bridge.turn_plan import TurnServices
from bridge.watch import ChannelWatch
from channels.base import Channel
from memory.database import Database
from memory.overview import Overview


class Operation:
    """Built by `bridge.app`; `start` adds its tasks to the app's group."""

    def __init__(
        self,
        config: Config,
        database: Database,
        data: Path,
        services: TurnServices,
        channels: Mapping[str, Channel],
    ) -> None:
        self._database = database
        self._data = data
        self._services = services
        self._health_port = config.health.port
        self.watch = ChannelWatch(channels)
        self._status = LiveStatus(Overview(database), self.watch)
        # What commands of `galata` may ask: a line each.
        self.verbs: dict[str, Verb] = {"status": self._tell_status}

    def start(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """The tasks, which go on until they are cancelled."""
        tasks = [group.create_task(Control(self._data, self.verbs).run(), name="control")]
        if self._health_port is not None:
            tasks.append(group.create_task(self._serve_health(self._health_port), name="health"))
        return tasks

    async def _tell_status(self, _: JsonObject) -> JsonObject:
        return (await self._status.get()).to_json()

    async def _serve_health(self, port: int) -> None:
        from bridge.health import HealthServer  # its libraries take a quarter of a second

        month_cost = self._services.gate.spent_microusd
        server = HealthServer(self.watch, self._status, self._store, month_cost, self._data)
        await server.run(port)

    async def _store(self) -> None:
        """Return when the database could be written. Raises `StoreError`."""

        def op(_: sqlite3.Connection) -> None:
            """Its transaction is what is tried."""

        await self._database.write(op)
