"""The way in through Bolt: stored first, acknowledged then."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr, TypeAdapter
from slack_bolt.request.async_request import AsyncBoltRequest

from channels.base import Button, Command, InboundMessage, OutboundReply
from channels.errors import NotStored
from channels.slack.api import SlackApi
from channels.slack.channel import SlackChannel
from channels.slack.intake import Intake
from channels.slack.notice import ResponseUrls
from channels.slack.parse import Bot
from channels.slack.people import People
from channels.slack.settings import SlackSettings
from channels.slack.threads import Threads
from memory.clock import stamp
from tests.channels.slack.conftest import Inbox
from tests.servers.slack import Delivery, SlackServer

Listening = asyncio.Task[None]
ANY_TEXT = st.text(st.characters(), max_size=5)  # halves of characters too
dump_json = TypeAdapter(InboundMessage).dump_json


async def test_nothing_is_acknowledged_before_it_is_stored(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    inbox.open.clear()
    sent = server.dm(server.user("Ana")).send("hi")
    await server.wait_for(lambda: inbox.attempts == 1)
    assert not sent.events[0].acknowledged
    inbox.open.set()
    await server.wait_for(lambda: sent.events[0].acknowledged)
    assert [m.text for m in inbox.messages] == ["hi"]


async def test_what_could_not_be_stored_comes_again(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    server.socket.ack_timeout_s = 0.05
    inbox.faults = [NotStored("the disk is full"), NotStored("the disk is full")]
    sent = server.dm(server.user("Ana")).send("hi")
    await server.wait_for(lambda: sent.events[0].acknowledged)
    assert inbox.attempts >= 3, "the history may tell of it too"
    assert {(m.text, m.event) for m in inbox.messages} == {("hi", f"m:{sent.ts}")}


async def test_what_cannot_be_stored_for_long_still_comes_and_is_not_promised_to(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    assert not channel.capabilities.comes_again, "Slack tries three times, within six minutes"
    server.socket.ack_timeout_s = 0.02
    server.socket.max_retries = 20
    inbox.faults = [NotStored("the disk is full")] * 10
    sent = server.dm(server.user("Ana")).send("hi")
    await server.wait_for(lambda: sent.events[0].acknowledged)
    assert {(m.text, m.event) for m in inbox.messages} == {("hi", f"m:{sent.ts}")}


async def test_a_message_that_always_fails_is_left_behind_and_logged_without_its_words(
    server: SlackServer, listening: Listening, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    server.socket.ack_timeout_s = 0.02
    server.socket.max_retries = 20
    dm = server.dm(server.user("Ana"))
    inbox.faults = [ValueError("my secret words")] * 10
    sent = dm.send("my secret words")
    await server.wait_for(lambda: sent.events[0].acknowledged)
    assert inbox.attempts == 3
    inbox.faults.clear()
    dm.send("next")
    assert [m.text for m in await inbox.wait_for(1)] == ["next"]
    assert "is lost" in caplog.text
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text


async def test_a_fault_that_passes_loses_nothing(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    server.socket.ack_timeout_s = 0.02
    inbox.faults = [KeyError("x"), NotStored("the disk is full"), ValueError("y")]
    sent = server.dm(server.user("Ana")).send("hi")
    await server.wait_for(lambda: sent.events[0].acknowledged)
    assert [m.text for m in inbox.messages] == ["hi"]


async def test_a_command_that_fails_is_not_acknowledged_so_that_slack_says_so(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    server.socket.ack_timeout_s = 0.05
    ana = server.user("Ana")
    general = server.channel("general", members=[ana])
    inbox.faults = [ValueError("x")]
    command = general.slash("/galata", "status")
    assert command is not None
    await server.wait_for(lambda: command.given_up)
    assert "failed" in general.ephemerals(ana)[0].shown


def halved(value: Any) -> Any:
    """The same payload with half a character at the end of what people can choose."""
    match value:
        case dict():
            return {key: halved_text(key, one) for key, one in value.items()}
        case list():
            return [halved(one) for one in value]
        case _:
            return value


def halved_text(key: str, value: Any) -> Any:
    chosen = key in ("text", "name", "mimetype", "title", "fallback", "value", "user_name")
    return f"{value}\ud83d" if chosen and isinstance(value, str) else halved(value)


async def test_half_a_character_anywhere_is_replaced_and_keeps_nothing_from_being_stored(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    ana = server.user("Ana\udc00", locale="en-\ud83d")
    dm = server.dm(ana)
    shared = [{"is_share": True, "text": "said"}]
    files = [server.file("a.txt", b"x")]
    sent = dm.send("hi", files=files, attachments=shared, deliver=False)
    for delivery in sent.events:
        delivery.payload = halved(delivery.payload)
        server.deliver(delivery)
    (message,) = await inbox.wait_for(1)
    dump_json(message)
    assert (message.text, message.sender.name) == ("hi\ufffd", "Ana\ufffd")
    assert (message.quote, message.sender.language) == ("said\ufffd", "en-\ufffd")
    (file,) = message.attachments
    assert (file.name, file.media_type) == ("a.txt\ufffd", "text/plain\ufffd")
    await server.wait_for(lambda: all(one.acknowledged for one in sent.events))


async def test_half_a_character_in_a_command_a_press_or_a_thread_is_replaced(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    dm = server.dm(server.user("Ana"))
    dm.slash("/galata", "ask \ud83d")
    root = dm.send("\ud83d", server.bot, deliver=False)
    dm.send("yes", thread=root)
    command, answer = await inbox.wait_for(2)
    assert command.command == Command("ask", "\ufffd")
    assert answer.quote == "you: \ufffd"
    reply = channel.open_reply(command.address, reply_to=None)
    await reply.finish(OutboundReply("x", buttons=(Button("Go", "ask", "a"),)))
    made = dm.from_bot[-1]
    made.blocks[-1]["elements"][0]["value"] = "\ud83d"
    dm.press(made, "Go")
    press = (await inbox.wait_for(3))[-1].press
    assert press is not None
    assert press.value == "\ufffd"


async def test_a_thread_is_told_again_with_a_message_that_could_not_be_stored(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    server.socket.ack_timeout_s = 0.05
    server.subscriptions.discard("app_mention")
    general = server.channel("general", members=[server.user("Ana")])
    root = general.send("the deploy is at noon")
    inbox.faults = [NotStored("the disk is full")]
    general.send("<@BOT> yes?", thread=root)
    (message,) = await inbox.wait_for(1)
    assert message.quote == "Ana: the deploy is at noon"


async def test_the_same_event_four_times_has_one_key(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    sent = server.dm(server.user("Ana")).send("hi")
    delivery = sent.events[0]
    await server.wait_for(lambda: delivery.acknowledged)
    for attempt in (1, 0, 1):
        server.repeat(delivery, attempt=attempt)
    await server.wait_for(lambda: delivery.acks == 4)
    assert len(inbox.messages) == 4
    assert len(inbox.stored) == 1


async def test_a_mention_in_a_thread_is_one_message_of_one_conversation(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    general = server.channel("general", members=[server.user("Ana")])
    root = general.send("a question")
    sent = general.send("<@BOT> yes?", thread=root)
    await server.wait_for(lambda: all(one.acknowledged for one in sent.events))
    assert {one.event["type"] for one in sent.events} >= {"message", "app_mention"}
    assert [(m.address.thread, m.text) for m in inbox.messages] == [(root.ts, "yes?")]


@pytest.mark.parametrize("kind", ["reaction_added", "team_join", "message", "app_mention"])
async def test_every_event_is_acknowledged_also_one_that_cannot_be_read(
    server: SlackServer, listening: Listening, inbox: Inbox, kind: str
) -> None:
    poison = server.deliver(server.event({"type": kind, "user": "U1", "text": ["?"], "ts": 5}))
    await server.wait_for(lambda: poison.acknowledged)
    server.dm(server.user("Ana")).send("next")
    assert [m.text for m in await inbox.wait_for(1)] == ["next"]
    assert poison.sent == 1


async def test_unmatched_interactions_are_acknowledged(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    form = {"type": "view_submission", "view": {}, "user": {"id": "U1"}, "team": {"id": "T1"}}
    delivery = server.deliver(Delivery("interactive", form, accepts_response=True))
    await server.wait_for(lambda: delivery.acknowledged)
    assert delivery.response is None
    assert inbox.messages == []


async def test_a_failing_auth_test_loses_no_message(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    server.fail_next("auth.test", error="internal_error", count=99)
    before = len(server.calls_to("auth.test"))
    server.dm(server.user("Ana")).send("hi")
    assert [m.text for m in await inbox.wait_for(1)] == ["hi"]
    assert len(server.calls_to("auth.test")) == before


async def test_a_message_is_stored_in_time_when_names_do_not_come(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    ana = server.user("Ana")
    server.fail_next("users.info", stall=True)
    first = server.dm(ana).send("one")
    await server.wait_for(lambda: first.events[0].acknowledged, timeout=3)
    server.dm(ana).send("two")
    one, two = await inbox.wait_for(2)
    assert (one.sender.name, two.sender.name) == (ana.id, ana.id)
    assert len(server.calls_to("users.info")) == 1


async def test_names_and_languages_are_asked_for_once(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    ana = server.user("Ana", locale="zh-CN")
    dm = server.dm(ana)
    dm.send("one")
    dm.send("two")
    messages = await inbox.wait_for(2)
    assert {(m.sender.name, m.sender.language) for m in messages} == {("Ana", "zh-CN")}
    assert {m.sender.timezone for m in messages} == {ana.tz}
    assert len(server.calls_to("users.info")) == 1


async def test_messages_of_a_conversation_are_stored_in_their_order(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    ana, bo = server.user("Ana"), server.user("Bo")
    server.subscriptions.discard("app_mention")
    general = server.channel("general", members=[ana, bo])
    general.send("<@BOT> hello", bo)  # Bo's name is known from here on
    await inbox.wait_for(1)
    stall = server.fail_next("users.info", stall=True)
    general.send("<@BOT> first", ana)
    general.send("<@BOT> second", bo)
    await server.wait_for_call("users.info", 2)
    stall.release()
    messages = await inbox.wait_for(3)
    assert [m.text for m in messages] == ["hello", "first", "second"]


async def test_what_comes_late_has_the_time_at_which_it_was_written(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    dm = server.dm(server.user("Ana"))
    first = dm.send("first", deliver=False)
    second = dm.send("second")
    await inbox.wait_for(1)
    server.deliver(first.events[0])
    messages = await inbox.wait_for(2)
    assert [m.text for m in messages] == ["second", "first"]
    in_order = sorted(messages, key=lambda m: stamp(m.sent_at))
    assert [m.text for m in in_order] == ["first", "second"]
    assert [f"{m.sent_at.timestamp():.6f}" for m in in_order] == [first.ts, second.ts]


async def test_a_command_is_never_older_than_what_came_before_it(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    """Slack's clock tells the time of messages, ours that of commands, and ours may be slow."""
    dm = server.dm(server.user("Ana"))
    ahead = dm.send("go", deliver=False)
    ahead.events[0].event["ts"] = "4102444800.000001"
    server.deliver(ahead.events[0])
    await inbox.wait_for(1)
    dm.slash("/galata", "cancel")
    question, cancel = await inbox.wait_for(2)
    assert cancel.sent_at >= question.sent_at


