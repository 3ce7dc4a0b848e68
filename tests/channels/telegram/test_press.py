"""Presses, reactions and who administers a group: small requests beside the answers."""

from __future__ import annotations

import asyncio

import pytest

from channels.base import Address, Button, InboundMessage, OutboundReply, StopControl
from channels.telegram.channel import TelegramChannel
from tests.channels.telegram.conftest import Inbox
from tests.servers.telegram import Chat, Message, Press, TelegramServer, User

pytestmark = pytest.mark.usefixtures("listening")
TWO = (Button("Ask them now", "ask", "m:17"), Button("Stop", "stop", "run-1"))


@pytest.fixture
def ana(server: TelegramServer) -> User:
    return server.user("Ana")


@pytest.fixture
def bob(server: TelegramServer) -> User:
    return server.user("Bob")


@pytest.fixture
def chat(server: TelegramServer, ana: User) -> Chat:
    return server.private(ana)


@pytest.fixture
def group(server: TelegramServer, ana: User, bob: User) -> Chat:
    return server.group("Team", members=[ana, bob])


def place(chat: Chat) -> Address:
    return Address("telegram", "123456", str(chat.id), None, chat.kind == "private")


async def pressed(
    channel: TelegramChannel, chat: Chat, inbox: Inbox
) -> tuple[Message, Press, InboundMessage]:
    """A press on the first of two buttons: the message, the press, and what arrives of it."""
    reply = channel.open_reply(place(chat), reply_to=None)
    await reply.finish(OutboundReply("Dropped: 2", buttons=TWO))
    message = chat.bot_messages[-1]
    press = chat.press(message, "Ask them now")
    (arrived,) = await inbox.wait_for(1)
    return message, press, arrived


# ---- presses ------------------------------------------------------------------------------------


async def test_an_answered_press_leaves_the_buttons(
    server: TelegramServer, channel: TelegramChannel, chat: Chat, inbox: Inbox
) -> None:
    message, press, arrived = await pressed(channel, chat, inbox)
    await channel.answer_press(arrived, "x" * 300)
    assert press.answer_text == "x" * 200
    assert len(message.buttons) == 2
    assert server.calls_to("editMessageReplyMarkup") == []


async def test_spent_buttons_go_all_of_them_and_the_text_stays(
    server: TelegramServer, channel: TelegramChannel, chat: Chat, inbox: Inbox
) -> None:
    message, press, arrived = await pressed(channel, chat, inbox)
    await channel.answer_press(arrived, "Asked after all", spent=True)
    assert press.answer_text == "Asked after all"
    await server.wait_for(lambda: not message.buttons)
    assert message.text == "Dropped: 2"


async def test_a_flood_holds_up_no_notice_and_the_buttons_go_when_it_is_over(
    server: TelegramServer, channel: TelegramChannel, chat: Chat, inbox: Inbox
) -> None:
    message, press, arrived = await pressed(channel, chat, inbox)
    server.flood(chat, retry_after=1, method="editMessageReplyMarkup")
    await channel.answer_press(arrived, "Done", spent=True)
    assert press.answered
    await server.wait_for(lambda: not message.buttons)


async def test_buttons_of_a_message_that_is_gone_are_no_error(
    server: TelegramServer, channel: TelegramChannel, chat: Chat, inbox: Inbox
) -> None:
    message, press, arrived = await pressed(channel, chat, inbox)
    chat.delete(message)
    await channel.answer_press(arrived, "Done", spent=True)
    await server.wait_for_call("editMessageReplyMarkup")
    assert press.answered


@pytest.mark.parametrize("fault", [{"status": 400}, {"status": 403}, {"drop": True}])
async def test_spent_buttons_go_also_where_the_notice_fails(
    server: TelegramServer,
    channel: TelegramChannel,
    chat: Chat,
    inbox: Inbox,
    fault: dict[str, object],
) -> None:
    message, _, arrived = await pressed(channel, chat, inbox)
    server.fail_next("answerCallbackQuery", **fault)  # type: ignore[arg-type]
    await channel.answer_press(arrived, "Done", spent=True)
    await server.wait_for(lambda: not message.buttons)


async def test_a_press_that_is_too_old_is_no_error(
    channel: TelegramChannel, chat: Chat, inbox: Inbox
) -> None:
    _, press, arrived = await pressed(channel, chat, inbox)
    press.expired = True
    await channel.answer_press(arrived, "Done")
    assert not press.answered


async def test_buttons_that_telegram_keeps_are_only_logged(
    server: TelegramServer,
    channel: TelegramChannel,
    chat: Chat,
    inbox: Inbox,
    caplog: pytest.LogCaptureFixture,
) -> None:
    _, press, arrived = await pressed(channel, chat, inbox)
    chat.block()
    server.fail_next("answerCallbackQuery", status=403)
    with caplog.at_level("INFO"):
        await channel.answer_press(arrived, "Done", spent=True)
        await server.wait_for_call("editMessageReplyMarkup")
        await _errands_over()
    assert not press.answered
    assert "stay" in caplog.text


async def _errands_over() -> None:
    errands = [task for task in asyncio.all_tasks() if task.get_name() == "spent buttons"]
    await asyncio.gather(*errands)


async def test_the_stop_button_of_a_preview_that_was_left_behind_goes(
    server: TelegramServer, channel: TelegramChannel, chat: Chat, inbox: Inbox
) -> None:
    reply = channel.open_reply(place(chat), reply_to=None, stop=StopControl("Stop", "run-1"))
    reply.show("partial")
    preview = await chat.wait_for_button("Stop")
    chat.press(preview, "Stop")
    (arrived,) = await inbox.wait_for(1)
    await channel.answer_press(arrived, "That answer is already complete.", spent=True)
    await server.wait_for(lambda: not preview.buttons)
    assert preview.text == "partial"
    await reply.discard()


