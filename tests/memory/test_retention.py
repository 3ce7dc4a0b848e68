"""Old rows go in small steps; what is open, or still in a conversation's context, stays."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.messages import (
    ImageBlock,
    Message,
    TextBlock,
    ToolResultBlock,
    assistant_text,
    user_text,
)
from agent.provider import Usage
from memory.access.admissions import Someone
from memory.access.pairings import Pairings
from memory.audit import record
from memory.clock import stamp
from memory.conversations import Boundary, Conversations, SessionPlace
from memory.database import Database
from memory.inbox import Entry, Inbox
from memory.jobs import Ended, Jobs, NextTime
from memory.refused_images import RefusedImage, RefusedImages
from memory.retention import PICTURE_GONE, Keep, Retention
from memory.runs import Runs
from memory.transcripts import Transcripts
from memory.usage import UsageRow, UsageStore

DAY = timedelta(days=1)
KEEP = Keep(90 * DAY, 1_000_000, 400 * DAY, 1_000_000, 7 * DAY, 10**9)
PLACE = SessionPlace("telegram:1:7", "telegram", "1", "7", None)
OTHER = SessionPlace("telegram:1:8", "telegram", "1", "8", None)
PICTURE = ImageBlock("image/png", b"picture" * 100)


class Store:
    """A database in which time passes by hand."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.conversations = Conversations(database)
        self.inbox = Inbox(database)
        self.now = datetime.now(UTC)

    async def say(self, place: SessionPlace, run: str, *messages: Message) -> int:
        session = await self.conversations.open(place)
        await self.conversations.append(session, run, list(enumerate(messages)))
        return session

    async def later(self, days: float) -> None:
        """Everything that is stored gets older."""

        def op(connection: sqlite3.Connection) -> None:
            for table, columns in (
                ("messages", ("created_at",)),
                ("boundaries", ("created_at",)),
                ("left_out", ("at",)),
                ("refused_images", ("at",)),
                ("inbox", ("received_at", "done_at")),
                ("usage", ("created_at",)),
                ("outbox", ("created_at",)),
                ("runs", ("began_at", "settled_at")),
                ("errors", ("at",)),
                ("notices", ("told_at",)),
                ("owner_links", ("expires_at",)),
                ("pairings", ("asked_at",)),
                ("jobs", ("last_at",)),
            ):
                for column in columns:
                    connection.execute(
                        f"UPDATE {table} SET {column} = strftime('%Y-%m-%dT%H:%M:%f000+00:00',"
                        f" {column}, ?) WHERE {column} IS NOT NULL",
                        (f"-{days} days",),
                    )

        await self.database.write(op)

    async def execute(self, sql: str, *values: object) -> None:
        await self.database.write(lambda connection: connection.execute(sql, values))

    async def clean(self, keep: Keep = KEEP) -> dict[str, int]:
        return dict(await Retention(self.database, keep).clean(self.now))

    async def column(self, sql: str) -> list[object]:
        return [row[0] for row in await self.database.read(sql)]

    async def texts(self, session: int) -> list[str]:
        context = await self.conversations.context(session)
        return [stored.message.text for stored in context.messages]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    database = await Database.open(tmp_path / "galata.db")
    yield Store(database)
    await database.close()


async def test_a_conversation_that_is_not_used_any_more_goes_after_its_time(store: Store) -> None:
    await store.say(PLACE, "r1", user_text("q"), assistant_text("a"))
    await store.later(91)
    session = await store.say(OTHER, "r2", user_text("new"))
    assert await store.clean() == {"messages": 2}
    assert await store.texts(session) == ["new"]
    assert await store.clean() == {}


async def test_the_context_of_a_conversation_in_use_stays_and_what_left_it_goes(
    store: Store,
) -> None:
    await store.say(PLACE, "r1", user_text("long ago"), assistant_text("answer"))
    session = await store.say(PLACE, "r2", user_text("old, but in the context"))
    start = (await store.conversations.context(session)).messages[2].id
    await store.conversations.bound(session, Boundary("trim", start, None, "a summary"))
    await store.later(91)
    await store.say(PLACE, "r3", user_text("today"))
    assert await store.clean() == {"messages": 2}
    assert await store.texts(session) == ["old, but in the context", "today"]
    boundary = (await store.conversations.context(session)).boundary
    assert boundary is not None
    assert boundary.note == "a summary"


async def test_a_question_that_waits_for_its_answer_stays_however_old(store: Store) -> None:
    id_ = await store.inbox.put(Entry(PLACE, "m:1", "u", "turn", "{}", stamp()))
    assert id_ is not None
    session = await store.conversations.open(PLACE)
    await Runs(store.database).begin(session, "r1", user_text("q"), [id_])
    await store.later(500)
    assert await store.clean() == {}
    assert len(await store.inbox.open_turns(PLACE.key)) == 1
    assert await store.texts(session) == ["q"]


