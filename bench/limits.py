"""What limits cost: a message's policy and check beside 10,000 chats' files, the reload of one, and
how far many runs at once pass one budget."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from agent.provider import Usage
from bench.report import Measure, Measures, percentile
from bridge.access import Access, ChannelAccess
from bridge.access.stores import AccessStores
from bridge.limits.admission import Admission, Admitted
from bridge.limits.caps import caps_of
from bridge.limits.gate import MonthlyGate
from bridge.limits.kinds import Known
from bridge.limits.policies import ChatPolicies, PolicyLayers, chat_policies
from channels.base import InboundMessage
from channels.testing import FakeChannel
from memory.access.people import People
from memory.chats.reach import Chats
from memory.clock import stamp
from memory.conversations import Conversations, SessionPlace
from memory.database import Database
from memory.runs import Runs
from memory.usage import Reservation, UsageRow, UsageStore

CHATS = 10_000
MESSAGES = 1000
RUNS = 200  # at once, against one budget
STEP = 1_000  # micro-dollars of one call
PEOPLE = 20  # who have used the bot on each day of the month
LINES = """\
cost_per_day_usd: 3.00
cost_per_month_usd: 40.00
cost_per_person_per_day_usd: 3.00
questions_per_person_per_minute: 1000
questions_per_person_per_day: 100000
tokens_per_day: 5m
timezone: Europe/Berlin
"""


def limits(chats: int = CHATS) -> Measures:
    """Time on the wall, since a check waits for the database's threads."""
    return asyncio.run(_limits(chats))


async def _limits(count: int) -> Measures:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder / "groups" / "fake", count)
        database = await Database.open(folder / "galata.db")
        try:
            chats, channel = Chats(database), FakeChannel()
            await chats.load()
            await database.write(_a_month)
            policies = chat_policies(PolicyLayers(), folder, database, chats, Known())
            stores = AccessStores.of(database)
            access = Access({"fake": ChannelAccess()}, chats, stores, {"fake": channel})
            usage = UsageStore(database)
            gate = MonthlyGate(usage, limit_usd=20, zone=UTC)
            admission = Admission(usage, People(database), access, {"fake": channel}, gate)
            message = channel.message("Hi", chat="0", private=False)
            checks = [await _check(policies, admission, message) for _ in range(MESSAGES)]
            reloads = [
                await _check(policies, admission, channel.message("Hi", chat=str(n), private=False))
                for n in range(1, min(count, MESSAGES))
            ]
            beyond = await _beyond(database, policies, message)
        finally:
            await database.close()
    return {
        "limits_check_p50_ms": Measure(percentile(checks, 50), "ms", 0.5),
        "limits_check_p99_ms": Measure(percentile(checks, 99), "ms"),
        "limits_reload_p50_ms": Measure(percentile(reloads, 50), "ms", 50),
        "limits_beyond_steps": Measure(beyond, "steps a run", 1),
    }


def _write(folder: Path, count: int) -> None:
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"{number}.yaml").write_text(LINES, encoding="utf-8")


def _a_month(connection: sqlite3.Connection) -> None:
    """What twenty people have used so far."""
    today = datetime.now(UTC).date()
    for day in (date(today.year, today.month, 1) + timedelta(days=n) for n in range(today.day)):
        began = stamp(datetime(day.year, day.month, day.day, tzinfo=UTC))
        connection.executemany(
            "INSERT INTO usage_days VALUES ('fake', 'bot', '0', ?, ?, ?, 1, 100, 100)",
            [(began, f"person {n}", day.isoformat()) for n in range(PEOPLE)],
        )


async def _check(policies: ChatPolicies, admission: Admission, message: InboundMessage) -> float:
    """Milliseconds of all that limits ask before a question is stored."""
    since = time.perf_counter()
    await policies.read(message.address)
    policy = policies.of(message.address, message.sender.id)
    admitted = await admission.admit(message, policy)
    if not isinstance(admitted, Admitted):
        raise RuntimeError(f"not admitted: {admitted}")
    return 1000 * (time.perf_counter() - since)


async def _beyond(database: Database, policies: ChatPolicies, message: InboundMessage) -> float:
    """How many steps a run has gone beyond a budget of 3 dollars, when all ask at once and each call
    costs in the end ten times what it had reserved."""
    usage, runs, address = UsageStore(database), Runs(database), message.address
    session = await Conversations(database).open(
        SessionPlace("fake:bot:0", "fake", "bot", "0", None)
    )
    policy = policies.of(address, message.sender.id)
    caps = caps_of(policy, private=False)
    limit = next(cap.limit for cap in caps if cap.measure == "chat_cost")

    async def run(number: int) -> None:
        for step in range(1, 1000):
            row = UsageRow(
                f"r{number}",
                step,
                session,
                f"p{number}",
                "m",
                "answer",
                "reserved",
                Usage(1, 0),
                STEP // 10,
            )
            met, _ = await runs.reserve(Reservation(row, caps), "")
            if met is not None:
                return
            done = UsageRow(
                row.run_id,
                step,
                session,
                row.person,
                "m",
                "answer",
                "completed",
                Usage(1, 1),
                STEP,
            )
            await usage.book([done])

    await asyncio.gather(*map(run, range(RUNS)))
    used = await usage.used(("fake", "bot", "0"), "p0", UTC)
    return max(0.0, (used.chat_cost - limit) / STEP / RUNS)
