"""What `galata status` tells: live from the process that runs, else from what is stored."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib import metadata

from agent.messages import JsonObject
from bridge.operation.watch import ChannelState, ChannelWatch
from memory.clock import stamp
from memory.operators.overview import ChatQueue, Overview

DISTRIBUTION = "galata"
MOST_ERRORS = 5  # ids that are named


@dataclass(frozen=True, slots=True)
class ChannelStatus:
    """A channel. `receiving` is None where no process runs. Times are ISO 8601 in UTC."""

    name: str
    receiving: bool | None
    since: str | None
    reason: str | None
    gave_up: bool
    last_message: str | None


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """The errors of the last hour: how many, and the newest ids."""

    count: int
    newest: Sequence[str]


@dataclass(frozen=True, slots=True)
class Status:
    """Everything. `pid` and `started` are None where no process runs. `restart`: keys of the
    configuration that have changed and need one. `refused`: the faults for which the configuration as
    it is now is not taken over; `faulty_limits`: those of chats' files of limits, as far as they have
    been read."""

    version: str
    pid: int | None
    started: str | None
    channels: Sequence[ChannelStatus]
    queues: Sequence[ChatQueue]
    errors: ErrorCount
    restart: Sequence[str] = ()
    refused: Sequence[str] = ()
    faulty_limits: Sequence[str] = ()

    def to_json(self) -> JsonObject:
        """As `galata status --json` prints it."""
        return asdict(self)


class LiveStatus:
    """The status of this process."""

    def __init__(self, overview: Overview, watch: ChannelWatch) -> None:
        self._overview = overview
        self._watch = watch
        self.started = datetime.now(UTC)
        self.restart: Callable[[], Sequence[str]] = tuple
        self.refused: Callable[[], Sequence[str]] = tuple
        self.faulty_limits: Callable[[], Sequence[str]] = tuple

    async def get(self) -> Status:
        """The status now. Raises `StoreError`."""
        channels = [await _live(self._overview, state) for state in self._watch.look()]
        status = await _status(self._overview, channels, os.getpid(), stamp(self.started))
        return replace(
            status,
            restart=tuple(self.restart()),
            refused=tuple(self.refused()),
            faulty_limits=tuple(self.faulty_limits()),
        )


async def stored_status(overview: Overview) -> Status:
    """The status of a data folder on which nothing runs. Raises `StoreError`."""
    channels = [
        ChannelStatus(name, None, None, None, False, await overview.last_message(name))
        for name in await overview.channels()
    ]
    return await _status(overview, channels, None, None)


async def _live(overview: Overview, state: ChannelState) -> ChannelStatus:
    return ChannelStatus(
        state.name,
        state.receiving,
        stamp(state.since),
        state.reason,
        state.gave_up,
        await overview.last_message(state.name),
    )


async def _status(
    overview: Overview, channels: Sequence[ChannelStatus], pid: int | None, started: str | None
) -> Status:
    errors = await overview.errors_since(datetime.now(UTC) - timedelta(hours=1))
    return Status(
        metadata.version(DISTRIBUTION),
        pid,
        started,
        channels,
        await overview.queues(),
        ErrorCount(len(errors), errors[:MOST_ERRORS]),
    )
