"""Answers to presses, and buttons that are of no more use."""

from __future__ import annotations

import asyncio

import pytest

from channels.base import Button, InboundMessage, OutboundReply, StopControl
from channels.slack.channel import SlackChannel
from tests.channels.slack.conftest import Inbox, make_channel
from tests.servers.slack import Conversation, Message, SlackServer, User

Listening = asyncio.Task[None]
RUNS = (Button("Stop 12:04", "stop", "r1"), Button("Stop 12:07", "stop", "r2"))
STOP = StopControl("Stop", "r0")


async def taken_away() -> None:
    """What goes on beside the answer is done."""
    tasks = [one for one in asyncio.all_tasks() if one.get_name() == "taking buttons away"]
    await asyncio.gather(*tasks)


async def pressed(
    inbox: Inbox, conversation: Conversation, message: Message, user: User
) -> InboundMessage:
    """The first button of a message was pressed."""
    count = len(inbox.messages)
    conversation.press(message, message.buttons[0], user)
    return (await inbox.wait_for(count + 1))[-1]


async def asked(inbox: Inbox, channel: SlackChannel, question: str) -> InboundMessage:
    """A list of two runs is in the chat; the message that it answers."""
    (message,) = await inbox.wait_for(1)
    reply = channel.open_reply(message.address, reply_to=message.message_id)
    await reply.finish(OutboundReply(question, buttons=RUNS))
    return message


async def listing(
    server: SlackServer, channel: SlackChannel, inbox: Inbox, question: str = "Which?"
) -> tuple[User, Conversation, Message]:
    """Ana's direct message with such a list."""
    ana = server.user("Ana")
    dm = server.dm(ana)
    dm.send("go")
    await asked(inbox, channel, question)
    return ana, dm, dm.from_bot[0]


@pytest.mark.parametrize("private", [True, False])
async def test_spent_buttons_go_and_the_text_stays(
    server: SlackServer,
    channel: SlackChannel,
    listening: Listening,
    inbox: Inbox,
    private: bool,
) -> None:
    ana = server.user("Ana")
    server.subscriptions.discard("app_mention")
    where = server.dm(ana) if private else server.channel("general", members=[ana])
    where.send("go" if private else "<@BOT> go")
    await asked(inbox, channel, "a **b** & <c>")
    (listed,) = where.from_bot
    before = (listed.text, [block for block in listed.blocks if block["type"] != "actions"])
    press = await pressed(inbox, where, listed, ana)
    assert press.message_id == listed.ts
    await channel.answer_press(press, "It is over.", spent=True)
    await taken_away()
    assert (listed.text, listed.blocks) == before
    assert [one.shown for one in where.ephemerals(ana)] == ["It is over."]
    await channel.answer_press(press, "", spent=True)
    await taken_away()
    assert len(server.calls_to("chat.update")) == 1


