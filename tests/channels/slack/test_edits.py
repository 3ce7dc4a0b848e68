"""Messages that were edited into a command: told as such, and never carried out."""

from __future__ import annotations

import asyncio

import pytest

from channels.base import Address, InboundMessage, OutboundReply
from channels.slack.channel import SlackChannel
from channels.slack.parse import time_of
from tests.channels.slack.conftest import Inbox
from tests.servers.slack import Conversation, Message, SlackServer

Listening = asyncio.Task[None]


async def settled(server: SlackServer) -> None:
    """Everything that was sent is acknowledged."""
    await server.wait_for(lambda: all(one.acknowledged for one in server.deliveries))


async def edits(server: SlackServer, inbox: Inbox) -> list[InboundMessage]:
    await settled(server)
    return [message for message in inbox.messages if message.edited_command]


@pytest.mark.parametrize(
    "text", ["stop", " Stop ", "cancel", "!cancel", "/galata cancel", "/galata", "/new", "/NEW now"]
)
async def test_in_a_direct_message_an_edit_into_a_command_is_told(
    server: SlackServer, listening: Listening, inbox: Inbox, text: str
) -> None:
    ana = server.user("Ana")
    dm = server.dm(ana)
    sent = dm.send("please go on")
    await inbox.wait_for(1)
    dm.edit(sent, text)
    _, edit = await inbox.wait_for(2)
    assert (edit.edited_command, edit.command, edit.press) == (True, None, None)
    assert edit.address == Address("slack", server.team_id, dm.id)
    assert (edit.message_id, edit.sender.id, edit.sender.name) == (sent.ts, ana.id, "Ana")
    assert edit.addressed
    assert sent.edited is not None
    assert edit.sent_at == time_of(sent.edited["ts"])


async def test_each_edit_has_a_key_that_stays(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    dm = server.dm(server.user("Ana"))
    sent = dm.send("hi")
    dm.edit(sent, "!cancel")
    dm.edit(sent, "well, hi")
    dm.edit(sent, "!cancel")
    assert len(await edits(server, inbox)) == 2
    for delivery in server.deliveries[1:]:
        server.repeat(delivery)
    await server.wait_for(lambda: all(one.acks == 2 for one in server.deliveries[1:]))
    assert len(await edits(server, inbox)) == 4
    assert len({message.event for message in inbox.messages}) == 3


async def test_in_a_channel_an_edit_counts_where_the_bot_was_addressed(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    server.subscriptions.discard("app_mention")
    general = server.channel("general", members=[server.user("Ana")])
    root = general.send("<@BOT> go")
    in_thread = general.send("hm", thread=root)
    general.edit(root, "<@BOT> stop")
    general.edit(in_thread, "/galata cancel")
    first, second = await edits(server, inbox)
    place = Address("slack", server.team_id, general.id, root.ts, private=False)
    assert (first.address, first.addressed) == (place, True)
    assert (second.address, second.addressed) == (place, True)


@pytest.mark.parametrize("word", ["stop", "!cancel"])
async def test_a_bare_word_in_a_thread_is_for_the_bridge_to_judge(
    server: SlackServer, listening: Listening, inbox: Inbox, word: str
) -> None:
    general = server.channel("general", members=[server.user("Ana")])
    top, root = general.send("hm"), general.send("let us see")
    reply = general.send("hm", thread=root)
    general.edit(reply, word)
    general.edit(top, word)
    (edit,) = await edits(server, inbox)
    assert (edit.addressed, edit.address.thread, edit.text) == (False, root.ts, word)


async def nothing(dm: Conversation, sent: Message) -> None:
    """Changes that make no command."""
    dm.edit(sent, "please do go on")
    dm.edit(sent, "please stop it")
    dm.edit(sent, "/usr/bin/env")
    dm.unfurl(sent)


async def test_other_edits_are_nothing_for_us(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    dm = server.dm(server.user("Ana"))
    sent = dm.send("go on https://a.example")
    (message,) = await inbox.wait_for(1)
    await nothing(dm, sent)
    stop = dm.send("!cancel")
    dm.unfurl(stop)  # a change by Slack, with the same text
    dm.send("more", thread=stop)  # tells that the thread has grown
    await channel.open_reply(message.address, reply_to=None).finish(OutboundReply("x"))
    ours = dm.from_bot[0]
    dm.edit(ours, "stop")
    await settled(server)
    assert [m.text for m in inbox.messages] == ["go on https://a.example", "!cancel", "more"]


async def test_what_somebody_else_or_another_bot_edits_is_nothing_for_us(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    ana, other = server.user("Ana"), server.user("Other", is_bot=True)
    general = server.channel("general", members=[ana, other])
    root = general.send("<@BOT> hi", ana)
    by_bot = general.send("hm", other, thread=root)
    general.edit(by_bot, "<@BOT> stop")
    general.edit(root, "<@BOT> stop", editor=server.user("Admin"))
    assert await edits(server, inbox) == []


async def test_an_unfurl_after_an_edit_has_the_key_of_that_edit(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    dm = server.dm(server.user("Ana"))
    sent = dm.send("hi")
    dm.edit(sent, "!cancel")
    dm.unfurl(sent)
    (first,) = await edits(server, inbox)
    unfurled = server.deliveries[-1]
    unfurled.event.pop("previous_message")  # so that only the key can tell
    server.repeat(unfurled)
    *_, second = await inbox.wait_for(3)
    assert first.event == second.event


async def test_an_edit_waits_for_no_message(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    general = server.channel("general", members=[server.user("Ana")])
    root = general.send("hello")
    stall = server.fail_next("conversations.replies", stall=True)
    question = general.send("<@BOT> go", thread=root)
    await server.wait_for_call("conversations.replies")
    general.edit(question, "<@BOT> stop")
    (edit,) = await inbox.wait_for(1)
    assert edit.edited_command
    stall.release()
    await settled(server)


async def test_an_edit_into_a_mentioned_command_is_told_and_sets_nothing(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    general = server.channel("general", members=[server.user("Ana")])
    sent = general.send("<@BOT> hi")
    general.edit(sent, "<@BOT> limits set paused yes")
    (edit,) = await edits(server, inbox)
    assert (edit.command, edit.addressed, edit.whispered) == (None, True, False)
