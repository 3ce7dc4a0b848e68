"""A group that becomes a supergroup: what is on its way follows, and the bridge is told."""

from __future__ import annotations

import pytest

from channels.base import Address, OutboundReply, StopControl
from channels.telegram.channel import TelegramChannel
from tests.channels.telegram.conftest import Inbox
from tests.servers.telegram import TelegramServer

pytestmark = pytest.mark.usefixtures("listening")


def address(chat: int) -> Address:
    return Address("telegram", "123456", str(chat), None, private=False)


async def test_both_service_messages_tell_the_same_move(
    server: TelegramServer, inbox: Inbox
) -> None:
    old = server.group("Team", members=[server.user("Ana")])
    new = old.migrate()
    messages = await inbox.wait_for(2)
    assert {(m.address.chat, m.moved_from) for m in messages} == {(str(new.id), str(old.id))}
    assert {m.event for m in messages} == {f"moved:{old.id}"}


async def test_a_reply_to_the_old_id_arrives_in_the_new_chat_and_tells_the_bridge_of_it_once(
    server: TelegramServer, channel: TelegramChannel, inbox: Inbox
) -> None:
    old = server.group("Team", members=[server.user("Ana")])
    new = old.migrate(announce=False)
    for text in ("one", "two"):
        reply = channel.open_reply(address(old.id), reply_to="17")
        await reply.finish(OutboundReply(text))
    assert [message.text for message in new.bot_messages] == ["one", "two"]
    assert [message.reply_to for message in new.bot_messages] == [None, None]
    messages = await inbox.wait_for(1)
    assert [(m.address.chat, m.moved_from) for m in messages] == [(str(new.id), str(old.id))]


async def test_a_reply_whose_preview_stayed_behind_overwrites_nothing_in_the_new_chat(
    server: TelegramServer, channel: TelegramChannel, inbox: Inbox
) -> None:
    old = server.group("Team", members=[server.user("Ana")])
    stop = StopControl("Stop", "r1")
    reply = channel.open_reply(address(old.id), reply_to=None, stop=stop)
    reply.show("The first words of a long answer, ")
    await old.wait_for_button("Stop")
    new = old.migrate(announce=False)
    others = channel.open_reply(address(new.id), reply_to=None)
    await others.finish(OutboundReply("an answer of the new chat"))
    await reply.finish(OutboundReply("The first words of a long answer, and the rest."))
    assert [message.text for message in new.bot_messages] == [
        "an answer of the new chat",
        "The first words of a long answer, and the rest.",
    ]
    assert (await inbox.wait_for(1))[0].moved_from == str(old.id)


async def test_a_reply_that_begins_after_the_move_goes_on_in_its_own_preview(
    server: TelegramServer, channel: TelegramChannel
) -> None:
    old = server.group("Team", members=[server.user("Ana")])
    new = old.migrate(announce=False)
    stop = StopControl("Stop", "r1")
    reply = channel.open_reply(address(old.id), reply_to=None, stop=stop)
    reply.show("The first words of a long answer, ")
    preview = await new.wait_for_button("Stop")
    await reply.finish(OutboundReply("The whole answer."))
    assert [(m.id, m.text, m.buttons) for m in new.bot_messages] == [
        (preview.id, "The whole answer.", [])
    ]


async def test_a_removal_a_block_and_a_return_are_told(
    server: TelegramServer, inbox: Inbox
) -> None:
    ana = server.user("Ana")
    group, private = server.group("Team", members=[ana]), server.private(ana)
    private.send("hi")
    group.remove_bot(by=ana)
    private.block()
    private.unblock()
    messages = (await inbox.wait_for(4))[1:]
    assert [(m.address.chat, m.left, m.joined) for m in messages] == [
        (str(group.id), True, False),
        (str(private.id), True, False),
        (str(private.id), False, True),
    ]
