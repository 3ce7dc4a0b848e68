"""The night of one scope: from its day files into `MEMORY.md`, as far as the gate lets it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, tzinfo
from weakref import WeakValueDictionary

from bridge.remembering.calls import Ask, CallFailed, CutOff, MemoryCalls, PutOff
from bridge.remembering.progress import Progress
from memory.consolidate import Applied, apply, report
from memory.consolidate import Night as Judged
from memory.daily import DailyFiles
from memory.markdown.fact_files import FactFiles, digest_of
from memory.markdown.facts import Lines, facts, render
from memory.night.nights import Night, Nights
from memory.night.proposal import (
    INSTRUCTIONS,
    MOST_NOTES,
    Change,
    ProposalRefused,
    budget,
    chunks,
    prompt,
    read_proposal,
)
from memory.night.read_days import ReadDays, Unread
from memory.notes.flush import Note
from memory.notes.flush import notes as notes_of
from memory.scopes import ChatScope
from memory.tombstones import Forgotten, Tombstones
from memory.whose.speakers import Speakers

log = logging.getLogger(__name__)

MOST_REFUSED = 3
"""Nights in a row of which nothing comes for the same notes; then they are passed over."""
LEAST_LOST = 1  # entries that may always go, however few there are


@dataclass(frozen=True, slots=True)
class NightStores:
    """What a night reads and writes. `chat(scope)`: whose conversations belong to it; `changed(scope)`
    hears that its `MEMORY.md` has changed."""

    files: FactFiles
    daily: DailyFiles
    days: ReadDays
    nights: Nights
    tombstones: Tombstones
    speakers: Speakers
    chat: Callable[[str], ChatScope]
    changed: Callable[[str], Awaitable[None]]


class Consolidation:
    """`most_lost`: the share of entries that a night may lose."""

    def __init__(self, stores: NightStores, calls: MemoryCalls, most_lost: float) -> None:
        self._stores = stores
        self._calls = calls
        self._most_lost = most_lost
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def night(self, scope: str, session: int, day: date, zone: tzinfo = UTC) -> Night:
        """Work through what is new, and keep how it went. `session` pays for the calls; `day` is the
        local date. Raises `OSError`, `StoreError`."""
        lock = self._locks.setdefault(scope, asyncio.Lock())
        async with lock:
            night = await self._night(scope, session, day, zone)
            await self._stores.nights.note(scope, night)
        return night

    @asynccontextmanager
    async def paused(self, scope: str) -> AsyncGenerator[None]:
        """No night works on the scope while inside."""
        async with self._locks.setdefault(scope, asyncio.Lock()):
            yield

    async def _night(self, scope: str, session: int, day: date, zone: tzinfo) -> Night:
        stores = self._stores
        newest = await stores.nights.newest(scope)
        failures = newest.failures if newest is not None else 0
        failing = newest.failures_with(day) if newest is not None else 1
        unread = await stores.days.unread(scope, day)
        before = len(facts(await stores.files.load(scope)))
        progress = Progress(Night(day, "same", failures=failures), before, failing)
        try:
            await self._read(scope, session, unread, zone, progress)
        except PutOff as error:
            return replace(progress.night, outcome="put_off", reason=str(error))
        except CallFailed as error:
            log.info("the memory of %s stays as it is: %s", scope, error)
            cut = isinstance(error, CutOff)
            failures = progress.failures if cut else progress.night.failures
            reason = str(error)[:200]
            return replace(progress.night, outcome="failed", reason=reason, failures=failures)
        except ProposalRefused as error:
            failures = progress.failures
            return replace(progress.night, outcome="refused", reason=error.why, failures=failures)
        await stores.days.read(scope, [(part, len(part.data)) for part in unread])
        return progress.ended()

    async def _read(
        self,
        scope: str,
        session: int,
        unread: Sequence[Unread],
        zone: tzinfo,
        progress: Progress,
    ) -> None:
        """Ask about all notes in pieces, smaller ones where an answer was cut off. A piece of which
        nothing comes night after night is passed over, of answers that are cut off a single note: its
        day file keeps it. Raises as `_ask`."""
        left = [note for part in unread for note in part.notes]
        most = MOST_NOTES
        while left:
            piece = (await self._piece(scope, left))[:most]
            try:
                await self._ask(scope, session, piece, zone, progress)
            except (CutOff, ProposalRefused) as error:
                if isinstance(error, CutOff) and len(piece) > 1:
                    most = len(piece) // 2
                    continue
                await self._in_vain(scope, piece, progress, error)
            left, most = left[len(piece) :], min(MOST_NOTES, 2 * most)
            await self._stores.days.read(scope, _read_until(unread, piece[-1]))

    async def _in_vain(
        self,
        scope: str,
        notes: Sequence[Note],
        progress: Progress,
        error: CutOff | ProposalRefused,
    ) -> None:
        """Nothing came of these notes: the file stays. That is said, and when it was so night after
        night they no longer hold up the others. Raises the error when it was not."""
        night, rows = progress.night, list[str]()
        if isinstance(error, ProposalRefused):
            log.warning("the memory of %s: a proposal is refused: %s", scope, error.why)
            rows.append(f"- refused: {error.why.replace('_', ' ')}")
        if progress.failures >= MOST_REFUSED:
            days = ", ".join(sorted({note.day.isoformat() for note in notes}))
            rows.append(f"- passed over: {len(notes)} of the notes of {days}, which stay there")
        await self._note_changes(scope, night.day, rows)
        if progress.failures < MOST_REFUSED:
            raise error
        progress.pass_over(len(notes), str(error)[:200])

    async def _piece(self, scope: str, notes: Sequence[Note]) -> Sequence[Note]:
        """As many notes as the model can read beside the entries."""
        sizes = self._calls.model.sizes
        known = render(await self._stores.files.load(scope))
        room = max(0, self._calls.room - sizes.text(known) - sizes.text(INSTRUCTIONS))
        return next(iter(chunks(notes, sizes.text, room)))

    async def _ask(
        self,
        scope: str,
        session: int,
        notes: Sequence[Note],
        zone: tzinfo,
        progress: Progress,
    ) -> None:
        """Ask about these notes, and carry out what passes. Raises `PutOff`, `CallFailed`,
        `ProposalRefused`."""
        stores, day = self._stores, progress.night.day
        told, forgotten = await self._told(scope, notes)
        while told:
            shown = facts(await stores.files.load(scope))
            text = prompt(shown, told, day)
            ask = Ask(session, "consolidation", INSTRUCTIONS, text, budget(len(told)), zone)
            answer = await self._calls.ask(ask)
            before = (told, forgotten)
            told, forgotten = await self._told(scope, notes)
            if (told, forgotten) != before:
                continue  # what was forgotten during the call comes back by nobody's answer
            proposal = read_proposal(answer, len(told))
            most = max(LEAST_LOST, int(progress.before * self._most_lost)) - progress.lost
            cited = {index: told[index] for change in proposal for index in change.sources}
            strangers = await stores.speakers.strangers(stores.chat(scope), shown, cited)
            judged = Judged(day, shown, told, forgotten, most, strangers)
            applied, found, left_as = await self._apply(scope, proposal, judged)
            progress.take(applied, found, left_as)
            if applied.done:
                await stores.changed(scope)
            await self._note_changes(scope, day, report(applied, told))
            return

    async def _told(self, scope: str, notes: Sequence[Note]) -> tuple[list[Note], Forgotten]:
        """The notes that still stand in their files and say nothing of what is to be forgotten; and
        that."""
        there: set[tuple[date, str, str]] = set()
        for day in {note.day for note in notes}:
            text = (await self._stores.daily.read(scope, day)).decode(errors="replace")
            there |= {(day, note.who, note.text) for note in notes_of(text, day)}
        forgotten = await self._stores.tombstones.for_nights(scope)
        standing = [note for note in notes if (note.day, note.who, note.text) in there]
        kept = [note for note in standing if not forgotten.covers(note.text, note.who)]
        return kept, forgotten

    async def _apply(
        self, scope: str, proposal: Sequence[Change], judged: Judged
    ) -> tuple[Applied, str, str]:
        """What passes, by what is to be forgotten at the moment of the change; and digests of the file
        before and after."""
        loop, tombstones = asyncio.get_running_loop(), self._stores.tombstones

        def change(lines: Lines) -> tuple[Lines, tuple[Applied, str, str]]:
            # On a thread that holds the scope's lock: nothing is forgotten in between.
            now = asyncio.run_coroutine_threadsafe(tombstones.for_nights(scope), loop).result()
            made, applied = apply(lines, proposal, replace(judged, forgotten=now))
            return made, (applied, digest_of(lines), digest_of(made))

        return await self._stores.files.change(scope, change)

    async def _note_changes(self, scope: str, day: date, rows: Sequence[str]) -> None:
        if rows:
            at = f"{datetime.now(UTC):%H:%M} UTC"
            text = "\n".join(("", f"## {at}", "", *rows, ""))
            await self._stores.daily.note_changes(scope, day, text, self._stores.tombstones)


def _read_until(unread: Sequence[Unread], last: Note) -> list[tuple[Unread, int]]:
    """The files up to that note."""
    whole = [(part, len(part.data)) for part in unread if part.day < last.day]
    return [*whole, *((part, part.until(last)) for part in unread if part.day == last.day)]
