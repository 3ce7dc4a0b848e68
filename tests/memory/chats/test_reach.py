"""A chat's move takes along whatever names the chat; an erased chat leaves totals only."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.messages import assistant_text, user_text
from agent.provider import Usage
from memory.access.people import People
from memory.chats import erasing, moving
from memory.chats.reach import ChatPlace, Chats, Move
from memory.conversations import Boundary, Conversations, SessionPlace
from memory.database import Database
from memory.inbox import Entry, Inbox
from memory.usage import Cost, UsageRow, UsageStore

OLD, NEW = "-451", "-100247"
MOVE = Move("telegram", "1", OLD, NEW)
OLD_PLACE, NEW_PLACE = ChatPlace("telegram", "1", OLD), ChatPlace("telegram", "1", NEW)

# Columns with an id of a chat in them that stay as they are, and why.
EXCEPTIONS = {
    ("moved_chats", "old"): "the id that the chat had, which is what the table is for",
    ("audit", "target"): "append-only: what was done then, under the name of then",
    ("audit", "before"): "the same",
}
# What names a chat is called one of these, or holds such a name within its text.
SUSPICIOUS = ("chat", "key", "event", "body", "place", "target", "address", "scope", "thread")
HARMLESS = {
    ("messages", "body"): "what was said",
    ("dialogues", "body"): "its row goes with a move, and ends after ten minutes",
    ("private_talks", "chat"): "a private chat, which never moves",
    ("outbox", "key"): "a run's id, or an act's number in the inbox",
    ("outbox_parts", "body"): "a rendered text, without an address",
    ("sessions", "thread"): "a topic within the chat; a basic group, which alone moves, has none",
    ("unread_places", "thread"): "a thread within the chat; a basic group has none",
    ("errors", "place"): "where in our code; a lane's key at most, and never read again",
}


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "galata.db")
    yield opened
    await opened.close()


@pytest.fixture
async def chats(database: Database) -> Chats:
    made = Chats(database)
    await made.load()
    return made


def rekey(key: str) -> str:
    return key.replace(OLD, NEW)


def place(chat: str, topic: str | None = None) -> SessionPlace:
    key = f"telegram:1:{chat}" + (f":t={topic}" if topic else "")
    return SessionPlace(key, "telegram", "1", chat, topic)


def entry(chat: str, number: int, person: str = "ana") -> Entry:
    body = {
        "address": {"channel": "telegram", "account": "1", "chat": chat, "private": False},
        "event": f"m:{number}",
        "message_id": str(number),
    }
    sent_at = f"2026-11-30T10:00:{number:02}"
    return Entry(place(chat), f"m:{number}", person, "turn", json.dumps(body), sent_at)


async def say(database: Database, chat: str, run: str, person: str = "ana") -> int:
    conversations = Conversations(database)
    session = await conversations.open(place(chat))
    said = [(0, user_text(f"q {run}")), (1, assistant_text(f"a {run}"))]
    await conversations.append(session, run, said)
    await conversations.speaker(session, person)
    usage = Usage(10, 5)
    row = UsageRow(run, 1, session, person, "m", "answer", "completed", usage, 7)
    await UsageStore(database).book([row])
    return session


async def columns(database: Database) -> list[tuple[str, str]]:
    rows = await database.read(
        "SELECT m.name, i.name FROM sqlite_schema m, pragma_table_info(m.name) i"
        " WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'"
    )
    return [(str(row[0]), str(row[1])) for row in rows]


async def of_session(database: Database) -> set[str]:
    rows = await database.read(
        "SELECT m.name FROM sqlite_schema m, pragma_foreign_key_list(m.name) f"
        " WHERE m.type = 'table' AND f.\"table\" = 'sessions'"
    )
    return {str(row[0]) for row in rows}


async def test_every_column_that_can_name_a_chat_follows_it_or_says_why_not(
    database: Database,
) -> None:
    suspects = {
        (table, column)
        for table, column in await columns(database)
        if any(word in column for word in SUSPICIOUS)
    }
    declared = set(EXCEPTIONS) | set(HARMLESS) | moving.CHAT_COLUMNS
    assert suspects - declared == set(), (
        "say in memory/chats/moving.py how these follow a chat, or here why not"
    )
    assert declared <= set(await columns(database)), "declared, but not in the schema"


async def test_every_table_of_sessions_is_joined_and_erased(database: Database) -> None:
    tables = await of_session(database)
    assert tables == {*moving.OF_SESSION, "speakers"}
    assert tables == {*erasing.OF_SESSION, "usage"}


async def test_nothing_in_the_database_names_the_old_id_after_a_move(
    database: Database, chats: Chats
) -> None:
    await say(database, OLD, "r1")
    inbox = Inbox(database)
    await inbox.put(entry(OLD, 17))
    refused = Entry(place(OLD), "m:18", "eve", "refused", None, "2026-11-30T10:00")
    await inbox.put(refused)
    await People(database).tell_once(f"no_access:telegram:1:{OLD}:eve", timedelta(days=1))
    await chats.gone(OLD_PLACE, removed=True)
    await chats.expect(MOVE)
    await chats.carry(MOVE, rekey)
    kept = set(EXCEPTIONS) | {("inbox", "event"), ("inbox", "body")}
    for table, column in await columns(database):
        if (table, column) not in kept:
            rows = await database.read(f'SELECT "{column}" FROM "{table}"')
            assert not [row[0] for row in rows if OLD in str(row[0])], f"{table}.{column}"
    rows = await inbox.open_turns(f"telegram:1:{NEW}")
    assert [json.loads(row.body)["address"]["chat"] for row in rows] == [NEW]


async def test_the_same_number_in_both_chats_stays_two_messages(
    database: Database, chats: Chats
) -> None:
    inbox = Inbox(database)
    for chat in (OLD, NEW):
        assert await inbox.put(entry(chat, 17)) is not None
    await chats.expect(MOVE)
    for _ in range(2):
        assert await chats.carry(MOVE, rekey) == [f"telegram:1:{NEW}"]
    rows = await inbox.open_turns(f"telegram:1:{NEW}")
    bodies = [json.loads(row.body) for row in rows]
    assert sorted(body["event"] for body in bodies) == ["m:17", f"moved:{OLD}:m:17"]
    # The number means another message now, so that nothing may reply to it.
    assert sorted(body["message_id"] for body in bodies) == ["", "17"]
    again = entry(NEW, 17)
    assert await inbox.put(again) is None


async def test_a_conversation_that_has_begun_under_the_new_id_becomes_one_with_the_old(
    database: Database, chats: Chats
) -> None:
    older = await say(database, OLD, "r1")
    await say(database, OLD, "r2", "bo")
    await Conversations(database).bound(older, Boundary("trim", 1))
    await say(database, NEW, "r3", "cleo")
    await say(database, NEW, "r4", "ana")
    await chats.expect(MOVE)
    await chats.carry(MOVE, rekey)
    conversations = Conversations(database)
    session = await conversations.open(place(NEW))
    assert session == older
    context = await conversations.context(session)
    assert [m.run_id for m in context.messages if m.ordinal == 0] == ["r1", "r2", "r3", "r4"]
    numbers = [await conversations.speaker(session, who) for who in ("ana", "bo", "cleo")]
    assert numbers == [1, 2, 3]
    assert (await UsageStore(database).of_session(session))[0] == 4
    assert await chats.session_keys(OLD_PLACE) == []


async def test_moves_are_known_after_a_restart_and_lead_to_the_last_id(
    database: Database, chats: Chats
) -> None:
    assert await chats.expect(MOVE)
    assert not await chats.expect(MOVE), "a repeat is nothing new"
    assert not await chats.expect(Move("telegram", "1", NEW, OLD)), "never back in a circle"
    assert await chats.expect(Move("telegram", "1", NEW, "-100300"))
    fresh = Chats(database)
    await fresh.load()
    for known in (chats, fresh):
        assert known.current(OLD_PLACE).chat == "-100300"
        last = ChatPlace("telegram", "1", "-100300")
        assert known.names(last) == {OLD, NEW, "-100300"}
        assert known.current(ChatPlace("telegram", "2", OLD)).chat == OLD, "another bot's chat"


async def test_a_gone_chat_comes_back_with_its_next_message(
    database: Database, chats: Chats
) -> None:
    await chats.gone(NEW_PLACE, removed=False)
    fresh = Chats(database)
    await fresh.load()
    assert fresh.is_gone(NEW_PLACE)
    assert not fresh.is_gone(OLD_PLACE)
    assert await fresh.back(NEW_PLACE)
    assert not await fresh.back(NEW_PLACE)
    later = datetime.now(UTC) + timedelta(days=1)
    assert await fresh.removed_before(later) == []


async def test_only_chats_that_the_bot_was_removed_from_are_due(
    database: Database, chats: Chats
) -> None:
    await say(database, OLD, "r1")
    await say(database, NEW, "r2")
    later = datetime.now(UTC) + timedelta(days=1)
    await chats.gone(OLD_PLACE, removed=False)
    assert await chats.removed_before(later) == []
    await chats.gone(OLD_PLACE, removed=True)
    assert await chats.removed_before(later) == [OLD_PLACE]
    assert await chats.removed_before(datetime.now(UTC) - timedelta(days=1)) == []
    await chats.gone(ChatPlace("telegram", "1", ""), removed=True)  # the whole account
    assert set(await chats.removed_before(later)) == {OLD_PLACE, NEW_PLACE}
    assert chats.is_gone(NEW_PLACE)
    await chats.back(NEW_PLACE)
    assert await chats.removed_before(later) == [OLD_PLACE]


async def test_an_erased_chat_leaves_totals_without_a_person_and_a_line_in_the_audit(
    database: Database, chats: Chats
) -> None:
    await say(database, OLD, "r1")
    await say(database, OLD, "r2", "bo")
    await say(database, "77", "r3")
    inbox = Inbox(database)
    await inbox.put(entry(OLD, 17))
    await inbox.put(entry("77", 17))
    await People(database).tell_once(f"no_access:telegram:1:{OLD}:eve", timedelta(days=1))
    await People(database).tell_once(f"no_access:telegram:1:{OLD}0:eve", timedelta(days=1))
    before = await UsageStore(database).cost_since(datetime.now(UTC) - timedelta(days=1))
    await chats.expect(MOVE)
    await chats.carry(MOVE, rekey)
    for _ in range(2):
        await chats.erase(NEW_PLACE)
    for table in await of_session(database):
        rows = await database.read(f"SELECT COUNT(*) FROM {table}")
        others = await database.read(
            f"SELECT COUNT(*) FROM {table} WHERE session_id IN"
            " (SELECT id FROM sessions WHERE chat = '77')"
        )
        totals = 1 if table == "usage" else 0
        assert rows[0][0] == others[0][0] + totals, table
    total = await database.read("SELECT * FROM usage WHERE session_id IS NULL")
    assert (total[0]["person"], total[0]["input_tokens"]) == ("", 20)
    after = await UsageStore(database).cost_since(datetime.now(UTC) - timedelta(days=1))
    assert after == before == Cost(21)
    audit = await database.read("SELECT target FROM audit WHERE action = 'chat.erased'")
    assert audit[0][0] == f"telegram:1:{NEW}"
    keys = await database.read("SELECT key FROM notices")
    assert [row[0] for row in keys] == [f"no_access:telegram:1:{OLD}0:eve"]
