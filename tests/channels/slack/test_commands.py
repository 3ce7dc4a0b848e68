"""Slash commands, presses and reactions."""

from __future__ import annotations

import asyncio

import pytest

from channels.base import Address, OutboundDocument, OutboundReply, StopControl
from channels.errors import ReplyRefused, Unreachable
from channels.slack.channel import SlackChannel
from channels.slack.notice import ResponseUrls
from tests.channels.numbering import unnumbered
from tests.channels.slack.conftest import Inbox
from tests.servers.slack import Conversation, SlackServer

Listening = asyncio.Task[None]


async def answer(channel: SlackChannel, inbox: Inbox, text: str) -> None:
    (message,) = await inbox.wait_for(1)
    reply = channel.open_reply(message.address, reply_to=message.message_id)
    await reply.finish(OutboundReply(text))


async def test_in_a_channel_the_answer_is_for_the_person_alone(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    ana, bo = server.user("Ana"), server.user("Bo")
    general = server.channel("general", members=[ana, bo])
    command = general.slash("/galata", "status", ana)
    await answer(channel, inbox, "**fine**")
    assert command is not None
    assert command.acknowledged
    assert [one.shown for one in general.ephemerals(ana)] == ["**fine**"]
    assert general.messages == []
    assert general.ephemerals(bo) == []


async def test_where_the_bot_is_no_member_a_command_is_still_answered(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    ana = server.user("Ana")
    closed = server.channel("closed", members=[ana], private=True, bot=False)
    closed.slash("/galata", "help", ana)
    await answer(channel, inbox, "help is here")
    assert [one.shown for one in closed.ephemerals(ana)] == ["help is here"]


async def test_in_a_direct_message_the_answer_stays(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    dm = server.dm(server.user("Ana"))
    dm.slash("/galata", "new")
    await answer(channel, inbox, "a new conversation")
    assert [one.shown for one in dm.from_bot] == ["a new conversation"]


async def test_between_two_people_the_answer_is_for_the_one_who_asked(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    ana, bo = server.user("Ana"), server.user("Bo")
    theirs = Conversation(server, "D0OTHERS01", "im", bo.id, [ana, bo])
    server.conversations[theirs.id] = theirs
    theirs.slash("/galata", "status", ana)
    server.fail_next("chat.postMessage", error="channel_not_found")
    await answer(channel, inbox, "fine")
    assert [one.shown for one in theirs.ephemerals(ana)] == ["fine"]


async def test_a_used_up_address_is_replaced_by_an_ephemeral_message(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    ana = server.user("Ana")
    general = server.channel("general", members=[ana])
    general.slash("/galata", "status")
    await inbox.wait_for(1)
    for url in server.response_urls.values():
        url.uses = 5
    await answer(channel, inbox, "fine")
    assert [one.shown for one in general.ephemerals(ana)] == ["fine"]
    assert len(server.calls_to("chat.postEphemeral")) == 1


async def test_after_a_restart_a_command_is_still_answered(
    server: SlackServer, channel: SlackChannel
) -> None:
    ana = server.user("Ana")
    general = server.channel("general", members=[ana])
    to = Address("slack", server.team_id, general.id, None, private=False)
    reply = channel.open_reply(to, reply_to=f"ephemeral:{ana.id}:gone")
    reply.show("not shown")
    await reply.finish(OutboundReply("x " * 4_000 + "end"))
    parts = [one.shown for one in general.ephemerals(ana)]
    assert len(parts) == 3
    assert " ".join(unnumbered(parts)).split() == (["x"] * 4_000) + ["end"]
    assert all(len(part) <= 3_000 for part in parts)


async def test_an_ephemeral_answer_that_is_refused_is_sent_as_plain_text(
    server: SlackServer, channel: SlackChannel
) -> None:
    ana = server.user("Ana")
    general = server.channel("general", members=[ana])
    to = Address("slack", server.team_id, general.id, None, private=False)
    server.fail_next("chat.postEphemeral", error="invalid_blocks")
    reply = channel.open_reply(to, reply_to=f"ephemeral:{ana.id}:gone")
    await reply.finish(OutboundReply("**a**"))
    assert [one.shown for one in general.ephemerals(ana)] == ["**a**"]
    await reply.discard()


async def test_an_ephemeral_answer_that_cannot_be_given_says_so(
    server: SlackServer, channel: SlackChannel
) -> None:
    general = server.channel("general", members=[server.user("Ana")])
    to = Address("slack", server.team_id, general.id, None, private=False)
    stranger = channel.open_reply(to, reply_to="ephemeral:U0NOBODY:gone")
    with pytest.raises(Unreachable, match="user_not_in_channel"):
        await stranger.finish(OutboundReply("a"))
    another = channel.open_reply(to, reply_to="ephemeral:U0NOBODY:gone")
    with pytest.raises(ReplyRefused):
        await another.finish(OutboundReply("", (OutboundDocument("a.txt", "x"),)))


async def test_addresses_are_forgotten_after_five_uses_and_when_there_are_many() -> None:
    urls = ResponseUrls()
    urls.keep("a", "http://one")
    assert [urls.use("a") for _ in range(6)] == ["http://one"] * 5 + [None]
    for number in range(1_001):
        urls.keep(str(number), "http://x")
    assert urls.use("0") is None
    assert urls.use("1") == "http://x"


async def test_a_press_of_stop_is_acknowledged_and_answered_to_the_person(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    ana, bo = server.user("Ana"), server.user("Bo")
    server.subscriptions.discard("app_mention")
    general = server.channel("general", members=[ana, bo])
    general.send("<@BOT> go", ana)
    (question,) = await inbox.wait_for(1)
    stop = StopControl("Stop", "r7")
    reply = channel.open_reply(question.address, reply_to=question.message_id, stop=stop)
    preview = await server.wait_for(lambda: next((m for m in general.from_bot if m.buttons), None))
    press = general.press(preview, "Stop", bo)
    _, message = await inbox.wait_for(2)
    await server.wait_for(lambda: press.acknowledged)
    assert message.press is not None
    assert (message.press.action, message.press.value) == ("stop", "r7")
    assert (message.sender.id, message.sender.name) == (bo.id, "Bo")
    assert message.address == question.address
    await channel.answer_press(message, "Only Ana & owners may stop this.")
    (notice,) = general.ephemerals(bo)
    assert (notice.shown, notice.thread_ts) == (
        "Only Ana & owners may stop this.",
        preview.thread_ts,
    )
    await reply.finish(OutboundReply("Stopped."))
    assert preview.buttons == []


async def test_a_press_is_not_held_up_by_messages(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    dm = server.dm(server.user("Ana"))
    dm.send("go")
    (question,) = await inbox.wait_for(1)
    reply = channel.open_reply(question.address, reply_to=None, stop=StopControl("Stop", "r1"))
    preview = await server.wait_for(lambda: next((m for m in dm.from_bot if m.buttons), None))
    stall = server.fail_next("conversations.replies", stall=True)
    dm.send("and this", thread=preview)
    await server.wait_for_call("conversations.replies")
    dm.press(preview, "Stop")
    assert (await inbox.wait_for(2))[1].press is not None
    stall.release()
    await inbox.wait_for(3)
    await reply.discard()


async def test_answering_a_press_never_raises_and_says_nothing_empty(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    dm = server.dm(server.user("Ana"))
    dm.send("go")
    (message,) = await inbox.wait_for(1)
    await channel.answer_press(message, "")
    assert server.calls_to("chat.postEphemeral") == []
    server.fail_next("chat.postEphemeral", drop=True)
    await channel.answer_press(message, "x")


async def test_a_waiting_message_gets_a_reaction_and_loses_it(
    server: SlackServer, channel: SlackChannel
) -> None:
    dm = server.dm(server.user("Ana"))
    sent = dm.send("later")
    to = Address("slack", server.team_id, dm.id)
    assert await channel.mark_waiting(to, sent.ts, True) == "taken"
    assert await channel.mark_waiting(to, sent.ts, True) == "taken"
    assert sent.reactions == {"eyes": [server.bot.id]}
    assert await channel.mark_waiting(to, sent.ts, False) == "taken"
    assert await channel.mark_waiting(to, sent.ts, False) == "taken"
    assert sent.reactions == {}


async def test_where_reactions_are_not_allowed_the_bridge_is_told(
    server: SlackServer, channel: SlackChannel
) -> None:
    dm = server.dm(server.user("Ana"))
    sent = dm.send("later")
    to = Address("slack", server.team_id, dm.id)
    server.fail_next("reactions.add", drop=True)
    assert await channel.mark_waiting(to, sent.ts, True) == "later"
    server.scopes.remove("reactions:write")
    assert await channel.mark_waiting(to, sent.ts, True) == "refused"
    assert await channel.mark_waiting(to, "ephemeral:U1:t1", True) == "refused"
