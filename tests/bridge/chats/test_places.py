"""What of Slack's history is wanted: in channels where each message is a question, since the bot was
connected last."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from bridge.chats.places import SlackPlaces
from bridge.limits.kinds import Known
from bridge.limits.policies import PolicyLayers, chat_policies
from channels.slack.catch_up import KnownPlace
from memory.chats.reach import Chats
from memory.connected import Connected
from memory.conversations import Conversations, SessionPlace
from memory.database import Database
from memory.unread import UnreadPlaces, note_restore

TEAM = "T1"
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


def wanted(found: list[KnownPlace]) -> dict[tuple[str, str | None], datetime | None]:
    return {(one.chat, one.thread): one.every for one in found}


async def test_all_is_wanted_where_each_message_is_a_question_since_it_was_connected(
    tmp_path: Path,
) -> None:
    database = await Database.open(tmp_path / "galata.db")
    chats, connected = Chats(database), Connected(database)
    policies = chat_policies(PolicyLayers(), tmp_path, database, chats, Known())
    places = SlackPlaces(chats, policies, UnreadPlaces(database), connected)
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
    await database.close()
