"""Whatever crashes, is cut off, is sent late or moves to another zone: each saying stands in the day
files once. By seeded plans."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from agent.messages import user_text
from bridge.remembering.calls import WAIT_S, Ask, CallFailed, CutOff, MemoryCalls, PutOff
from memory.daily import DailyFiles
from memory.notes.flush import Entry
from memory.notes.flushed import FlushMarks
from tests.bridge.memory_bed import SCOPE, MemoryBed, memory_bed
from tests.bridge.memory_models import notes

ZONES = ("UTC", "Asia/Kolkata", "America/New_York", "Pacific/Chatham", "Europe/Berlin")
SAYINGS = 8


class Dies(Exception):
    pass


class Trouble:
    """Stands around the steps of a flush, and lets some of them fail."""

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        self.random = random.Random(seed)
        self.over = False
        self._keep, self._advance, self._ask = DailyFiles.keep, FlushMarks.advance, MemoryCalls.ask
        patch.setattr(DailyFiles, "keep", lambda *given: self.keep(*given))
        patch.setattr(FlushMarks, "advance", lambda *given: self.advance(*given))
        patch.setattr(MemoryCalls, "ask", lambda *given: self.ask(*given))

    def strikes(self, share: float) -> bool:
        return not self.over and self.random.random() < share

    async def keep(self, files: DailyFiles, scope: str, entry: Entry, *more: object) -> bool:
        if self.strikes(0.15):
            raise Dies
        made = await self._keep(files, scope, entry, *more)  # type: ignore[arg-type]
        if self.strikes(0.2):
            raise Dies
        return made

    async def advance(self, marks: FlushMarks, *given: object) -> None:
        if self.strikes(0.25):
            raise Dies
        await self._advance(marks, *given)  # type: ignore[arg-type]
        if self.strikes(0.15):
            raise Dies

    async def ask(self, calls: MemoryCalls, asked: Ask, wait_s: float = WAIT_S) -> str:
        for error in (CutOff("cut"), CallFailed("failed"), PutOff("later")):
            if self.strikes(0.1):
                raise error
        return await self._ask(calls, asked, wait_s)


async def say(it: MemoryBed, session: int, number: int, at: datetime, late: timedelta) -> None:
    run = f"r{number}"
    await it.say(session, user_text(f"saying {number} of mine"), run=run, at=at)
    sent = (at - late).isoformat(timespec="microseconds")
    await it.database.write(
        lambda connection: connection.execute(
            "INSERT INTO inbox (channel, account, chat, event, session_id, person, kind, state, body,"
            " received_at, sent_at, run_id) SELECT channel, account, chat, ?, session_id, person, kind,"
            " state, body, received_at, ?, ? FROM inbox LIMIT 1",
            (run, sent, run),
        )
    )


@pytest.mark.parametrize("seed", range(5))
async def test_each_saying_stands_in_the_day_files_once(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    trouble = Trouble(seed, monkeypatch)
    chance = trouble.random
    async with memory_bed(tmp_path, notes) as it:
        session, at = await it.session(), datetime(2026, 11, 30, 15, tzinfo=UTC)
        for number in range(SAYINGS):
            at += timedelta(minutes=chance.choice((1, 60, 300, 700)))
            await say(it, session, number, at, timedelta(minutes=chance.choice((0, 5, 600))))
            it.zone = ZoneInfo(chance.choice(ZONES))
            try:
                if chance.random() < 0.3:
                    await it.flushing.leave(session, SCOPE, UTC)
                else:
                    await it.flush(session)
            except Dies:
                it.flushing = it.flushing_of(it.daily)
            except (CallFailed, PutOff):
                pass  # another time
        trouble.over = True
        await it.flush(session)
        text = "".join(path.read_text() for path in it.folder.rglob("20*.md"))
        assert [text.count(f"saying {n} of") for n in range(SAYINGS)] == [1] * SAYINGS
