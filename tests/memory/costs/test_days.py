"""Budgets are sums of facts: exact whatever runs at once, in each zone, after moves and crashes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.provider import Usage
from memory.chats.reach import ChatPlace, Chats, Move
from memory.clock import stamp
from memory.conversations import Conversations, SessionPlace
from memory.costs.chat_usage import ChatUsage, Part
from memory.costs.days import Cap, Day, Sums, day_of, midnight, next_day, next_month
from memory.database import Database
from memory.inbox import Entry, Full, Inbox, Window
from memory.policies import PolicyPlace, PolicyStore
from memory.retention import Keep, Retention
from memory.runs import Runs
from memory.usage import Cost, PersonReached, Reached, Reservation, UsageRow, UsageStore

PLACE = ("telegram", "1", "-100")
ZONES = [ZoneInfo(name) for name in ("Europe/Berlin", "America/Los_Angeles", "Pacific/Auckland")]
DAY = timedelta(days=1)
CAP = Cap("cost_per_day_usd", "chat_cost", 100)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "galata.db")
    yield opened
    await opened.close()


def session_place(chat: str = "-100", thread: str = "") -> SessionPlace:
    return SessionPlace(f"telegram:1:{chat}:{thread}", "telegram", "1", chat, thread or None)


async def row(database: Database, run: str, **given_: object) -> UsageRow:
    session = await Conversations(database).open(session_place())
    made = UsageRow(run, 1, session, "ana", "m", "answer", "reserved", Usage(10, 0), 40)
    return replace(made, **given_)  # type: ignore[arg-type]


async def reserve(
    database: Database, row: UsageRow, caps: Sequence[Cap] = ()
) -> Reached | PersonReached | None:
    met, _ = await Runs(database).reserve(Reservation(row, caps), "scope")
    return met


async def check(database: Database) -> None:
    """The days and the calls say the same."""
    days = await database.read("SELECT SUM(calls), SUM(tokens), SUM(cost_microusd) FROM usage_days")
    calls = await database.read(
        "SELECT COUNT(*), SUM(input_tokens + output_tokens), SUM(cost_microusd) FROM usage"
    )
    assert tuple(days[0]) == tuple(calls[0])


async def test_a_reservation_becomes_what_was_used(database: Database) -> None:
    usage = UsageStore(database)
    reserved = await row(database, "r")
    assert await reserve(database, reserved) is None
    used = await usage.used(PLACE, "ana", UTC)
    assert (used.chat_cost, used.held) == (40, Sums(40, 10, 40, 10, 40, 40))
    assert (CAP.used(used), CAP.held(used), CAP.spent(used)) == (40, 40, 0)
    assert (await usage.used(PLACE, "bo", UTC)).held == Sums(40, 10, 0, 0, 40, 0)
    since = stamp(datetime.now(UTC) - DAY)
    assert await usage.of_person("telegram", "ana", since) == Cost(40, held=40)
    assert await usage.cost_since(datetime.now(UTC) - DAY) == Cost(40, held=40)
    assert await ChatUsage(database).own(PLACE, "ana", "2000-01-01") == Part("ana", 0, 0)
    done = replace(reserved, outcome="completed", usage=Usage(12, 5), cost_microusd=70)
    await usage.book([done])
    await usage.book([done])
    used = await usage.used(PLACE, "ana", UTC)
    assert (used.chat_cost, used.person_cost, used.chat_tokens, used.month_cost) == (70, 70, 17, 70)
    assert used.held == Sums()
    assert await usage.of_person("telegram", "ana", since) == Cost(70)
    assert await ChatUsage(database).own(PLACE, "ana", "2000-01-01") == Part("ana", 70, 17)
    assert (await usage.used(PLACE, "bo", UTC)).person_cost == 0
    await check(database)


async def test_parallel_requests_do_not_pass_a_cap_together(database: Database) -> None:
    rows = [await row(database, f"r{n}") for n in range(50)]
    found = await asyncio.gather(*(reserve(database, one, [CAP]) for one in rows))
    assert found.count(None) == 3, "the third begins at 80 of 100, nobody after it"
    reached = next(one for one in found if one is not None)
    assert isinstance(reached, Reached)
    assert (reached.cap, reached.used.chat_cost) == (CAP, 120)
    await check(database)


async def test_what_a_dead_process_had_reserved_stays_booked_as_estimated(
    database: Database,
) -> None:
    usage = UsageStore(database)
    await reserve(database, await row(database, "dead"))
    await reserve(database, await row(database, "over"))
    await usage.settle("over", ())
    assert await usage.settle_all() == 1
    found = await database.read("SELECT DISTINCT outcome, estimated FROM usage")
    assert [tuple(one) for one in found] == [("failed", 1)]
    assert (await usage.used(PLACE, "ana", UTC)).chat_cost == 80


async def test_sums_and_limits_follow_a_chat_to_its_new_id(database: Database) -> None:
    """Field case 140."""
    usage, chats, policies = UsageStore(database), Chats(database), PolicyStore(database)
    await chats.load()
    await usage.book([await row(database, "r1", outcome="completed")])
    there = await Conversations(database).open(session_place("-100247"))
    await usage.book([await row(database, "r2", session=there, outcome="completed")])
    await policies.put(PolicyPlace("telegram", "-100"), "paused: yes\n", "file")
    for _ in range(2):
        await chats.carry(
            Move("telegram", "1", "-100", "-100247"), lambda k: k.replace("-100:", "-100247:")
        )
    assert (await usage.used(("telegram", "1", "-100247"), "ana", UTC)).person_cost == 80
    assert (await usage.used(PLACE, "ana", UTC)).chat_cost == 0
    assert (await policies.get(PolicyPlace("telegram", "-100247"))).text == "paused: yes\n"
    await chats.erase(ChatPlace("telegram", "1", "-100247"))
    for table in ("usage_days", "policies"):
        assert await database.read(f"SELECT * FROM {table}") == []


@given(
    st.integers(0, 365 * 24 * 60),
    st.lists(st.tuples(st.sampled_from(ZONES), st.integers(0, 40)), min_size=1, max_size=12),
)
def test_changing_the_zone_never_gives_a_second_day(
    minutes: int, steps: list[tuple[ZoneInfo, int]]
) -> None:
    now, latest = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes), None
    began: list[datetime] = []
    for zone, hours in steps:
        now += timedelta(hours=hours)
        day = day_of(now, zone, latest)
        assert datetime.fromisoformat(day.began_at) <= now
        assert now < next_day(day, now, zone) <= next_month(day, now, zone)
        if latest is None or day != latest:
            began.append(datetime.fromisoformat(day.began_at))
        latest = day
    assert all(b - a >= timedelta(hours=23) for a, b in pairwise(began))


def test_a_day_begins_at_the_chats_midnight_and_can_have_23_hours() -> None:
    berlin = ZONES[0]
    now = datetime(2026, 3, 29, 21, tzinfo=UTC)  # the clock was put forward that night
    day = day_of(now, berlin, None)
    assert day == Day(stamp(datetime(2026, 3, 28, 23, tzinfo=UTC)), "2026-03-29")
    after = next_day(day, now, berlin)
    assert after == datetime(2026, 3, 29, 22, tzinfo=UTC)
    assert day_of(after, berlin, day).label == "2026-03-30"
    assert next_month(day, now, berlin) == midnight(date(2026, 4, 1), berlin)


def question(number: int, *, second: int = 0, person: str = "ana", thread: str = "") -> Entry:
    sent = stamp(datetime(2026, 11, 30, 12, 0, second, tzinfo=UTC))
    return Entry(session_place(thread=thread), f"m:{number}", person, "turn", "{}", sent)


MINUTE = Window(
    "questions_per_person_per_minute",
    2,
    stamp(datetime(2026, 11, 30, 11, 59, 30, tzinfo=UTC)),
    stamp(datetime(2026, 11, 30, 12, 0, 30, tzinfo=UTC)),
)


async def test_questions_are_counted_by_person_over_all_threads(database: Database) -> None:
    inbox = Inbox(database)
    assert await inbox.put_question(question(1, second=1), [MINUTE])
    assert await inbox.put_question(question(2, second=2, thread="7"), [MINUTE])
    full = await inbox.put_question(question(3, second=3), [MINUTE])
    assert isinstance(full, Full)
    assert full.oldest == question(1, second=1).sent_at
    assert await inbox.put_question(question(4, second=4, person="bo"), [MINUTE])
    assert await inbox.put_question(question(2, second=2, thread="7"), [MINUTE]) is None, (
        "a redelivery is no question"
    )
    assert await inbox.questions(PLACE, "ana", MINUTE) == 2


@pytest.mark.parametrize("body", ['{"album": "7"}', '{"album": null, "more_expected_s": 1.5}'])
async def test_what_was_sent_together_is_one_question(database: Database, body: str) -> None:
    """Field case 138: the pictures of an album come as messages of their own, and so do the parts of
    a text that its client has cut."""
    inbox = Inbox(database)
    assert await inbox.put_question(question(1, second=1), [MINUTE])
    for number in range(2, 8):
        part = replace(question(number, second=2), body=body)
        assert isinstance(await inbox.put_question(part, [MINUTE]), int)
    assert await inbox.questions(PLACE, "ana", MINUTE) == 2
    assert isinstance(await inbox.put_question(question(9, second=2), [MINUTE]), Full)


async def test_parallel_questions_do_not_pass_a_window_together(database: Database) -> None:
    inbox = Inbox(database)
    found = await asyncio.gather(
        *(inbox.put_question(question(n, second=n), [MINUTE]) for n in range(20))
    )
    assert sum(isinstance(one, int) for one in found) == 2


async def test_cleaning_takes_no_row_that_a_window_needs(database: Database) -> None:
    """The tightest that can be set, and no room at all."""
    inbox, usage, now = Inbox(database), UsageStore(database), datetime.now(UTC)
    window = Window("questions_per_person_per_day", 2, stamp(now - DAY), stamp(now))
    for number in (1, 2):
        asked = replace(question(number), sent_at=stamp(now))
        id_ = await inbox.put_question(asked, [window])
        assert isinstance(id_, int)
        await inbox.close([id_], "answered")
    await usage.book([await row(database, "r", outcome="completed")])
    await Retention(database, Keep(DAY, 0, 32 * DAY, 0, DAY, 0)).clean(now)
    assert await database.read("SELECT body FROM inbox WHERE body IS NOT NULL") == []
    assert isinstance(await inbox.put_question(question(3), [window]), Full)
    used = await usage.used(PLACE, "ana", UTC)
    assert (used.chat_cost, used.month_cost) == (40, 40)
    assert await usage.cost_since(now - DAY) == Cost(40)


async def test_acts_are_no_questions(database: Database) -> None:
    inbox = Inbox(database)
    await inbox.put(replace(question(1), kind="act"))
    await inbox.put(replace(question(2), kind="refused", body=None))
    assert await inbox.questions(PLACE, "ana", MINUTE) == 0


async def test_a_change_on_an_older_revision_is_refused(database: Database) -> None:
    store, place = PolicyStore(database), PolicyPlace("telegram", "-100", "7")
    first = await store.put(place, "paused: yes\n", "telegram:42", revision=0)
    assert first is not None
    assert first.revision == 1
    assert await store.put(place, "paused: no\n", "telegram:43", revision=0) is None
    assert await store.put(place, "paused: yes\n", "file") == first, "nothing has changed"
    await store.put(place, "paused: no\n", "file", revision=1)
    newest, oldest = await store.changes(place, 5)
    assert (newest.actor, newest.before, newest.after) == ("file", "paused: yes\n", "paused: no\n")
    assert (oldest.actor, oldest.before) == ("telegram:42", "")
