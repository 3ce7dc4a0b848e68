"""What is still known after 30 days, and how long the nights of many chats take."""

from __future__ import annotations

import asyncio
import logging
import random
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from agent.messages import assistant_text, user_text
from bench.report import Measure, Measures, percentile
from channels.base import Address
from memory.markdown.facts import facts
from memory.text.words import normalised, words
from memory.tombstones import Tombstones, bury
from tests.bridge.memory_bed import SCOPE, Model, memory_bed
from tests.bridge.memory_models import Misbehaving, faithful, notes

DAYS = 30
FACTS = 100
REVOKED = 20  # of them, each some days after it was said
FIRST = datetime(2026, 11, 1, 12, tzinfo=UTC)
SEED = 7
LATE_S = 0.002  # between two looks at how late the event loop is


def memory_recall() -> Measures:
    """A scripted list of facts, said over 30 days between small talk, some said again and some
    revoked. `rough`: with a model that misbehaves; then what stood in `MEMORY.md` counts."""
    log = logging.getLogger("bridge.remembering.consolidation")
    log.disabled = True  # it warns of each proposal that is refused
    try:
        missing, revived, _ = asyncio.run(_month(_Faithful()))
        lost, back, durable = asyncio.run(_month(_Rough()))
    finally:
        log.disabled = False
    return {
        "memory_recall_missing": Measure(missing, "facts", 0),
        "memory_recall_revived": Measure(revived, "facts", 0),
        "memory_rough_lost": Measure(lost, "facts", 0),
        "memory_rough_revived": Measure(back, "facts", 0),
        "memory_rough_durable": Measure(durable, "facts"),
    }


def nights(scopes: int) -> Measures:
    """So many chats, each with a talk since the last night and a model that answers at once: the time
    of all nights, and how late others get their turn on the event loop meanwhile."""
    took_s, late_ms = asyncio.run(_nights(scopes))
    return {
        "memory_nights_s": Measure(took_s, "s", 300),
        "memory_nights_late_p99_ms": Measure(percentile(late_ms, 99), "ms", 30),
    }


class _Faithful:
    """`answer` takes the notes and makes the proposals. `counts`: whether a fact that never became
    durable is missed."""

    counts_all = True

    def answer(self, revoked: Sequence[str]) -> Model:
        return lambda request: (notes if "diary" in request.system[:40] else faithful)(request)


class _Rough:
    counts_all = False

    def answer(self, revoked: Sequence[str]) -> Model:
        rough = Misbehaving(SEED, list(revoked))
        return lambda request: (notes if "diary" in request.system[:40] else rough)(request)


def _said(number: int) -> str:
    return f"fact {number} is about thing{number} and place{number}"


async def _month(kind: _Faithful | _Rough) -> tuple[int, int, int]:
    """Facts that are missing in the end, revoked ones that are there, and how many were looked
    for."""
    plan = random.Random(SEED)
    day_of = {number: plan.randrange(DAYS - 5) for number in range(FACTS)}
    revoked_on = {n: day_of[n] + plan.randint(1, 4) for n in plan.sample(range(FACTS), REVOKED)}
    revoked = [_said(number) for number in revoked_on]
    durable: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        async with memory_bed(Path(folder), kind.answer(revoked), limit_usd=1e6) as it:
            session = await it.session()
            for day in range(DAYS):
                at = FIRST + timedelta(days=day)
                again = plan.sample([n for n in day_of if day_of[n] < day] or [0], 1)
                said = [n for n in day_of if day_of[n] == day] + again
                texts = [_said(n) for n in said if revoked_on.get(n, DAYS) > day]
                for number, text in enumerate([*texts, "thanks", "how are you?"]):
                    talk = (user_text(text), assistant_text("I see."))
                    await it.say(session, *talk, run=f"{day}.{number}", at=at)
                await it.flush(session)
                gone = {_said(number) for number, when in revoked_on.items() if when == day}
                await _forget(it.database, gone)
                durable = {text for text in durable if text not in gone}
                numbers = [
                    entry.number
                    for entry in facts(await it.files.load(SCOPE))
                    if any(_holds(entry.text, text) for text in gone)
                ]
                await it.files.remove(SCOPE, numbers)
                await it.night(session, at.date() + timedelta(days=1))
                known = await it.known()
                durable |= {text for text in known if text.startswith("fact ")}
            forgotten = await Tombstones(it.database).of(SCOPE)
    wanted = {_said(n) for n in day_of if n not in revoked_on} if kind.counts_all else durable
    missing = [text for text in wanted if not any(_holds(entry, text) for entry in known)]
    return len(missing), sum(forgotten.covers(entry) for entry in known), len(wanted)


async def _forget(database: object, texts: set[str]) -> None:
    sayings = [normalised(text) for text in texts]
    await database.write(lambda connection: bury(connection, SCOPE, sayings))  # type: ignore[attr-defined]


def _holds(text: str, fact: str) -> bool:
    left = iter(words(text))
    return all(word in left for word in words(fact))


async def _nights(scopes: int) -> tuple[float, list[float]]:
    today = date(2026, 12, 1)
    late_ms: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        model = _Faithful().answer(())
        async with memory_bed(Path(folder), model, limit_usd=1e6) as it:
            chats = [Address("fake", "1", str(number)) for number in range(scopes)]
            for number, chat in enumerate(chats):
                session = await it.session(chat)
                talk = (user_text(_said(number)), assistant_text("I see."))
                await it.say(session, *talk, run=f"r{number}", at=FIRST)
            looking = asyncio.create_task(_look(late_ms))
            since = time.perf_counter()
            for chat in chats:
                await it.jobs.tidy(f"person:fake:1:{chat.chat}", datetime(2026, 12, 1, tzinfo=UTC))
            took_s = time.perf_counter() - since
            looking.cancel()
            newest = await it.nights.newest(f"person:fake:1:{scopes - 1}")
            assert newest is not None
            assert (newest.day, newest.added) == (today, 1), "the last one was carried out too"
    return took_s, late_ms


async def _look(late_ms: list[float]) -> None:
    while True:
        before = time.perf_counter()
        await asyncio.sleep(LATE_S)
        late_ms.append(1000 * (time.perf_counter() - before - LATE_S))
