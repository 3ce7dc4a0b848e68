"""From conversations into the day files: what was not flushed before, noted by one model call.

The mark of a session moves only when its entry stands in the file for certain. An entry that a crash
has left without its mark is known again by the messages that its heading names.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from weakref import WeakValueDictionary

from pydantic import ValidationError

from bridge.inbound import load
from bridge.remembering.calls import WAIT_S, Ask, CallFailed, CutOff, MemoryCalls, PutOff
from bridge.sharing import Sharing
from bridge.speakers import plain_name
from channels.base import Address
from memory.daily import DailyFiles, Outdated
from memory.errors import StoreError
from memory.notes.flush import (
    Batch,
    Item,
    Line,
    Span,
    Unflushed,
    batch,
    digest,
    entries,
    read_items,
    spans,
    without,
)
from memory.notes.flushed import MOST_AT_ONCE, FlushMarks, Waiting
from memory.notes.note_taking import INSTRUCTIONS, budget, chunks, prompt
from memory.tombstones import Forgotten, Tombstones

log = logging.getLogger(__name__)

URGENT_WAIT_S = 20.0  # that a run waits for notes, and for another flush of its session
_DAY = timedelta(days=1)
MOST_FAILURES = 3  # calls in a row that fail; then a digest stands in


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose memory a session's notes belong to: `scope`; who wrote there last, by `name` and
    `person` (their id)."""

    scope: str
    address: Address
    person: str
    name: str


async def owner_of(marks: FlushMarks, session: int, sharing: Sharing) -> Owner | None:
    """Whose the session is, as of its newest message that is kept."""
    body = await marks.newest_body(session)
    try:
        message = None if body is None else load(body)
    except ValidationError:  # another version wrote it
        return None
    if message is None:
        return None
    sender, address = message.sender, message.address
    return Owner(sharing.scope(address), address, sender.id, plain_name(sender.name))


ZoneOf = Callable[[Owner], Awaitable[tzinfo]]


@dataclass(frozen=True, slots=True)
class _Whose:
    scope: str
    name: str
    zone: tzinfo


