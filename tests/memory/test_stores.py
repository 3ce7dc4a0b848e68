"""The stores: committed, idempotent, append-only, and never half-done."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.messages import assistant_text, user_text
from agent.provider import Usage
from memory.access.people import People
from memory.clock import stamp
from memory.conversations import Boundary, Conversations, SessionPlace
from memory.database import Database
from memory.errors import StoreTooNew, StoreUnavailable
from memory.inbox import Entry, Inbox
from memory.runs import Runs
from memory.usage import Cost, UsageRow, UsageStore

PLACE = SessionPlace("telegram:1:7", "telegram", "1", "7", None)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "galata.db")
    yield opened
    await opened.close()


def entry(
    event: str, body: str | None = "{}", kind: str = "turn", sent_at: str = "2026-11-30T10:00"
) -> Entry:
    return Entry(PLACE, event, "u1", kind, body, sent_at)  # type: ignore[arg-type]


async def test_the_file_is_for_its_owner_only(tmp_path: Path, database: Database) -> None:
    assert (tmp_path / "galata.db").stat().st_mode & 0o777 == 0o600


async def test_a_redelivered_message_is_stored_once(database: Database) -> None:
    inbox = Inbox(database)
    first, again = await inbox.put(entry("m:1")), await inbox.put(entry("m:1"))
    assert first is not None
    assert again is None
    assert [row.id for row in await inbox.open_turns(PLACE.key)] == [first]


async def test_what_a_stranger_wrote_is_not_kept(database: Database) -> None:
    inbox = Inbox(database)
    assert await inbox.put(entry("m:1", None, "refused")) is not None
    assert await inbox.put(entry("m:1", None, "refused")) is None
    assert await inbox.open_sessions(("telegram",)) == []
    assert (await database.read("SELECT body FROM inbox"))[0][0] is None


async def test_a_taken_message_stays_open_until_its_run_is_settled(database: Database) -> None:
    inbox = Inbox(database)
    id_ = await inbox.put(entry("m:1"))
    assert id_ is not None
    conversations = Conversations(database)
    session = await conversations.open(PLACE)
    for _ in range(2):
        await Runs(database).begin(session, "r1", user_text("q"), [id_])
    assert len((await conversations.context(session)).messages) == 1
    assert (await inbox.open_turns(PLACE.key))[0].run_id == "r1"
    assert await inbox.waiting(PLACE.key) == 0
    await inbox.close([id_], "answered")
    assert await inbox.open_turns(PLACE.key) == []


async def test_appending_twice_stores_once(database: Database) -> None:
    conversations = Conversations(database)
    session = await conversations.open(PLACE)
    for _ in range(2):
        await conversations.append(session, "r1", [(0, user_text("q")), (1, assistant_text("a"))])
    context = await conversations.context(session)
    assert [stored.message.text for stored in context.messages] == ["q", "a"]


async def test_a_new_conversation_starts_empty_and_keeps_the_old_one(database: Database) -> None:
    conversations = Conversations(database)
    session = await conversations.open(PLACE)
    await conversations.append(session, "r1", [(0, user_text("old"))])
    await conversations.begin_new(session)
    assert (await conversations.context(session)).messages == ()
    await conversations.append(session, "r2", [(0, user_text("new"))])
    assert [s.message.text for s in (await conversations.context(session)).messages] == ["new"]
    assert (await database.read("SELECT COUNT(*) FROM messages"))[0][0] == 2
    assert (await conversations.size(session)).messages == 1


async def test_a_trim_moves_the_start_and_says_so(database: Database) -> None:
    conversations = Conversations(database)
    session = await conversations.open(PLACE)
    await conversations.append(session, "r1", [(0, user_text("a")), (1, user_text("b"))])
    stored = (await conversations.context(session)).messages
    boundary = Boundary("trim", stored[1].id, None, "what was before")
    await conversations.bound(session, boundary)
    context = await conversations.context(session)
    assert [s.message.text for s in context.messages] == ["b"]
    assert context.boundary == boundary


async def test_a_run_that_was_taken_out_stays_stored(database: Database) -> None:
    conversations = Conversations(database)
    session = await conversations.open(PLACE)
    for run in ("r1", "r2"):
        await conversations.append(session, run, [(0, user_text(run))])
    assert await conversations.last_run(session) == "r2"
    for _ in range(2):
        await conversations.leave_out(session, "r2")
    assert await conversations.last_run(session) == "r1"
    assert await conversations.question_of("r2") == user_text("r2")


async def test_messages_are_answered_in_the_platforms_order_not_in_that_of_arrival(
    database: Database,
) -> None:
    inbox = Inbox(database)
    await inbox.put(entry("late", sent_at="2026-11-30T10:02"))
    await inbox.put(entry("early", sent_at="2026-11-30T10:01"))
    events = await database.read("SELECT id, event FROM inbox")
    names = {row["id"]: row["event"] for row in events}
    rows = await inbox.open_turns(PLACE.key)
    assert [names[row.id] for row in rows] == ["early", "late"]


async def test_a_stop_closes_what_it_has_stopped_together_with_its_own_row(
    database: Database,
) -> None:
    inbox = Inbox(database)
    await inbox.put(entry("m:1"))
    await inbox.put(entry("m:2"))
    key = (PLACE.channel, PLACE.account, PLACE.chat, "m:1")
    stop = await inbox.put_stop(entry("m:3", kind="act"), [], [key])
    assert stop is not None
    assert len(await inbox.open_turns(PLACE.key)) == 1
    assert await inbox.put_stop(entry("m:3", kind="act"), [], []) is None, "a redelivered stop"
    assert await inbox.last_outcome(PLACE.key) == "cancelled"
    assert len(await inbox.reopen(PLACE.key, "somebody else", "m:3")) == 0
    assert len(await inbox.reopen(PLACE.key, "u1", "m:3")) == 1
    assert len(await inbox.open_turns(PLACE.key)) == 2


async def test_speakers_keep_their_number(database: Database) -> None:
    conversations = Conversations(database)
    session = await conversations.open(PLACE)
    numbers = [await conversations.speaker(session, who) for who in ("ana", "bo", "ana", "cy")]
    assert numbers == [1, 2, 1, 3]


async def test_one_failing_write_takes_no_other_with_it(database: Database) -> None:
    conversations = Conversations(database)
    session = await conversations.open(PLACE)

    def bad(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO notices VALUES ('x', 'now')")
        raise KeyError("oops")

    results = await asyncio.gather(
        *(conversations.append(session, f"r{i}", [(0, user_text("q"))]) for i in range(5)),
        database.write(bad),
        *(conversations.append(session, f"s{i}", [(0, user_text("q"))]) for i in range(5)),
        return_exceptions=True,
    )
    assert [type(r) for r in results if r is not None] == [KeyError]
    assert (await database.read("SELECT COUNT(*) FROM messages"))[0][0] == 10
    assert await database.read("SELECT * FROM notices") == []


async def test_a_write_is_carried_out_when_its_waiter_is_cancelled(database: Database) -> None:
    conversations = Conversations(database)
    session = await conversations.open(PLACE)
    task = asyncio.ensure_future(conversations.append(session, "r", [(0, user_text("q"))]))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await conversations.append(session, "other", [(0, user_text("z"))])
    assert (await database.read("SELECT COUNT(*) FROM messages"))[0][0] == 2


async def test_a_locked_database_is_said_and_mends_itself(
    tmp_path: Path, database: Database
) -> None:
    await database.write(_set_short_timeout)
    other = sqlite3.connect(tmp_path / "galata.db")
    other.execute("BEGIN IMMEDIATE")
    inbox = Inbox(database)
    with pytest.raises(StoreUnavailable):
        await inbox.put(entry("m:1"))
    other.rollback()
    other.close()
    assert await inbox.put(entry("m:1")) is not None


def _set_short_timeout(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA busy_timeout = 10")


async def test_a_newer_database_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "galata.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(StoreTooNew, match="schema 999"):
        await Database.open(path)


async def test_a_file_that_is_no_database_is_said_clearly(tmp_path: Path) -> None:
    path = tmp_path / "galata.db"
    path.write_bytes(b"no database at all " * 100)
    with pytest.raises(StoreUnavailable, match=r"galata\.db"):
        await Database.open(path)


async def test_the_audit_table_takes_no_changes(database: Database) -> None:
    people = People(database)
    code = await people.create_owner_link("telegram")
    assert await people.claim_ownership("telegram", "7", code)

    def tamper(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM audit")

    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        await database.write(tamper)


async def test_an_owner_link_works_once_on_its_channel_and_in_time(database: Database) -> None:
    people = People(database)
    code = await people.create_owner_link("telegram")
    assert not await people.claim_ownership("slack", "7", code)
    assert not await people.claim_ownership("telegram", "7", "own_guess")
    assert await people.claim_ownership("telegram", "7", code)
    assert not await people.claim_ownership("telegram", "8", code)
    assert await people.owners() == {("telegram", "7")}
    late = await people.create_owner_link("telegram")

    def age(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE owner_links SET expires_at = '2020-01-01'")

    await database.write(age)
    assert not await people.claim_ownership("telegram", "9", late)


async def test_a_notice_is_told_once_in_a_while(database: Database) -> None:
    people = People(database)
    day = timedelta(days=1)
    assert [await people.tell_once(k, day) for k in ("a", "a", "b")] == [True, False, True]
    assert await people.tell_once("a", timedelta(0))


async def test_a_clock_that_was_set_back_silences_no_notice(database: Database) -> None:
    people = People(database)
    ahead = stamp(datetime.now(UTC) + timedelta(days=300))
    await database.write(lambda c: c.execute("INSERT INTO notices VALUES ('a', ?)", (ahead,)))
    day = timedelta(days=1)
    assert [await people.tell_once("a", day) for _ in range(2)] == [True, False]


async def test_usage_is_booked_once_and_summed(database: Database) -> None:
    usage = UsageStore(database)
    session = await Conversations(database).open(PLACE)
    row = UsageRow("r", 1, session, "u", "m", "answer", "completed", Usage(10, 5), 1_500)
    await usage.book([row])
    await usage.book([row])
    assert await usage.cost_since(datetime.now(UTC) - timedelta(days=1)) == Cost(1_500)
    assert await usage.cost_since(datetime.now(UTC) + timedelta(days=1)) == Cost(0)
    assert await usage.of_session(session) == (1, Usage(10, 5))


async def test_a_look_that_fails_half_way_does_not_hold_the_reader_at_its_instant(
    database: Database,
) -> None:
    """Whoever keeps the error keeps its trace, and with that the cursor."""

    def half(connection: sqlite3.Connection) -> None:
        numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100)"
        rows = connection.execute(f"{numbers} SELECT i, (SELECT COUNT(*) FROM notices) FROM n")
        for _ in rows:
            raise ValueError("half way")

    with pytest.raises(ValueError, match="half way") as kept:
        await database.look(half)
    await database.write(lambda to: to.execute("INSERT INTO notices VALUES ('new', 'now')"))
    assert len(await database.read("SELECT * FROM notices")) == 1
    assert kept.value is not None