async def test_an_answer_that_was_not_delivered_stays_and_others_go(store: Store) -> None:
    session = await store.conversations.open(PLACE)
    for key, state in (("r1", "open"), ("act:1", "open"), ("r2", "done")):
        await store.execute(
            "INSERT INTO outbox (key, session_id, private, language, state, created_at)"
            " VALUES (?, ?, 1, 'en', ?, ?)", key, session, state, stamp(),
        )  # fmt: skip
    await store.execute(
        "INSERT INTO outbox_parts (reply_id, number, body, state) VALUES (3, 1, 'x', 'sent')"
    )
    id_ = await store.inbox.put(Entry(PLACE, "m:1", "u", "act", "{}", stamp()))
    assert id_ == 1
    await store.inbox.close([id_], "done")
    await store.later(91)
    assert await store.clean() == {"answers": 1}
    assert await store.column("SELECT key FROM outbox ORDER BY id") == ["r1", "act:1"]
    assert await store.column("SELECT * FROM outbox_parts") == []
    assert await store.column("SELECT id FROM inbox") == [1], "its answer names it"


async def test_a_run_that_is_not_settled_keeps_its_messages(store: Store) -> None:
    session = await store.say(PLACE, "r1", user_text("q"))
    for run, state in (("r1", "running"), ("r2", "settled")):
        await store.execute(
            "INSERT INTO runs (run_id, session_id, state, began_at) VALUES (?, ?, ?, ?)",
            run, session, state, stamp(),
        )  # fmt: skip
    await store.later(91)
    assert await store.clean() == {}
    assert await store.column("SELECT run_id FROM runs") == ["r1"]
    assert await store.texts(session) == ["q"]


async def test_keys_stay_for_redeliveries_when_texts_go_early(store: Store) -> None:
    id_ = await store.inbox.put(Entry(PLACE, "m:1", "u", "turn", "secret words", stamp()))
    assert id_ is not None
    await store.inbox.close([id_], "answered")
    keep = replace(KEEP, messages=2 * DAY)
    await store.later(3)
    await store.clean(keep)
    assert await store.column("SELECT body FROM inbox") == [None]
    assert await store.inbox.put(Entry(PLACE, "m:1", "u", "turn", "again", stamp())) is None
    await store.later(30)
    await store.clean(keep)
    assert await store.column("SELECT * FROM inbox") == []


async def test_who_asked_to_be_let_in_is_forgotten_after_30_days(store: Store) -> None:
    await Pairings(store.database).ask(Someone("telegram", "9", "Eve"))
    await store.clean()
    assert await store.column("SELECT name FROM pairings") == ["Eve"]
    await store.later(31)
    await store.clean()
    assert await store.column("SELECT name FROM pairings") == []


async def test_the_audit_table_and_owners_stay(store: Store) -> None:
    await store.database.write(lambda connection: record(connection, "a", "did", "b"))
    await store.execute("INSERT INTO owners VALUES ('telegram', 'u', '2000-01-01')")
    await store.execute("UPDATE owners SET added_at = '2000-01-01'")
    await store.clean(replace(KEEP, messages=timedelta(0)))
    assert await store.column("SELECT action FROM audit") == ["did"]
    assert await store.column("SELECT person FROM owners") == ["u"]


async def test_usage_is_kept_longer_and_has_a_cap(store: Store) -> None:
    session = await store.conversations.open(PLACE)
    usage = UsageStore(store.database)

    async def book(run: str) -> None:
        await usage.book(
            [UsageRow(run, 1, session, "u", "m", "answer", "completed", Usage(1, 1), 1)]
        )

    await book("oldest")
    await store.later(300)
    await book("older")
    await store.later(101)
    await book("new")
    assert await store.clean() == {"calls": 1}
    assert sorted(map(str, await store.column("SELECT run_id FROM usage"))) == ["new", "older"]
    capped = replace(KEEP, most_usage=1)
    assert await store.clean(capped) == {"calls": 1}
    await book("newest")
    assert await store.clean(capped) == {}, "the month's limit needs all calls of the month"
    await store.later(33)
    assert await store.clean(capped) == {"calls": 1}
    assert await store.column("SELECT run_id FROM usage") == ["newest"]


async def test_beyond_the_cap_the_oldest_go_but_no_context_in_use(store: Store) -> None:
    for number in range(6):
        await store.say(PLACE, f"r{number}", user_text(str(number)))
    session = await store.conversations.open(PLACE)
    start = (await store.conversations.context(session)).messages[2].id
    await store.conversations.bound(session, Boundary("trim", start))
    assert await store.clean(replace(KEEP, most_messages=5)) == {"messages": 1}
    assert await store.clean(replace(KEEP, most_messages=1)) == {"messages": 1}
    assert await store.texts(session) == ["2", "3", "4", "5"]


