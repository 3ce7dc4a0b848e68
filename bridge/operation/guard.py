"""Looks every few seconds whether something is wrong that owners have to know."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Final

from agent.errors import RefusalKind
from bridge.operation.alerts import Alerts, Cause
from bridge.operation.watch import ChannelWatch
from bridge.texts import Lines, Wording, wording
from bridge.yaml_source import Fault
from memory.errors import StoreError
from memory.operators.overview import LastRun

log = logging.getLogger(__name__)

LOOK_S = 5.0
DOWN_AFTER: Final = timedelta(minutes=1)  # connections break and come back
LOW_BYTES: Final = 500_000_000
ROOM_BYTES: Final = 600_000_000  # more than at the alert, so that it does not come and go
_MEGA: Final = 1_000_000
_REFUSALS: Final = {
    RefusalKind.AUTH: "alert_provider_auth",
    RefusalKind.QUOTA: "alert_provider_quota",
}
_ENDINGS: Final = frozenset({"done", "failed", "too_long"})  # not: interrupted by a stop


def free_bytes(data: Path) -> int:
    """What is free for the data folder. Raises `OSError`."""
    return shutil.disk_usage(data).free


MOST_FAULTS = 5  # of files of limits, that are told


class Guard:
    """`zone`: in which times are told. `faults()`: those of files of limits that were read;
    `read_faulty()` reads all that have any."""

    def __init__(
        self,
        watch: ChannelWatch,
        alerts: Alerts,
        zone: tzinfo,
        free: Callable[[], int],
        last_backup: Callable[[], Awaitable[LastRun | None]],
        faults: Callable[[], list[tuple[Path, Fault]]],
        read_faulty: Callable[[], Awaitable[None]],
    ) -> None:
        self._watch = watch
        self._alerts = alerts
        self._zone = zone
        self._free = free
        self._last_backup = last_backup
        self._faults = faults
        self._read_faulty = read_faulty
        self._limits_known = False
        self._failed_at = ""  # the backup that was told of last

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            self.look_at_channels()
            try:
                self.look_at_disk(await asyncio.to_thread(self._free))
            except OSError as error:
                log.warning("what is free on the disk cannot be known: %s", error.strerror)
            try:
                self.look_at_backup(await self._last_backup())
            except StoreError as error:
                log.warning("how the last backup ended cannot be known: %s", error)
            try:
                await self.look_at_limits()
            except StoreError as error:
                log.warning("what holds instead of files of limits cannot be known: %s", error)
            await asyncio.sleep(LOOK_S)

    def look_at_channels(self) -> None:
        """A channel that does not receive for a minute, or gave up."""
        for state in self._watch.look():
            cause = Cause("channel", state.name)
            if state.receiving:
                self._alerts.clear(cause, name=state.name)
            elif state.gave_up or datetime.now(UTC) - state.since >= DOWN_AFTER:
                self._alerts.raise_(
                    cause,
                    "alert_channel_gave_up" if state.gave_up else "alert_channel",
                    name=state.name,
                    since=f"{state.since.astimezone(self._zone):%Y-%m-%d %H:%M}",
                    reason=state.reason,
                )

    def look_at_disk(self, free: int) -> None:
        """Under 500 MB."""
        cause, megabytes = Cause("disk"), free // _MEGA
        if free < LOW_BYTES:
            self._alerts.raise_(cause, "alert_disk", free=megabytes)
        elif free >= ROOM_BYTES:
            self._alerts.clear(cause, free=megabytes)

    async def look_at_limits(self) -> None:
        """Files of limits that changed nothing because of faults. What was told before a start is over
        only if no file has any, read by now or not. Raises `StoreError`."""
        cause = Cause("limits")
        if not self._limits_known and self._alerts.is_open(cause):
            await self._read_faulty()
        self._limits_known = True
        faults = self._faults()
        if faults:
            more = [f"… (+{len(faults) - MOST_FAULTS})"] if len(faults) > MOST_FAULTS else []
            lines = Lines((*(_line(*one) for one in faults[:MOST_FAULTS]), *more))
            self._alerts.raise_(cause, "alert_limits", faults=lines)
        else:
            self._alerts.clear(cause)

    def look_at_backup(self, last: LastRun | None) -> None:
        """One that failed, once each."""
        cause = Cause("backup")
        if last is None or last.outcome not in _ENDINGS:
            return
        if last.outcome == "done":
            self._alerts.clear(cause)
        elif last.at != self._failed_at:
            self._failed_at = last.at
            self._alerts.raise_(cause, "alert_backup", reason=last.detail or last.outcome)

    def provider_changed(self, provider: str, refusal: RefusalKind | None) -> None:
        """A provider's breaker opened for this refusal; None: it answers."""
        cause = Cause("provider", provider)
        if refusal is None:
            self._alerts.clear(cause, name=provider)
        elif refusal in _REFUSALS:
            self._alerts.raise_(cause, _REFUSALS[refusal], name=provider)


def _line(path: Path, fault: Fault) -> Wording:
    """Where a file has a fault, and which; in the language of whoever reads it."""
    where = f"{path}:{fault.line}:{fault.column}"
    return wording(
        "alert_limits_line", where=where, key=fault.key, told=fault.wording or fault.message
    )
