"""What an operator sees of a running bot: its control socket and its status."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from agent.messages import JsonObject
from bridge.control import Control, Verb
from bridge.status import LiveStatus
from bridge.watch import ChannelWatch
from channels.base import Channel
from memory.database import Database
from memory.overview import Overview


class Operation:
    """Built by `bridge.app`; `start` adds its tasks to the app's group."""

    def __init__(self, database: Database, data: Path, channels: Mapping[str, Channel]) -> None:
        self.watch = ChannelWatch(channels)
        self._status = LiveStatus(Overview(database), self.watch)
        # What commands of `galata` may ask: a line each.
        self.verbs: dict[str, Verb] = {"status": self._tell_status}
        self._control = Control(data, self.verbs)

    def start(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """The tasks, which go on until they are cancelled."""
        return [group.create_task(self._control.run(), name="control")]

    async def _tell_status(self, _: JsonObject) -> JsonObject:
        return (await self._status.get()).to_json()
