"""What owners are told in private when something is wrong, and when it is over.

At most one message an hour for each cause, and one when it is over. While the channel at fault is
down, owners on the other channels are told; if none is reached, it is tried there all the same. An
alert that reached nobody is tried again. What was told is stored, so that a restart repeats nothing;
where the disk is full it is only remembered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from bridge.texts import Texts
from channels.base import Address, Channel, OutboundReply
from channels.errors import ChannelError, Uncertain
from memory.errors import StoreError
from memory.operators.alerts import AlertStore, StoredAlert

log = logging.getLogger(__name__)

EVERY: Final = timedelta(hours=1)
AGAIN: Final = timedelta(minutes=1)  # after an alert that reached nobody
SEND_S = 30.0  # for one message to one owner

Owner = tuple[str, str]  # channel, person


@dataclass(frozen=True, slots=True)
class Cause:
    """What is wrong. `name`: of the channel or the provider. The text that tells that it is over is
    `alert_{kind}_over`; a damaged database is never over."""

    kind: Literal["channel", "provider", "disk", "backup", "limits", "database"]
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class _Note:
    cause: Cause
    over: bool
    key: str
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Reach:
    """Whom to tell, and in what language: `owners` lists all of them, `language` gives one's own."""

    owners: Callable[[], set[Owner]]
    language: Callable[[Owner], Awaitable[str | None]]
    channels: Mapping[str, Channel]


@dataclass(slots=True)
class _Known:
    """`queued`: alerts that `run` has not dealt with; `quiet`: from when on and for how long no further
    one is queued."""

    stored: StoredAlert
    queued: int = 0
    quiet: tuple[datetime, timedelta] | None = None


class Alerts:
    """`load` it, let `run` go on; `raise_` and `clear` may be called as often as one likes."""

    def __init__(
        self,
        store: AlertStore,
        reach: Reach,
        texts: Texts,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._reach = reach
        self._texts = texts
        self._now = now
        self._known: dict[str, _Known] = {}
        self._notes: asyncio.Queue[_Note] = asyncio.Queue()

    async def load(self) -> None:
        """Remember what was told before. Raises `StoreError`."""
        for alert in await self._store.load():
            quiet = None if alert.told_at is None else (alert.told_at, EVERY)
            self._known[alert.cause] = _Known(alert, quiet=quiet)

    def raise_(self, cause: Cause, key: str, /, **values: object) -> None:
        """Something is wrong: the text `key` tells what. Never blocks."""
        known = self._of(cause)
        now = self._now()
        if known.quiet is not None and _within(now, *known.quiet):
            return
        known.quiet = now, AGAIN
        known.queued += 1
        self._notes.put_nowait(_Note(cause, False, key, values))

    def clear(self, cause: Cause, /, **values: object) -> None:
        """It is over, or never was. Never blocks."""
        known = self._known.get(str(cause))
        if known is None or not (known.queued or known.stored.open):
            return
        self._notes.put_nowait(_Note(cause, True, f"alert_{cause.kind}_over", values))

    def is_open(self, cause: Cause) -> bool:
        """Whether it was told, by this process or one before, and not that it is over."""
        known = self._known.get(str(cause))
        return known is not None and known.stored.open

    async def run(self) -> None:
        """Tell, one after the other, until cancelled."""
        while True:
            note = await self._notes.get()
            try:
                await self._deal_with(note)
            except Exception:
                log.exception("an alert (%s) could not be told", note.cause)
            finally:
                self._notes.task_done()

    async def idle(self) -> None:
        """Return when nothing is left to be told."""
        await self._notes.join()

    async def _deal_with(self, note: _Note) -> None:
        known = self._of(note.cause)
        if note.over:
            await self._end(note, known)
        else:
            known.queued -= 1
            await self._begin(note, known)

    async def _begin(self, note: _Note, known: _Known) -> None:
        if self._recent(known):
            return
        told_at = known.stored.told_at
        if await self._tell(note):
            told_at = self._now()
            known.quiet = told_at, EVERY
        await self._keep(known, StoredAlert(str(note.cause), told_at, open=True))

    async def _end(self, note: _Note, known: _Known) -> None:
        if not known.stored.open:
            return
        await self._tell(note)
        # It counts where the alert itself reached nobody, lest what comes and goes be told each time.
        told_at = known.stored.told_at if self._recent(known) else self._now()
        await self._keep(known, StoredAlert(str(note.cause), told_at, open=False))

    def _recent(self, known: _Known) -> bool:
        """Whether the cause was told within the hour."""
        told_at = known.stored.told_at
        return told_at is not None and _within(self._now(), told_at, EVERY)

    async def _keep(self, known: _Known, alert: StoredAlert) -> None:
        known.stored = alert
        try:
            await self._store.save(alert)
        except StoreError as error:
            log.warning("an alert is told, but not stored as told: %s", error)

    async def _tell(self, note: _Note) -> bool:
        """Whether anybody was reached."""
        log.warning("%s %s", note.cause, self._texts.say("en", note.key, **note.values))
        owners = {owner for owner in self._reach.owners() if owner[0] in self._reach.channels}
        at_fault = note.cause.name if note.cause.kind == "channel" and not note.over else None
        there = {owner for owner in owners if owner[0] == at_fault}
        return await self._send_all(owners - there, note) or await self._send_all(there, note)

    async def _send_all(self, owners: Iterable[Owner], note: _Note) -> bool:
        return any(await asyncio.gather(*(self._send(owner, note) for owner in owners)))

    async def _send(self, owner: Owner, note: _Note) -> bool:
        name, person = owner
        language = self._texts.language(await self._reach.language(owner))
        text = self._texts.say(language, note.key, **note.values)
        sink = self._reach.channels[name].open_reply(Address(name, "", person), reply_to=None)
        try:
            async with asyncio.timeout(SEND_S):
                await sink.finish(OutboundReply(text))
        except Uncertain:
            return True  # rather once too few
        except (ChannelError, TimeoutError) as error:
            log.warning("owner %s on %s could not be told: %s", person, name, error)
            return False
        return True

    def _of(self, cause: Cause) -> _Known:
        key = str(cause)
        return self._known.setdefault(key, _Known(StoredAlert(key, None, False)))


def _within(now: datetime, since: datetime, span: timedelta) -> bool:
    """Whether `since` is at most `span` ago. A time that is still to come is none: the clock was set
    back, and waiting for it would be silence for as long."""
    return timedelta(0) <= now - since < span
