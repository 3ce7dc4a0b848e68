"""Buttons under replies: where they stand, what Slack takes, and what their presses say."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slack_sdk.models.blocks import Block

from channels.base import Address, Button, OutboundDocument, OutboundReply, StopControl
from channels.slack.buttons import action_of, button_blocks
from channels.slack.channel import SlackChannel
from channels.slack.render import TEXT_BYTES, pieces
from tests.channels.slack.conftest import Inbox
from tests.servers.slack import Conversation, Message, SlackServer

Listening = asyncio.Task[None]
RUNS = (Button("Stop 12:04", "stop", "r1"), Button("Stop 12:07", "stop", "r2"))


def here(conversation: Conversation) -> Address:
    private = conversation.kind == "im"
    return Address("slack", conversation.world.team_id, conversation.id, None, private)


def labels(message: Message) -> list[str]:
    return [button.text for button in message.buttons]


async def test_buttons_stand_under_a_reply_and_stay_there(
    server: SlackServer, channel: SlackChannel
) -> None:
    dm = server.dm(server.user("Ana"))
    reply = channel.open_reply(here(dm), reply_to=None)
    await reply.finish(OutboundReply("Still **running**:", buttons=RUNS))
    (message,) = dm.from_bot
    assert message.shown == "Still **running**:\n[Stop 12:04] [Stop 12:07]"
    assert message.text == "Still running:"


async def test_buttons_outlive_the_preview_and_its_stop(
    server: SlackServer, channel: SlackChannel
) -> None:
    dm = server.dm(server.user("Ana"))
    reply = channel.open_reply(here(dm), reply_to=None, stop=StopControl("Stop", "r0"))
    await server.wait_for(lambda: dm.from_bot and dm.from_bot[0].buttons)
    await reply.finish(OutboundReply("done", buttons=RUNS))
    (message,) = dm.from_bot
    assert labels(message) == ["Stop 12:04", "Stop 12:07"]


@pytest.mark.parametrize("with_preview", [True, False])
async def test_of_several_parts_the_last_has_the_buttons(
    server: SlackServer, channel: SlackChannel, with_preview: bool
) -> None:
    dm = server.dm(server.user("Ana"))
    reply = channel.open_reply(here(dm), reply_to=None, stop=StopControl("Stop", "r0"))
    if with_preview:
        await server.wait_for(lambda: dm.from_bot and dm.from_bot[0].buttons)
    documents = (OutboundDocument("a.txt", "x"),)
    await reply.finish(OutboundReply("a" * 11_000 + "\n\n" + "b" * 11_000, documents, RUNS))
    with_text = [one for one in dm.from_bot if one.blocks]
    assert [labels(one) for one in with_text[:-1]] == [[]] * (len(with_text) - 1)
    assert labels(with_text[-1]) == ["Stop 12:04", "Stop 12:07"]


async def test_an_answer_for_one_person_alone_has_its_buttons_either_way(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    ana = server.user("Ana")
    general = server.channel("general", members=[ana])
    general.slash("/galata", "cancel")
    (command,) = await inbox.wait_for(1)
    for _ in range(2):
        reply = channel.open_reply(command.address, reply_to=command.message_id)
        await reply.finish(OutboundReply("Which?", buttons=RUNS))
        for url in server.response_urls.values():
            url.uses = 5
    assert [labels(one) for one in general.ephemerals(ana)] == [["Stop 12:04", "Stop 12:07"]] * 2
    assert len(server.calls_to("chat.postEphemeral")) == 1
    assert general.from_bot == []


async def test_each_button_says_what_it_was_made_with(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    dm = server.dm(server.user("Ana"))
    both = (*RUNS, Button("Ask now", "ask", "m:1.2"))
    await channel.open_reply(here(dm), reply_to=None).finish(OutboundReply("x", buttons=both))
    (message,) = dm.from_bot
    for button in message.buttons:
        dm.press(message, button)
    presses = {m.press.value: m.press.action for m in await inbox.wait_for(3) if m.press}
    assert presses == {"r1": "stop", "r2": "stop", "m:1.2": "ask"}
    assert {m.press.message_id for m in inbox.messages if m.press} == {message.ts}


async def test_buttons_without_a_text_are_a_message_of_their_own(
    server: SlackServer, channel: SlackChannel
) -> None:
    dm = server.dm(server.user("Ana"))
    await channel.open_reply(here(dm), reply_to=None).finish(OutboundReply(" ", buttons=RUNS))
    (message,) = dm.from_bot
    assert (message.text, labels(message)) == (
        "Stop 12:04 · Stop 12:07",
        ["Stop 12:04", "Stop 12:07"],
    )


buttons = st.builds(Button, st.text(max_size=90), st.text(max_size=20), st.text(max_size=40))


@given(st.text(max_size=30), st.lists(buttons, min_size=1, max_size=60))
def test_any_buttons_are_what_slack_takes_and_read_back(text: str, some: list[Button]) -> None:
    (one,) = pieces(text, some)
    assert one.text.strip()
    assert len(one.text.encode()) <= TEXT_BYTES
    actions = [block for block in one.blocks if block["type"] == "actions"]
    for block in actions:
        parsed = Block.parse(block)
        assert parsed is not None
        parsed.validate_json()
        ids = [element["action_id"] for element in block["elements"]]
        assert len(set(ids)) == len(ids)
    made = [element for block in actions for element in block["elements"]]
    read = [(action_of(element["action_id"]), element["value"]) for element in made]
    assert read == [(button.action, button.value) for button in some]
    assert [b for block in button_blocks(some) for b in block["elements"]] == made
