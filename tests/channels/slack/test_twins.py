"""One text, told by two events."""

from __future__ import annotations

import asyncio

from channels.errors import NotStored
from tests.channels.slack.conftest import Inbox
from tests.servers.slack import SlackServer

Listening = asyncio.Task[None]


async def test_a_file_is_not_lost_when_a_mention_that_leaves_it_out_comes_first(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    general = server.channel("general", members=[server.user("Ana")])
    file = server.file("a.txt", b"1234", "text/plain")
    sent = general.send("<@BOT> read this", files=[file], deliver=False)
    whole, mention = sent.events
    assert mention.event["type"] == "app_mention"
    del mention.event["files"]
    server.deliver(mention)
    await server.wait_for(lambda: mention.sent == 1)
    server.deliver(whole)
    await server.wait_for(lambda: whole.acknowledged and mention.acknowledged)
    assert [[a.name for a in m.attachments] for m in inbox.messages] == [["a.txt"]]


async def test_a_mention_that_comes_alone_is_heard(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    server.subscriptions = {"app_mention"}
    server.channel("general", members=[server.user("Ana")]).send("<@BOT> hi")
    assert [m.text for m in await inbox.wait_for(1)] == ["hi"]


async def test_a_text_that_could_not_be_stored_comes_again_although_its_mention_was_acknowledged(
    server: SlackServer, listening: Listening, inbox: Inbox
) -> None:
    server.socket.ack_timeout_s = 0.05
    inbox.faults = [NotStored("the disk is full"), NotStored("the disk is full")]
    general = server.channel("general", members=[server.user("Ana")])
    sent = general.send("<@BOT> hi")
    await server.wait_for(lambda: all(one.acknowledged for one in sent.events))
    # More than once where it was repeated meanwhile, or read from the history: its id is the same.
    assert {(m.text, m.event) for m in inbox.messages} == {("hi", f"m:{sent.ts}")}
