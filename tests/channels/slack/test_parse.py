"""Slack's payloads to messages, from what the local workspace sends."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from bridge.commands.table import NAMES
from channels.base import Address, Command, InboundMessage, Press, Sender
from channels.slack.parse import COMMANDS, Bot, Person, asker, parse, people_in, time_of
from tests.servers.slack import Message, SlackServer

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.fixture
def world() -> SlackServer:
    """A workspace that nobody has connected to."""
    return SlackServer()


def read(
    world: SlackServer, payload: Any, people: dict[str, Person] | None = None
) -> InboundMessage | None:
    return parse(payload, Bot(world.team_id, world.bot.id), people or {}, now=NOW)


def events(world: SlackServer, message: Message) -> list[InboundMessage | None]:
    """What is heard of a message; that its thread has one more reply is not."""
    seen = [(delivery, read(world, delivery.payload)) for delivery in message.events]
    assert all(found is None for delivery, found in seen if delivery.event.get("hidden"))
    return [found for delivery, found in seen if not delivery.event.get("hidden")]


def test_a_direct_message_is_for_the_bot(world: SlackServer) -> None:
    ana = world.user("Ana")
    dm = world.dm(ana)
    sent = dm.send("a < b & c", deliver=False)
    (message,) = events(world, sent)
    assert message is not None
    assert message.address == Address("slack", world.team_id, dm.id, None, private=True)
    assert (message.text, message.event, message.message_id) == (
        "a < b & c",
        f"m:{sent.ts}",
        sent.ts,
    )
    assert (message.sender.id, message.addressed) == (ana.id, True)
    assert f"{message.sent_at.timestamp():.6f}" == sent.ts


def test_a_direct_message_in_a_thread_stays_there(world: SlackServer) -> None:
    dm = world.dm(world.user("Ana"))
    root = dm.send("first", deliver=False)
    (message,) = events(world, dm.send("second", thread=root, deliver=False))
    assert message is not None
    assert message.address.thread == root.ts


def test_one_mention_gives_one_message_whatever_the_event(world: SlackServer) -> None:
    ana = world.user("Ana")
    general = world.channel("general", members=[ana])
    sent = general.send("<@BOT>: what is up?", deliver=False)
    message, mention = events(world, sent)
    assert message == mention
    assert message is not None
    assert (message.text, message.addressed) == ("what is up?", True)
    assert message.address == Address("slack", world.team_id, general.id, sent.ts, private=False)


def test_a_mention_in_a_thread_belongs_to_the_thread(world: SlackServer) -> None:
    general = world.channel("general", members=[world.user("Ana")])
    root = general.send("a question", deliver=False)
    both = events(world, general.send("ask <@BOT>", thread=root, deliver=False))
    assert [m and m.address.thread for m in both] == [root.ts, root.ts]


def test_channel_text_without_a_mention_is_nothing_for_us(world: SlackServer) -> None:
    ana = world.user("Ana")
    general = world.channel("general", members=[ana])
    root = general.send("hello all, also <@U0OTHER>", deliver=False)
    assert events(world, root) == [None]
    assert events(world, general.send("stop", deliver=False)) == [None]
    assert events(world, general.send("please stop it", thread=root, deliver=False)) == [None]
    group = world.group_dm([ana, world.user("Bo")])
    assert events(world, group.send("hello", ana, deliver=False)) == [None]


@pytest.mark.parametrize("word", ["cancel", "stop", "!cancel", " Stop "])
def test_a_stop_word_in_a_thread_reaches_the_bridge_unaddressed(
    world: SlackServer, word: str
) -> None:
    general = world.channel("general", members=[world.user("Ana")])
    root = general.send("<@BOT> go", deliver=False)
    (message,) = events(world, general.send(word, thread=root, deliver=False))
    assert message is not None
    assert not message.addressed
    assert message.address.thread == root.ts


def test_bots_are_not_heard_even_when_they_mention_us(world: SlackServer) -> None:
    other = world.user("Other", is_bot=True)
    general = world.channel("general", members=[world.user("Ana"), other])
    root = general.send("<@BOT> go", general.members[0], deliver=False)
    sent = general.send("<@BOT> ✓", other, thread=root, deliver=False)
    assert events(world, sent) == [None, None]
    assert events(world, general.send("✓", world.bot, thread=root, deliver=False)) == [None]


@pytest.mark.parametrize(
    "change",
    [
        {"subtype": "message_changed", "hidden": True},
        {"subtype": "message_deleted", "hidden": True},
        {"subtype": "channel_join"},
        {"subtype": "bot_message"},
        {"edited": {"user": "U1", "ts": "1.0"}},
        {"user": "USLACKBOT"},
        {"user": None},
        {"type": "reaction_added"},
    ],
)
def test_edits_notices_and_unknown_kinds_are_nothing_for_us(
    world: SlackServer, change: dict[str, Any]
) -> None:
    sent = world.dm(world.user("Ana")).send("hi", deliver=False)
    payload = sent.events[0].payload
    payload["event"] |= change
    assert read(world, payload) is None


def test_unfurls_and_replies_do_not_repeat_a_mention(world: SlackServer) -> None:
    event = {
        "type": "message",
        "subtype": "message_changed",
        "channel": "C1",
        "ts": "2.0",
        "message": {"ts": "1.0", "text": f"<@{world.bot.id}> hi", "reply_count": 1},
        "previous_message": {"ts": "1.0", "text": f"<@{world.bot.id}> hi"},
    }
    assert read(world, {"type": "event_callback", "event": event}) is None


@pytest.mark.parametrize("subtype", ["file_share", "thread_broadcast", "me_message"])
def test_what_a_person_wrote_is_heard_in_each_form(world: SlackServer, subtype: str) -> None:
    sent = world.dm(world.user("Ana")).send("hi", subtype=subtype, deliver=False)
    assert [m and m.text for m in events(world, sent)] == ["hi"]


def test_names_appear_where_people_are_mentioned(world: SlackServer) -> None:
    ana, bo = world.user("Ana"), world.user("Bo")
    dm = world.dm(ana)
    payload = dm.send(f"ask {bo.mention}", deliver=False).events[0].payload
    assert people_in(payload) == (ana.id, bo.id)
    people = {ana.id: Person("Ana", "pt-BR", "America/Bahia"), bo.id: Person("Bo")}
    message = read(world, payload, people)
    assert message is not None
    assert message.text == "ask @Bo"
    assert message.sender == Sender(ana.id, "Ana", "pt-BR", "America/Bahia")


def test_where_somebody_lives_is_no_matter_of_a_channels(world: SlackServer) -> None:
    ana = world.user("Ana")
    sent = world.channel("general", members=[ana]).send("<@BOT> hi", deliver=False)
    people = {ana.id: Person("Ana", "pt-BR", "America/Bahia")}
    read_ = [read(world, event.payload, people) for event in sent.events]
    assert {m.sender for m in read_ if m is not None} == {Sender(ana.id, "Ana", "pt-BR")}


def test_files_are_told_apart(world: SlackServer) -> None:
    dm = world.dm(world.user("Ana"))
    files = [
        world.file("a.png", b"1234", "image/png"),
        world.file("b.py", b"x = 1", "application/octet-stream"),
        world.file("c.zip", b"PK", "application/zip"),
        world.file("d.mp4", b"....", "video/mp4"),
    ]
    (message,) = events(world, dm.send("", files=files, deliver=False))
    assert message is not None
    assert [(a.kind, a.name, a.size_bytes) for a in message.attachments] == [
        ("image", "a.png", 4),
        ("document", "b.py", 5),
    ]
    assert message.unreadable == "document"


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ({"mimetype": "video/mp4"}, "video"),
        ({"mimetype": "audio/mp4"}, "audio"),
        ({"mimetype": "audio/webm", "subtype": "slack_audio"}, "voice"),
        ({"mimetype": "application/pdf"}, "document"),
        ({"mimetype": "image/heic"}, "document"),
        ({"mimetype": "text/plain", "is_external": True}, "document"),
        ({"mimetype": "text/plain", "url_private": None}, "document"),
        ({"id": "F1", "mode": "tombstone", "url_private": None, "size": None}, "document"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_by_its_kind(
    world: SlackServer, file: dict[str, Any], kind: str
) -> None:
    payload = world.dm(world.user("Ana")).send("see", deliver=False).events[0].payload
    known = {"url_private": "https://files.slack.com/x", "size": 10, "name": "x"}
    payload["event"]["files"] = [known | file]
    message = read(world, payload)
    assert message is not None
    assert (message.attachments, message.unreadable) == ((), kind)


def test_a_file_that_is_too_large_is_no_unreadable_one(world: SlackServer) -> None:
    payload = world.dm(world.user("Ana")).send("see", deliver=False).events[0].payload
    file = {"url_private": "https://files.slack.com/x", "size": 10**9, "name": "x.txt"}
    payload["event"]["files"] = [file]
    message = read(world, payload)
    assert message is not None
    assert [one.size_bytes for one in message.attachments] == [10**9]
    assert message.unreadable is None


def test_a_forwarded_message_is_a_quote(world: SlackServer) -> None:
    shared = [{"is_share": True, "text": "as <@U7> said &lt;3"}, {"text": "an unfurled page"}]
    sent = world.dm(world.user("Ana")).send("", deliver=False, attachments=shared)
    (message,) = events(world, sent)
    assert message is not None
    assert message.quote == "as @U7 said <3"


def test_a_word_beside_a_forwarded_message_executes_nothing(world: SlackServer) -> None:
    ana, shared = world.user("Ana"), [{"is_share": True, "text": "stop"}]
    (message,) = events(world, world.dm(ana).send("stop", deliver=False, attachments=shared))
    assert message is not None
    assert not message.own_words
    general = world.channel("general", members=[ana])
    root = general.send("<@BOT> go", deliver=False)
    sent = general.send("stop", thread=root, deliver=False, attachments=shared)
    assert events(world, sent) == [None]
    unfurled = [{"from_url": "https://example.org", "text": "stop"}]
    (message,) = events(world, world.dm(ana).send("see", deliver=False, attachments=unfurled))
    assert message is not None
    assert message.own_words


def test_what_an_app_wrote_for_a_person_is_not_their_word(world: SlackServer) -> None:
    payload = world.dm(world.user("Ana")).send("stop", deliver=False).events[0].payload
    payload["event"]["app_id"] = "A0OTHER001"
    message = read(world, payload)
    assert message is not None
    assert not message.own_words


def slash(channel: str, text: str) -> dict[str, Any]:
    return {
        "command": "/galata",
        "text": text,
        "user_id": "U1",
        "channel_id": channel,
        "trigger_id": "1.2.a",
    }


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("cancel", Command("cancel")),
        ("  NEW  now please ", Command("new", "now please")),
        ("/status", Command("status")),
        ("cancle", Command("cancle")),
        ("warum?", Command("ask", "warum?")),
        ("", Command("help")),
        ("ask <@U5|bo> a &lt; b", Command("ask", "@bo a < b")),
        ("why is it late?", Command("ask", "why is it late?")),
        ("newer  versions\nof it", Command("ask", "newer  versions\nof it")),
        ("ask\ntwo\nlines", Command("ask", "two\nlines")),
    ],
)
def test_a_slash_command_has_a_name_and_arguments(
    world: SlackServer, text: str, command: Command
) -> None:
    message = read(world, slash("C1", text))
    assert message is not None
    assert message.command == command
    assert message.address == Address("slack", world.team_id, "C1", None, private=False)
    assert (message.event, message.sent_at) == ("c:1.2.a", NOW)
    one = asker(message.message_id)
    assert one is not None
    assert (one.user, one.trigger) == ("U1", "1.2.a")


def test_the_commands_are_those_that_the_bridge_carries_out() -> None:
    assert NAMES == COMMANDS


def test_a_slash_command_in_a_direct_message_is_private(world: SlackServer) -> None:
    message = read(world, slash("D1", "status"))
    assert message is not None
    assert message.address.private


def press(channel: str, thread: str | None) -> dict[str, Any]:
    where = {"type": "message", "message_ts": "9.1", "channel_id": channel}
    return {
        "type": "block_actions",
        "user": {"id": "U1"},
        "trigger_id": "t1",
        "container": where | ({"thread_ts": thread} if thread else {}),
        "actions": [{"action_id": "stop", "value": "r1", "action_ts": "9.5"}],
    }


@pytest.mark.parametrize(
    ("channel", "sent", "thread"),
    [("C1", "8.0", "8.0"), ("D1", None, None), ("D1", "9.1", None), ("D1", "7.0", "7.0")],
)
def test_a_press_belongs_to_the_conversation_of_its_message(
    world: SlackServer, channel: str, sent: str | None, thread: str | None
) -> None:
    message = read(world, press(channel, sent))
    assert message is not None
    assert message.press == Press("t1", "stop", "r1", "9.1")
    assert (message.event, message.message_id) == ("p:9.1:9.5", "9.1")
    assert (message.address.chat, message.address.thread) == (channel, thread)
    assert people_in(press(channel, sent)) == ("U1",)


@pytest.mark.parametrize("kind", ["shortcut", "app_rate_limited", ""])
def test_other_payloads_are_nothing_for_us(world: SlackServer, kind: str) -> None:
    assert read(world, {"type": kind}) is None


def test_the_time_of_a_message_is_exact() -> None:
    assert time_of("1732950000.123456") == datetime(2024, 11, 30, 7, 0, 0, 123456, UTC)
    assert time_of("1732950000") == datetime(2024, 11, 30, 7, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("limits", ""),
        ("Limits set cost_per_day_usd 3", "set cost_per_day_usd 3"),
        ("limits here set\npaused: yes", "here set\npaused: yes"),
        ("limits replace language: de", "replace language: de"),
        ("limits undo", "undo"),
        ("limits here log ", "here log"),
        ("limits here", "here"),
        ("limits here and elsewhere?", None),
        ("limits text", "text"),
        ("limits text of what you write to 5 lines", None),
        ("limits of Python's integers?", None),
        ("limits set", None),
        ("what limits set us apart?", None),
        ("resume", None),
    ],
)
def test_after_a_mention_the_verbs_of_limits_are_commands(
    world: SlackServer, text: str, args: str | None
) -> None:
    """What changes something is answered to its sender alone, as after `/galata`."""
    general = world.channel("general", members=[world.user("Ana")])
    root = general.send("a question", deliver=False)
    sent = general.send(f"<@BOT> {text}", thread=root, deliver=False)
    for message in events(world, sent):
        assert message is not None
        assert message.command == (None if args is None else Command("limits", args))
        alone = bool(args) and args != "here"
        assert message.whispered is alone
        one = asker(message.message_id)
        assert (None if one is None else one.user) == (message.sender.id if alone else None)
    for delivery in sent.events:
        delivery.event["app_id"] = "A0OTHER"  # another app wrote it in their name
    assert all(m is not None and m.command is None for m in events(world, sent))