class Flushing:
    """`calls` None: there is no model, and digests stand in. `zone_of(owner)`: where their days begin
    (None: everywhere in UTC); `own_tools`: tools that tell nothing foreign;
    `is_on(owner)`: whether anything of theirs is to be noted."""

    def __init__(
        self,
        marks: FlushMarks,
        daily: DailyFiles,
        tombstones: Tombstones,
        calls: MemoryCalls | None = None,
        zone_of: ZoneOf | None = None,
        own_tools: Collection[str] = (),
        is_on: Callable[[Owner], Awaitable[bool]] | None = None,
        sharing: Sharing | None = None,
    ) -> None:
        self._marks = marks
        self._daily = daily
        self._tombstones = tombstones
        self._calls = calls
        self._zone_of = zone_of
        self._own_tools = own_tools
        self._is_on = is_on
        self._sharing = sharing or Sharing()
        self._locks: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._failures: dict[int, int] = {}

    async def owner(self, session: int) -> Owner | None:
        """Whose the session is; None where nobody has written in it within the time that messages
        are kept."""
        return await owner_of(self._marks, session, self._sharing)

    async def is_on(self, owner: Owner) -> bool:
        """Whether their memory is."""
        return self._is_on is None or await self._is_on(owner)

    async def has_noted(self, session: int) -> bool:
        """Whether anything of the session has gone into a day file."""
        return await self._marks.has_any(session)

    async def leave(self, session: int, scope: str, zone: tzinfo) -> None:
        """What a run's context is about to lose is in the files when this returns; a digest where the
        model fails, is slow, or may not be asked. `zone`: where its days begin, as far as nothing is
        known of its owner. Raises `OSError`, `StoreError`."""
        owner = await self.owner(session)
        try:
            async with asyncio.timeout(URGENT_WAIT_S):
                lock = await self._held(session)
        except TimeoutError:
            log.warning("session %d is being flushed already, and slowly", session)
            return
        try:
            if owner is not None and not await self.is_on(owner):
                await self._marks.skip(session)
                return
            name = owner.name if owner is not None else ""
            if owner is not None and self._zone_of is not None:
                zone = await self._zone_of(owner)
            await self._flush(session, _Whose(scope, name, zone), until=_now() + URGENT_WAIT_S)
        finally:
            lock.release()

    async def flush(self, session: int, owner: Owner) -> int:
        """Everything of the session that is in no file; how many entries were written. Raises
        `PutOff`, `CallFailed` (then it is to be tried again), `OSError`, `StoreError`."""
        lock = await self._held(session)
        try:
            now = await self.owner(session)
            if now is None or now.scope != owner.scope:
                return 0  # it was erased meanwhile, and the number may be another's
            if not await self.is_on(owner):
                await self._marks.skip(session)
                return 0
            zone = UTC if self._zone_of is None else await self._zone_of(owner)
            whose = _Whose(owner.scope, owner.name, zone)
            return await self._flush(session, whose)
        finally:
            lock.release()

    async def after_new(self, session: int) -> None:
        """A conversation was ended: what was said in it is kept now, or later by the clock."""
        try:
            owner = await self.owner(session)
            if owner is not None:
                await self.flush(session, owner)
        except (PutOff, CallFailed, OSError, StoreError) as error:
            log.info("session %d is flushed later: %s", session, error)

    @asynccontextmanager
    async def paused(self, sessions: Sequence[int]) -> AsyncGenerator[None]:
        """Nothing of these sessions is being noted while inside."""
        async with AsyncExitStack() as stack:
            for session in sorted(sessions):
                stack.callback((await self._held(session)).release)
            yield

    async def _held(self, session: int) -> asyncio.Lock:
        lock = self._locks.get(session)
        if lock is None:
            lock = self._locks[session] = asyncio.Lock()
        await lock.acquire()
        return lock

    async def _flush(self, session: int, whose: _Whose, until: float | None = None) -> int:
        written, most = 0, MOST_AT_ONCE
        while True:
            waiting = await self._marks.waiting(session)
            if not waiting.messages:
                return written
            if await self._recovered(session, whose, waiting):
                continue
            forgotten = await self._tombstones.of(whose.scope)
            made = self._first_piece(whose, waiting, forgotten, most)
            try:
                items = await self._items(session, made, whose.zone, until)
            except CutOff:
                if len(made.lines) == 1:
                    raise
                most = len(made.lines) // 2
                continue
            is_outdated = partial(self._is_outdated, session, whose, made, forgotten)
            try:
                for entry in entries(made.lines, items, session, forgotten):
                    written += await self._daily.keep(whose.scope, entry, is_outdated)
            except Outdated:
                continue  # what was forgotten meanwhile is noted by nobody
            first = waiting.messages[0].id
            await self._marks.advance(session, first, made.last, made.foreign)
            most = min(MOST_AT_ONCE, 2 * most)

    async def _is_outdated(
        self, session: int, whose: _Whose, made: Batch, forgotten: Forgotten
    ) -> bool:
        """Whether some of it has been taken out, or was to be forgotten, since it was read."""
        waiting = await self._marks.waiting(session)
        there = [message.id for message in waiting.messages if message.id <= made.last]
        if there != [line.id for line in made.lines]:
            return True
        return await self._tombstones.of(whose.scope) != forgotten

    async def _recovered(self, session: int, whose: _Whose, waiting: Waiting) -> bool:
        """Whether an entry for the oldest of these messages stands in a file already, without its
        mark: the mark follows."""
        # Ids are given anew after the newest messages were deleted: their time tells them apart.
        times = {message.id: message.at for message in waiting.messages}
        # The zone may have been another one when it was written.
        near = [at.date() + _DAY * more for at in times.values() for more in (-1, 0, 1)]
        for day in sorted(set(near)):
            text = (await self._daily.read(whose.scope, day)).decode(errors="replace")
            for span in spans(text):
                if span.session == session and _begins(span, times.get(span.first), whose.zone):
                    before = [m for m in waiting.messages if m.id <= span.last]
                    made = self._batch(before, whose, waiting.foreign)
                    await self._marks.advance(session, before[0].id, span.last, made.foreign)
                    return True
        return False

    def _first_piece(
        self, whose: _Whose, waiting: Waiting, forgotten: Forgotten, most: int
    ) -> Batch:
        """As many messages as the model can read at once, and `most`, without what was to be
        forgotten."""
        messages = waiting.messages[:most]
        made = self._batch(messages, whose, waiting.foreign)
        if self._calls is not None:
            sizes = self._calls.model.sizes
            piece = next(iter(chunks(made.lines, sizes.text, self._calls.room)))
            made = self._batch(messages[: len(piece)], whose, waiting.foreign)
        lines = (
            without(each) if forgotten.covers(each.text, each.who if each.said else "") else each
            for each in made.lines
        )
        return Batch(tuple(lines), made.foreign)

    def _batch(self, messages: Sequence[Unflushed], whose: _Whose, foreign: int | None) -> Batch:
        return batch(messages, whose.name, whose.zone, foreign=foreign, own_tools=self._own_tools)

    async def _items(
        self, session: int, made: Batch, zone: tzinfo, until: float | None
    ) -> Sequence[Item]:
        """The model's notes; where nobody said anything there is nothing to note. `until`: when a run
        that waits for them goes on, with a digest if there is nothing better."""
        if not any(line.said for line in made.lines):
            return ()
        try:
            wait_s = WAIT_S if until is None else max(0.0, until - _now())
            return await self._asked(session, made.lines, zone, wait_s)
        except PutOff:
            if until is None:
                raise
        except CallFailed as error:
            in_time = until is None or _now() < until
            if isinstance(error, CutOff) and len(made.lines) > 1 and in_time:
                raise  # less is asked about
            self._failures[session] = self._failures.get(session, 0) + 1
            if until is None and self._failures[session] < MOST_FAILURES:
                raise
            log.info("session %d: a digest instead of notes: %s", session, error)
        self._failures.pop(session, None)
        return digest(made.lines)

    async def _asked(
        self, session: int, lines: Sequence[Line], zone: tzinfo, wait_s: float
    ) -> Sequence[Item]:
        if self._calls is None or wait_s <= 0:
            return digest(lines)
        asked = Ask(session, "flush", INSTRUCTIONS, prompt(lines), budget(lines), zone)
        items = read_items(await self._calls.ask(asked, wait_s), len(lines))
        if items is None:
            raise CallFailed("the answer is no list of notes")
        self._failures.pop(session, None)
        return items


def _now() -> float:
    return asyncio.get_running_loop().time()


def _begins(span: Span, at: datetime | None, zone: tzinfo) -> bool:
    """Whether the entry begins with the message of that time. One without a zone was written in the
    chat's, or in UTC before that was known."""
    zones = (span.zone,) if span.zone is not None else (zone, UTC)
    return at is not None and span.began in {f"{at.astimezone(each):%H:%M}" for each in zones}
