"""What of Slack's history is wanted: in channels where each message is a question, since the bot was
connected last."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bridge.chats.places import SlackPlaces
from bridge.limits.kinds import Known
from bridge.limits.policies import PolicyLayers, chat_policies
from channels.slack.catch_up import KnownPlace
from memory.chats.reach import Chats
from memory.connected import Connected
from memory.conversations import Conversations, SessionPlace
from memory.database import Database
from memory.policies import FILE, PolicyPlace, PolicyStore
from memory.unread import UnreadPlaces, note_restore

TEAM = "T1"
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


def wanted(found: list[KnownPlace]) -> dict[tuple[str, str | None], datetime | None]:
    return {(one.chat, one.thread): one.every for one in found}


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "galata.db")
    yield opened
    await opened.close()


async def test_all_is_wanted_where_each_message_is_a_question_since_it_was_connected(
    tmp_path: Path, database: Database
) -> None:
    chats, connected = Chats(database), Connected(database)
    policies = chat_policies(PolicyLayers(), tmp_path, database, chats, Known())
    places = SlackPlaces(chats, policies, PolicyStore(database), UnreadPlaces(database), connected)
    groups = tmp_path / "groups" / "slack"
    (groups / "C2").mkdir(parents=True)
    (groups / "C1.yaml").write_text("answer_when: every_message\n")
    (groups / "C2" / "2%2E0.yaml").write_text("answer_when: every_message\n")
    for chat, thread in (("C1", "1.0"), ("C2", "2.0"), ("C2", "3.0"), ("D1", None)):
        key = f"slack:{TEAM}:{chat}:{thread}"
        await Conversations(database).open(SessionPlace(key, "slack", TEAM, chat, thread))
    found = wanted(await places.known(TEAM, 10))
    assert set(found.values()) == {None}, "it was never connected"
    await places.connected(TEAM, AT)
    assert wanted(await places.known(TEAM, 10)) == {
        ("C1", "1.0"): AT,
        ("C1", None): AT,
        ("C2", "2.0"): AT,
        ("C2", "3.0"): None,
        ("D1", None): None,
    }
    assert len(await places.known(TEAM, 1)) <= 2, "one, and its channel"
    later = (AT + timedelta(hours=1)).isoformat()
    await database.write(lambda connection: note_restore(connection, later))
    restored = await places.restored_at()
    assert restored is not None
    assert wanted(await places.known(TEAM, 10))["C1", None] == restored, (
        "not what was answered since"
    )


@pytest.mark.parametrize("thread", [None, "1.0"])
async def test_what_was_said_before_each_message_was_a_question_is_none_after_a_crash(
    tmp_path: Path, database: Database, thread: str | None
) -> None:
    """The connection is noted once a minute. What a file says that was changed meanwhile holds for all
    that was said while nothing ran."""
    chats, store, connected = Chats(database), PolicyStore(database), Connected(database)
    policies = chat_policies(PolicyLayers(), tmp_path, database, chats, Known())
    await Conversations(database).open(SessionPlace("k", "slack", TEAM, "C1", "1.0"))
    noted = datetime.now(UTC) - timedelta(seconds=50)
    await connected.note("slack", TEAM, noted)
    place = PolicyPlace("slack", "C1", thread or "")
    for line in ("", "answer_when: every_message\n", "answer_when: every_message\npaused: no\n"):
        await store.put(place, line, "slack:boss")
    begun = datetime.fromisoformat((await store.changes(place, 2))[-1].at)
    places = SlackPlaces(chats, policies, store, UnreadPlaces(database), connected)
    path = policies.files.path(place)
    path.parent.mkdir(parents=True)
    path.write_text(line)
    assert noted < begun
    assert wanted(await places.known(TEAM, 10))["C1", thread] == begun
    await store.put(place, "", FILE)
    await store.put(place, line, FILE)
    assert wanted(await places.known(TEAM, 10))["C1", thread] == begun, "after this start"