# ---- who administers a group --------------------------------------------------------------------


@pytest.mark.parametrize("status", ["administrator", "creator"])
async def test_an_administrator_is_one_whatever_the_bot_may_see(
    channel: TelegramChannel, group: Chat, ana: User, bob: User, status: str
) -> None:
    group.make_admin(bob, status)
    group.members_hidden = True
    assert await channel.is_admin(place(group), str(bob.id))
    assert not await channel.is_admin(place(group), str(ana.id))
    group.make_admin(bob, "member")
    assert not await channel.is_admin(place(group), str(bob.id))


async def test_limits_are_set_by_those_who_may_change_the_groups_info(
    channel: TelegramChannel, group: Chat, ana: User, bob: User
) -> None:
    group.make_admin(ana, "creator")
    group.make_admin(bob, without=["can_change_info"])
    assert await channel.is_admin(place(group), str(bob.id))
    assert not await channel.is_admin(place(group), str(bob.id), managing=True)
    assert await channel.is_admin(place(group), str(ana.id), managing=True)
    assert await channel.is_admin(place(group), str(bob.id), managing=True, named={str(bob.id)})
    group.make_admin(bob)
    assert await channel.is_admin(place(group), str(bob.id), managing=True)


async def test_who_writes_as_the_group_is_an_administrator_and_who_writes_as_a_channel_is_not(
    channel: TelegramChannel, group: Chat, inbox: Inbox, server: TelegramServer
) -> None:
    group.send_anonymously("/status")
    group.send_as_channel("/status", server.channel("News"))
    anonymous, as_channel = await inbox.wait_for(2)
    assert await channel.is_admin(anonymous.address, anonymous.sender.id)
    assert not await channel.is_admin(as_channel.address, as_channel.sender.id)


async def test_nobody_administers_a_private_chat(
    server: TelegramServer, channel: TelegramChannel, chat: Chat, ana: User
) -> None:
    assert not await channel.is_admin(place(chat), str(ana.id))
    assert server.calls_to("getChatAdministrators") == []


@pytest.mark.parametrize(
    "fault",
    [{"status": 400}, {"status": 403}, {"status": 502}, {"drop": True}, {"html": True}],
)
async def test_without_an_answer_nobody_is_an_administrator(
    server: TelegramServer,
    channel: TelegramChannel,
    group: Chat,
    bob: User,
    fault: dict[str, object],
) -> None:
    group.make_admin(bob)
    server.fail_next("getChatAdministrators", **fault)  # type: ignore[arg-type]
    assert await channel.is_admin(place(group), str(bob.id)) is None


async def test_a_flooded_group_is_asked_all_the_same(
    server: TelegramServer, channel: TelegramChannel, group: Chat, bob: User
) -> None:
    group.make_admin(bob)
    flooded = server.fail_next("setMessageReaction", status=429, parameters={"retry_after": 60})
    await channel.mark_waiting(place(group), "1", True)
    assert flooded.used
    assert await channel.is_admin(place(group), str(bob.id))


# ---- reactions ----------------------------------------------------------------------------------


async def test_a_waiting_message_is_marked_and_unmarked(
    channel: TelegramChannel, chat: Chat
) -> None:
    message = chat.send("hi")
    assert await channel.mark_waiting(place(chat), str(message.id), True) == "taken"
    assert message.reactions == ["👀"]
    assert await channel.mark_waiting(place(chat), str(message.id), False) == "taken"
    assert message.reactions == []


async def test_where_reactions_are_off_it_says_so(
    server: TelegramServer, channel: TelegramChannel, chat: Chat
) -> None:
    message = chat.send("hi")
    server.fail_next("setMessageReaction", status=400, description="Bad Request: REACTION_INVALID")
    assert await channel.mark_waiting(place(chat), str(message.id), True) == "refused"


async def test_a_reaction_that_a_flood_or_the_network_has_stopped_may_come_later(
    server: TelegramServer, channel: TelegramChannel, chat: Chat
) -> None:
    message = chat.send("hi")
    server.fail_next("setMessageReaction", drop=True)
    assert await channel.mark_waiting(place(chat), str(message.id), True) == "later"
    server.flood(chat, retry_after=60, count=1)
    for _ in range(2):  # the platform's own refusal, then what is dropped here while it lasts
        assert await channel.mark_waiting(place(chat), str(message.id), True) == "later"
    assert len(server.calls_to("setMessageReaction")) == 2


# ---- in place -----------------------------------------------------------------------------------


async def test_a_reply_takes_the_place_of_the_message_that_was_pressed(
    server: TelegramServer, channel: TelegramChannel, chat: Chat, inbox: Inbox
) -> None:
    message, press, arrived = await pressed(channel, chat, inbox)
    buttons = (Button("Apply", "limits", "a:7"), Button("Discard", "limits", "d:7"))
    assert await channel.replace(arrived, OutboundReply("2 → **3**", buttons=buttons))
    assert (message.text, message.buttons) == ("2 → 3", ["Apply", "Discard"])
    await server.wait_for(lambda: press.answered)
    assert await channel.replace(arrived, OutboundReply("Done"))
    assert (message.text, message.buttons) == ("Done", [])
    assert await channel.replace(arrived, OutboundReply("Done"))  # as it is


async def test_what_is_too_long_for_one_message_replaces_nothing(
    channel: TelegramChannel, chat: Chat, inbox: Inbox
) -> None:
    message, _, arrived = await pressed(channel, chat, inbox)
    assert not await channel.replace(arrived, OutboundReply("x" * 5_000))
    chat.delete(message)
    assert not await channel.replace(arrived, OutboundReply("Done"))
