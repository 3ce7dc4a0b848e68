"""Receiving: nothing is lost, nothing blocks the queue, errors say what to do."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import asdict
from typing import Any

import pytest

from channels.errors import ChannelFailed, ChannelUnavailable, NotStored
from channels.telegram import poll
from channels.telegram.channel import TelegramChannel
from tests.channels.telegram.conftest import Inbox, make_channel
from tests.servers.telegram import TelegramServer

pytestmark = pytest.mark.usefixtures("listening")


async def test_a_text_is_confirmed_when_it_is_stored_and_not_before(
    server: TelegramServer, inbox: Inbox
) -> None:
    inbox.open.clear()
    server.private(server.user("Ana")).send("hello")
    await server.wait_for(lambda: inbox.attempts)
    assert server.updates.pending == 1
    inbox.open.set()
    await server.wait_until_confirmed()
    (message,) = inbox.messages
    assert (message.text, message.address.account) == ("hello", "123456")


async def test_what_cannot_be_stored_is_tried_again_and_keeps_its_place(
    server: TelegramServer, inbox: Inbox
) -> None:
    inbox.faults += [NotStored("the disk is full")] * 2
    chat = server.private(server.user("Ana"))
    chat.send("first")
    chat.send("second")
    await inbox.wait_for(2)
    assert [message.text for message in inbox.messages] == ["first", "second"]
    assert inbox.attempts == 4
    await server.wait_until_confirmed()


async def test_a_poison_update_does_not_block_the_queue(
    server: TelegramServer, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    bad = server.push_raw({"message": {"message_id": 1, "text": "secret words"}})
    server.push_raw({"message": "secret words"})
    server.push_raw({"callback_query": {}})
    server.push_raw({"message": None, "a_new_kind": {"x": 1}})
    server.private(server.user("Ana")).send("still here")
    (message,) = await inbox.wait_for(1)
    assert message.text == "still here"
    await server.wait_until_confirmed()
    assert f"update {bad} cannot be read" in caplog.text
    assert "secret words" not in caplog.text


async def test_as_long_as_nothing_can_be_stored_the_queue_waits(
    server: TelegramServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poll, "_STORE_AGAIN_S", (0.001,))
    inbox.faults += [NotStored("database is locked")] * 50
    server.private(server.user("Ana")).send("hello")
    (message,) = await inbox.wait_for(1)
    assert (message.text, inbox.attempts) == ("hello", 51)
    await server.wait_until_confirmed()


async def test_no_stop_waits_for_another_message_that_cannot_be_stored(
    server: TelegramServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poll, "_STORE_AGAIN_S", (0.01,))

    def seen() -> list[str]:
        return [one.command.name if one.command else one.text for one in inbox.tried]

    inbox.faults += [NotStored("database is locked")] * 10_000
    ana, bob = server.private(server.user("Ana")), server.private(server.user("Bob"))
    bob.send("first")
    ana.send("second")
    ana.send("/cancel")
    await server.wait_for(lambda: seen().count("cancel") > 1)
    assert "second" not in seen()
    inbox.faults.clear()
    await inbox.wait_for(3)
    assert seen()[-3:] == ["first", "second", "cancel"]
    await server.wait_until_confirmed()


async def test_who_comes_behind_what_cannot_be_stored_is_handed_over_once_as_such(
    server: TelegramServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poll, "_STORE_AGAIN_S", (0.01,))
    ana, bob = server.private(server.user("Ana")), server.private(server.user("Bob"))
    for trouble in ("one", "two"):
        inbox.faults += [NotStored("database is locked")] * 10_000
        ana.send(f"first {trouble}")
        bob.send(f"behind {trouble}")
        await server.wait_for(lambda: inbox.behind)
        tried = inbox.attempts
        await server.wait_for(lambda before=tried: inbox.attempts > before + 3)
        assert [message.text for message in inbox.behind] == [f"behind {trouble}"]
        assert server.updates.pending == 2
        inbox.faults.clear()
        inbox.behind.clear()
        await server.wait_until_confirmed()
    texts = [message.text for message in inbox.messages]
    assert texts == ["first one", "behind one", "first two", "behind two"]
    assert not any(message.behind for message in inbox.messages)


async def test_a_message_that_always_fails_is_left_behind(
    server: TelegramServer,
    inbox: Inbox,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(poll, "_FAULT_AGAIN_S", (0.001, 0.001))
    inbox.faults += [ValueError("secret words")] * 3
    chat = server.private(server.user("Ana"))
    chat.send("secret words")
    chat.send("still here")
    (message,) = await inbox.wait_for(1)
    assert (message.text, inbox.attempts) == ("still here", 4)
    await server.wait_until_confirmed()
    (lost,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert lost.startswith("update 1001 is lost: it cannot be taken in (ValueError)")
    assert "conftest.py" in lost
    assert "secret words" not in caplog.text


async def test_a_passing_fault_loses_nothing(
    server: TelegramServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poll, "_FAULT_AGAIN_S", (0.001, 0.001))
    inbox.faults += [ValueError("x"), NotStored("locked"), KeyError("y")]
    server.private(server.user("Ana")).send("hello")
    (message,) = await inbox.wait_for(1)
    assert message.text == "hello"


HALF = "\ud83d"
ANA = {"id": 5, "is_bot": False, "first_name": "Ana", "language_code": HALF}
CHAT = {"id": -100500, "type": "supergroup", "title": HALF}
FILE = {
    "file_id": HALF,
    "file_unique_id": "u",
    "file_name": f"{HALF}.txt",
    "mime_type": f"text/{HALF}",
}
COMMAND = {"type": "bot_command", "offset": 0, "length": 4}
MESSAGE: dict[str, Any] = {"message_id": 1, "date": 1_796_000_000, "chat": CHAT, "from": ANA}
SAID = MESSAGE | {"text": f"/ask {HALF} why", "entities": [COMMAND]}


@pytest.mark.parametrize(
    "update",
    [
        {"message": SAID},
        {"message": SAID | {"from": ANA | {"first_name": HALF, "last_name": HALF}}},
        {"message": SAID | {"sender_chat": CHAT}},
        {"message": SAID | {"quote": {"text": HALF, "position": 0}}},
        {"message": SAID | {"reply_to_message": SAID | {"message_id": 0}}},
        {"message": SAID | {"reply_to_message": MESSAGE | {"document": FILE}}},
        {"message": MESSAGE | {"document": FILE, "caption": "/ask", "caption_entities": [COMMAND]}},
        {"message": MESSAGE | {"text": f"/{HALF}", "entities": [COMMAND], HALF: HALF}},
        {"edited_message": SAID | {"edit_date": 1_796_000_001}},
        {
            "callback_query": {"id": HALF, "from": ANA, "chat_instance": HALF}
            | {"message": SAID, "data": f"stop:{HALF}"}
        },
    ],
)
async def test_half_a_character_anywhere_is_replaced_before_it_is_stored(
    server: TelegramServer, inbox: Inbox, update: dict[str, Any]
) -> None:
    server.push_raw(update)
    (message,) = await inbox.wait_for(1)
    stored = json.dumps(asdict(message), ensure_ascii=False, default=str)
    assert stored.encode()
    assert "\ufffd" in stored
    await server.wait_until_confirmed()


async def test_entities_keep_their_place_behind_half_a_character(
    server: TelegramServer, inbox: Inbox
) -> None:
    mention = {"type": "mention", "offset": 2, "length": 16}
    server.push_raw(
        {"message": MESSAGE | {"text": f"{HALF} @galata_test_bot hi", "entities": [mention]}}
    )
    (message,) = await inbox.wait_for(1)
    assert (message.addressed, message.text) == (True, "\ufffd hi")


async def test_a_redelivered_message_has_the_same_key(server: TelegramServer, inbox: Inbox) -> None:
    message = server.private(server.user("Ana")).send("hello")
    server.redeliver(message)
    first, second = await inbox.wait_for(2)
    assert (first.event, first.address) == (second.event, second.address)


async def test_only_what_is_read_is_asked_for(server: TelegramServer) -> None:
    kinds = ["callback_query", "edited_message", "message", "my_chat_member"]
    assert server.updates.allowed == kinds


async def test_an_edit_into_a_command_arrives_as_such_and_other_edits_do_not(
    server: TelegramServer, inbox: Inbox
) -> None:
    chat = server.private(server.user("Ana"))
    sent = chat.send("helo")
    chat.edit(sent, "hello")
    chat.edit(sent, "/cancel")
    chat.send("go on")
    before, edited, after = await inbox.wait_for(3)
    assert (before.text, after.text) == ("helo", "go on")
    assert (edited.edited_command, edited.command, edited.message_id) == (True, None, str(sent.id))
    assert edited.event.startswith(f"e:{sent.id}:")


async def test_two_faults_in_a_row_are_told_to_the_supervisor(
    server: TelegramServer, inbox: Inbox, listening: asyncio.Task[None]
) -> None:
    server.fail_next("getUpdates", drop=True)
    server.end_poll(500, "Internal Server Error: restart")
    await asyncio.wait([listening])
    assert isinstance(listening.exception(), ChannelUnavailable)


async def test_one_fault_of_the_connection_is_no_reason_to_stop(
    server: TelegramServer, inbox: Inbox, listening: asyncio.Task[None]
) -> None:
    server.end_poll(502, "Bad Gateway")
    server.private(server.user("Ana")).send("hello")
    await inbox.wait_for(1)
    assert not listening.done()


async def test_after_an_outage_listening_again_goes_on_where_it_stopped(
    server: TelegramServer,
    channel: TelegramChannel,
    inbox: Inbox,
    listening: asyncio.Task[None],
) -> None:
    chat = server.private(server.user("Ana"))
    chat.send("first")
    await inbox.wait_for(1)
    await server.wait_for_poll()
    await server.stop()
    await asyncio.wait([listening])
    error = listening.exception()
    assert isinstance(error, ChannelUnavailable)
    assert server.token not in repr(error)
    chat.send("while it was down")
    await server.start()
    again = asyncio.create_task(channel.listen(inbox.receive))
    await inbox.wait_for(2)
    await server.wait_until_confirmed()
    again.cancel()
    await asyncio.gather(again, return_exceptions=True)
    assert [message.text for message in inbox.messages] == ["first", "while it was down"]


@pytest.mark.parametrize(
    ("description", "cause"),
    [
        ("Conflict: terminated by other getUpdates request; make sure", "another process"),
        ("Conflict: can't use getUpdates method while webhook is active", "webhook"),
    ],
)
async def test_a_conflict_names_its_likely_cause(
    server: TelegramServer, listening: asyncio.Task[None], description: str, cause: str
) -> None:
    server.end_poll(409, description)
    await asyncio.wait([listening])
    error = listening.exception()
    assert isinstance(error, ChannelUnavailable)
    assert cause in str(error)
    assert "channels.telegram.token" in str(error)


async def test_a_webhook_that_is_set_is_named(server: TelegramServer, inbox: Inbox) -> None:
    server.webhook = {"url": "https://x.example/y"}
    second = make_channel(server)
    with pytest.raises(ChannelUnavailable, match="webhook"):
        await second.listen(inbox.receive)
    await second.aclose()


async def test_a_flood_tells_how_long_to_wait(
    server: TelegramServer, inbox: Inbox, listening: asyncio.Task[None]
) -> None:
    server.fail_next("getUpdates", status=429, parameters={"retry_after": 7})
    server.private(server.user("Ana")).send("hello")
    await asyncio.wait([listening])
    error = listening.exception()
    assert isinstance(error, ChannelUnavailable)
    assert error.retry_after_s == 7
    assert inbox.messages


@pytest.mark.parametrize("token", ["123456:wrong", "1:x"])
async def test_a_wrong_token_stops_the_channel_with_one_line_and_without_the_token(
    server: TelegramServer, inbox: Inbox, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    wrong = make_channel(server, token)
    with pytest.raises(ChannelFailed) as caught:
        await wrong.listen(inbox.receive)
    await wrong.aclose()
    assert str(caught.value).startswith("channels.telegram.token: ")
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__
    assert token not in str(caught.value)
    assert token not in "".join(r.getMessage() for r in caplog.records if "channels" in r.name)


async def test_the_bot_knows_itself_and_its_menu_is_set(
    server: TelegramServer, channel: TelegramChannel
) -> None:
    assert (channel.bot_id, channel.username) == ("123456", "galata_test_bot")
    assert channel.sees_all_group_messages is False
    calls = server.calls_to("setMyCommands")
    assert [call.param("commands") for call in calls] == [
        [{"command": "ask", "description": "Ask something"}],
        [{"command": "ask", "description": "提问"}],
    ]
    assert [call.params.get("language_code") for call in calls] == [None, "zh"]


async def test_a_menu_that_is_refused_is_no_reason_to_stop(inbox: Inbox) -> None:
    async with TelegramServer() as server:
        server.fail_next("setMyCommands", status=400, description="Bad Request: x")
        channel = make_channel(server)
        task = asyncio.create_task(channel.listen(inbox.receive))
        await server.wait_for_poll()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await channel.aclose()


async def test_a_bot_without_a_connection_is_asked_again_by_the_supervisor(inbox: Inbox) -> None:
    server = TelegramServer()
    await server.start()
    await server.stop()
    channel = make_channel(server)
    with pytest.raises(ChannelUnavailable):
        await channel.listen(inbox.receive)
    await channel.aclose()
    await channel.aclose()


async def test_added_to_a_group_with_privacy_mode_it_says_that_it_is_deaf(
    server: TelegramServer, inbox: Inbox
) -> None:
    group = server.group("Team", members=[server.user("Ana")], bot_status="left")
    group.add_bot()
    (message,) = await inbox.wait_for(1)
    assert message.joined_deaf
    assert message.address.chat == str(group.id)


async def test_ask_works_with_privacy_mode_on(server: TelegramServer, inbox: Inbox) -> None:
    ana, bob = server.user("Ana"), server.user("Bob")
    group = server.group("Team", members=[ana, bob])
    group.send("@galata_test_bot not heard")
    photo = group.send_photo(caption="look")
    group.send("/ask what is this?", sender=bob, reply_to=photo)
    (message,) = await inbox.wait_for(1)
    assert message.command is not None
    assert (message.command.name, message.command.args) == ("ask", "what is this?")
    assert (message.quote, len(message.attachments)) == ("look", 1)
    assert message.sender.id == str(bob.id)


async def test_a_pasted_text_announces_its_continuation(
    server: TelegramServer, inbox: Inbox
) -> None:
    server.private(server.user("Ana")).paste("a" * 5000)
    first, second = await inbox.wait_for(2)
    assert (first.more_expected_s, second.more_expected_s) == (2.0, 0.0)