async def test_what_is_not_spent_stays(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    ana, dm, listed = await listing(server, channel, inbox)
    press = await pressed(inbox, dm, listed, ana)
    await channel.answer_press(press, "Stopped.")
    assert len(dm.from_bot[0].buttons) == 2
    assert [call.method for call in server.calls][-1] == "chat.postEphemeral"


async def test_after_a_restart_spent_buttons_still_go(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    ana, dm, listed = await listing(server, channel, inbox)
    press = await pressed(inbox, dm, listed, ana)
    later = make_channel(server)
    await later.answer_press(press, "It is over.", spent=True)
    await taken_away()
    assert dm.from_bot[0].buttons == []
    await later.aclose()


async def test_the_message_as_it_stands_now_is_kept_not_as_it_was_when_pressed(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    ana = server.user("Ana")
    dm = server.dm(ana)
    dm.send("go")
    (question,) = await inbox.wait_for(1)
    reply = channel.open_reply(question.address, reply_to=None, stop=STOP)
    reply.show("Once")
    preview = await dm.wait_for_text("Once")
    press = await pressed(inbox, dm, preview, ana)
    await channel.answer_press(press, "", spent=True)
    await taken_away()  # nothing: the reply takes its own button away
    await reply.finish(OutboundReply("Once upon a time.", buttons=RUNS))
    assert len(preview.buttons) == 2
    assert server.calls_to("conversations.history") == []
    await channel.answer_press(press, "", spent=True)
    await taken_away()
    assert preview.buttons == []
    assert preview.shown == "Once upon a time."


async def test_what_only_one_person_sees_is_replaced_by_the_notice(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    ana = server.user("Ana")
    general = server.channel("general", members=[ana])
    general.slash("/galata", "cancel")
    await asked(inbox, channel, "Which?")
    (listed,) = general.ephemerals(ana)
    first = await pressed(inbox, general, listed, ana)
    await channel.answer_press(first, "Stopped.")
    assert [one.shown for one in general.ephemerals(ana)] == [listed.shown, "Stopped."]
    second = await pressed(inbox, general, listed, ana)
    await channel.answer_press(second, "It is <over>.", spent=True)
    assert [one.shown for one in general.ephemerals(ana)] == ["It is <over>.", "Stopped."]
    assert general.messages == []
    assert server.calls_to("chat.update") == []


async def test_what_only_one_person_sees_goes_without_a_word(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    ana = server.user("Ana")
    general = server.channel("general", members=[ana])
    general.slash("/galata", "cancel")
    await asked(inbox, channel, "Which?")
    (listed,) = general.ephemerals(ana)
    press = await pressed(inbox, general, listed, ana)
    await channel.answer_press(press, "")
    assert general.ephemerals(ana) == [listed]
    await channel.answer_press(press, " ", spent=True)
    assert general.ephemerals(ana) == []


async def test_a_press_whose_address_is_not_known_any_more_gets_its_notice(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    ana = server.user("Ana")
    general = server.channel("general", members=[ana])
    general.slash("/galata", "cancel")
    await asked(inbox, channel, "Which?")
    press = await pressed(inbox, general, general.ephemerals(ana)[0], ana)
    later = make_channel(server)
    await later.answer_press(press, "It is over.", spent=True)
    assert [one.shown for one in general.ephemerals(ana)][1:] == ["It is over."]
    await later.aclose()


@pytest.mark.parametrize("method", ["conversations.history", "chat.update"])
async def test_taking_buttons_away_never_raises(
    server: SlackServer,
    channel: SlackChannel,
    listening: Listening,
    inbox: Inbox,
    method: str,
) -> None:
    ana, dm, listed = await listing(server, channel, inbox)
    press = await pressed(inbox, dm, listed, ana)
    fault = server.fail_next(method, error="channel_not_found")
    await channel.answer_press(press, "", spent=True)
    await taken_away()
    assert fault.used
    assert len(dm.from_bot[0].buttons) == 2


async def test_a_message_that_is_gone_is_left_alone(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    ana = server.user("Ana")
    dm = server.dm(ana)
    dm.send("go")
    await asked(inbox, channel, "Which?")
    (listed,) = dm.from_bot
    press = await pressed(inbox, dm, listed, ana)
    dm.delete(listed)
    await channel.answer_press(press, "", spent=True)
    await taken_away()
    assert server.calls_to("chat.update") == []


async def test_a_reply_takes_the_place_of_the_message_that_was_pressed(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    ana, dm, listed = await listing(server, channel, inbox)
    press = await pressed(inbox, dm, listed, ana)
    apply = Button("Apply", "limits", "a:7")
    assert await channel.replace(press, OutboundReply("2 → **3**", buttons=(apply,)))
    assert listed.shown.startswith("2 → **3**")
    assert [button.text for button in listed.buttons] == ["Apply"]
    assert not await channel.replace(press, OutboundReply("x" * 5_000))


async def test_a_reply_takes_the_place_of_what_only_one_person_sees(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    ana = server.user("Ana")
    general = server.channel("general", members=[ana])
    general.slash("/galata", "limits")
    await asked(inbox, channel, "Which?")
    (listed,) = general.ephemerals(ana)
    press = await pressed(inbox, general, listed, ana)
    assert await channel.replace(press, OutboundReply("Done", buttons=RUNS[:1]))
    assert [one.shown for one in general.ephemerals(ana)] == ["Done\n[Stop 12:04]"]
    assert general.messages == []