async def test_small_things_go_too(store: Store) -> None:
    await store.say(PLACE, "r1", user_text("q"))
    session = await store.conversations.open(PLACE)
    await store.conversations.leave_out(session, "r1")
    images = RefusedImages(store.database)
    await images.note(session, "m", [RefusedImage("r1", b"sha", smaller=True)])
    await store.conversations.begin_new(session)
    await store.execute("INSERT INTO errors VALUES ('E', ?, 'there', 'trace')", stamp())
    await store.execute("INSERT INTO notices VALUES ('key', ?)", stamp())
    await store.execute("INSERT INTO owner_links VALUES ('hash', 'telegram', ?, NULL)", stamp())
    jobs = Jobs(store.database)
    await jobs.once("flush", "a", store.now)
    job = await jobs.due("flush", store.now, ())
    assert job is not None
    await jobs.end(job, Ended(store.now, "done", "", None, None, 0))
    await jobs.plan("nightly", "", "0 3 * * *", "UTC", lambda _: NextTime(store.now))
    await store.later(91)
    await store.clean()
    tables = ("messages", "left_out", "refused_images", "boundaries", "errors", "notices")
    for table in (*tables, "owner_links"):
        assert await store.column(f"SELECT * FROM {table}") == [], table
    assert [row.kind for row in await jobs.all()] == ["nightly"]


async def test_an_empty_conversation_sees_its_next_message_after_all_was_deleted(
    store: Store,
) -> None:
    """SQLite gives ids anew when the newest rows are gone: a boundary must not hide what follows."""
    session = await store.say(PLACE, "r1", user_text("a"), assistant_text("b"))
    await store.later(91)
    await store.conversations.begin_new(session)
    await store.clean()
    assert await store.column("SELECT * FROM messages") == []
    await store.say(PLACE, "r2", user_text("new"))
    assert await store.texts(session) == ["new"]


async def test_pictures_go_earlier_than_words(store: Store) -> None:
    result = ToolResultBlock("t", (TextBlock("see"), PICTURE))
    session = await store.say(
        PLACE,
        "r1",
        Message("user", (PICTURE, TextBlock("what is it?"))),
        Message("user", (result,)),
    )
    await store.later(8)
    assert await store.clean() == {"pictures": 2}
    first, second = (s.message for s in (await store.conversations.context(session)).messages)
    assert first.blocks == (TextBlock(PICTURE_GONE), TextBlock("what is it?"))
    assert second.blocks == (ToolResultBlock("t", (TextBlock("see"), TextBlock(PICTURE_GONE))),)
    assert await store.clean() == {}


async def test_pictures_that_a_conversation_in_use_shows_the_model_stay(store: Store) -> None:
    session = await store.say(PLACE, "r1", Message("user", (PICTURE,)))
    await store.later(8)
    await store.say(PLACE, "r2", user_text("and what is in its corner?"))
    assert await store.clean() == {}
    stored = (await store.conversations.context(session)).messages
    assert stored[0].message.blocks == (PICTURE,)


async def test_pictures_have_a_cap_of_which_the_newest_are_kept(store: Store) -> None:
    first = await store.say(PLACE, "r1", Message("user", (PICTURE,)))
    await store.say(OTHER, "r2", Message("user", (PICTURE,)))
    await store.later(1)
    await store.conversations.begin_new(first)
    keep = replace(KEEP, most_picture_bytes=1500)
    assert await store.clean(keep) == {"pictures": 1}
    bodies = await store.column("SELECT body FROM messages ORDER BY id")
    assert [PICTURE_GONE in str(body) for body in bodies] == [True, False]


async def test_others_write_in_between(store: Store) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO sessions (key, channel, account, chat, created_at)"
            " VALUES ('telegram:1:7', 'telegram', '1', '7', '')"
        )
        connection.executemany(
            "INSERT INTO messages VALUES (NULL, 1, ?, 0, 'user', '{}', '2020-01-01')",
            [(f"r{n}",) for n in range(20_000)],
        )

    await store.database.write(fill)
    cleaning = asyncio.create_task(store.clean())
    left: set[object] = set()
    while not cleaning.done():
        await store.execute("INSERT OR REPLACE INTO notices VALUES ('key', ?)", stamp())
        left.update(await store.column("SELECT COUNT(*) FROM messages"))
    assert (await cleaning)["messages"] == 20_000
    assert len(left) > 5, "it was done in steps, and writes came in between"


async def test_snapshots_go_after_their_time_and_above_their_size(
    tmp_path: Path, store: Store
) -> None:
    transcripts = Transcripts(store.database, tmp_path / "transcripts")
    now = datetime.now(UTC)
    paths = [
        tmp_path / await transcripts.snapshot(1, key, [user_text("x" * 1000)], now)
        for key in ("a", "b", "b")
    ]
    _age(paths[0], 40)
    _age(paths[1], 2)
    assert await transcripts.clean(now - 30 * DAY, 10**9) == 1
    assert not paths[0].parent.exists(), "an empty folder goes as well"
    assert await transcripts.clean(now - 30 * DAY, 1_500) == 1
    assert [path.exists() for path in paths] == [False, False, True]
    assert (paths[2].parent / "latest").exists()


async def test_no_snapshots_are_no_fault(tmp_path: Path, store: Store) -> None:
    transcripts = Transcripts(store.database, tmp_path / "transcripts")
    assert await transcripts.clean(store.now, 0) == 0


def _age(path: Path, days: int) -> None:
    at = path.stat().st_mtime - days * 86_400
    os.utime(path, (at, at))