async def test_a_conversation_does_not_wait_for_another(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    ana, bo = server.user("Ana"), server.user("Bo")
    stall = server.fail_next("users.info", stall=True)
    server.dm(ana).send("slow")
    await server.wait_for_call("users.info")
    server.dm(bo).send("quick")
    assert [m.text for m in await inbox.wait_for(1)] == ["quick"]
    stall.release()
    await inbox.wait_for(2)


async def test_a_thread_is_read_once_when_the_bot_is_called_into_it(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    ana, bo = server.user("Ana"), server.user("Bo")
    server.subscriptions.discard("app_mention")
    general = server.channel("general", members=[ana, bo])
    root = general.send("shall we ship, <@BOT>s aside?", bo, deliver=False)
    general.send("Yes & no", ana, thread=root)
    general.send("<@BOT> your view?", ana, thread=root)
    general.send("<@BOT> and why?", ana, thread=root)
    first, second = await inbox.wait_for(2)
    assert first.quote == "Bo: shall we ship, @yous aside?\nAna: Yes & no"
    assert second.quote is None


async def test_a_thread_in_which_the_bot_answered_is_known(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    server.subscriptions.discard("app_mention")
    general = server.channel("general", members=[server.user("Ana")])
    root = general.send("before", deliver=False)
    general.send("my answer", server.bot, thread=root, deliver=False)
    general.send("<@BOT> and now?", thread=root)
    (message,) = await inbox.wait_for(1)
    assert message.quote is None


async def test_a_reply_below_the_bots_own_message_brings_that_message(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    dm = server.dm(server.user("Ana"))
    said = dm.send("Shall I remind you?", server.bot, deliver=False)
    dm.send("Yes", thread=said)
    (message,) = await inbox.wait_for(1)
    assert message.quote == "you: Shall I remind you?"


async def test_a_thread_that_cannot_be_read_does_not_stop_the_message(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    dm = server.dm(server.user("Ana"))
    root = dm.send("first", deliver=False)
    server.fail_next("conversations.replies", error="missing_scope")
    dm.send("second", thread=root)
    (message,) = await inbox.wait_for(1)
    assert (message.text, message.quote) == ("second", None)


async def test_nothing_is_stored_after_listening_has_ended(
    server: SlackServer, channel: SlackChannel, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Intake] = []
    start = Intake.__init__

    def keep(self: Intake, *args: object, **kwargs: object) -> None:
        made.append(self)
        start(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Intake, "__init__", keep)
    task = asyncio.create_task(channel.listen(inbox.receive))
    await server.wait_for_connection()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    payload = server.dm(server.user("Ana")).send("late", deliver=False).events[0].payload
    answer = await made[0].take(AsyncBoltRequest(body=payload, mode="socket_mode"))
    assert answer.status != 200
    assert inbox.messages == []


async def test_a_stop_word_in_a_thread_reaches_the_bridge(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    server.subscriptions.discard("app_mention")
    general = server.channel("general", members=[server.user("Ana")])
    root = general.send("<@BOT> go")
    ignored = general.send("that takes long", thread=root)
    general.send("stop", thread=root)
    question, word = await inbox.wait_for(2)
    assert (word.text, word.addressed, word.quote) == ("stop", False, None)
    assert word.address == question.address
    await server.wait_for(lambda: all(one.acknowledged for one in ignored.events))


def edit_of(event: dict[str, Any]) -> dict[str, Any]:
    """The event about an edit of the message into a command."""
    edited = event | {"text": "!cancel", "edited": {"user": event["user"], "ts": "1732950000.1"}}
    outer = {key: event[key] for key in ("type", "channel", "channel_type", "ts")}
    return outer | {"subtype": "message_changed", "message": edited, "previous_message": event}


def press_on(event: dict[str, Any]) -> dict[str, Any]:
    """The payload of a press on a button of the message."""
    container = {"type": "message", "channel_id": event["channel"], "message_ts": event["ts"]}
    return {
        "type": "block_actions",
        "trigger_id": "t1",
        "user": {"id": event["user"]},
        "container": container,
        "actions": [{"action_id": "stop#0", "value": "r1", "action_ts": "1.2"}],
    }


def put(payload: Any, path: list[str], value: object) -> None:
    """Replace a part of a payload, as deep as the path leads."""
    for key in path[:-1]:
        if isinstance(payload.get(key), dict):
            payload = payload[key]
    payload[path[-1]] = value


@given(
    st.recursive(
        st.none() | st.integers() | ANY_TEXT,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(ANY_TEXT, inner),
        max_leaves=6,
    ),
    st.sampled_from(["message", "edit", "press"]),
    st.lists(
        st.sampled_from(
            [
                *("user", "text", "ts", "channel", "files", "attachments", "thread_ts", "event"),
                *("message", "previous_message", "edited", "subtype", "container", "actions"),
            ]
        ),
        min_size=1,
        max_size=3,
    ),
)
@settings(deadline=None, max_examples=300)
def test_no_payload_is_refused_for_its_form(value: object, kind: str, path: list[str]) -> None:
    """Whatever stands in a payload, it is acknowledged, so that it does not come again."""

    async def take() -> int:
        payload = world.dm(ana).send("hi", deliver=False).events[0].payload
        if kind == "edit":
            payload["event"] = edit_of(payload["event"])
        elif kind == "press":
            payload = press_on(payload["event"])
        put(payload, ["event", *path] if kind != "press" and path != ["event"] else path, value)
        intake = Intake(
            Bot(world.team_id, world.bot.id),
            receive,
            wanted,
            people=people,
            threads=Threads(api, people),
            urls=ResponseUrls(),
        )
        request = AsyncBoltRequest(body={}, mode="socket_mode")
        request.body = payload  # put in afterwards, since Bolt itself fails on some
        answer = await intake.take(request)
        await api.aclose()
        return answer.status

    async def receive(message: InboundMessage) -> None:
        dump_json(message)

    async def wanted(message: InboundMessage) -> bool:
        return True

    world = SlackServer()
    ana = world.user("Ana")
    base_url = "http://127.0.0.1:9/api/"
    token = SecretStr("xoxb-1")
    api = SlackApi(SlackSettings(bot_token=token, app_token=SecretStr("xapp-1"), base_url=base_url))
    people = People(api)
    assert asyncio.run(take()) == 200
