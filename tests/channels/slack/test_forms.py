"""Forms as modals: opened in time, sent, refused with faults at their fields, changed from inside."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from channels.base import Button, InboundMessage, OutboundReply
from channels.errors import FormRefused
from channels.inputs import Form, FormField, Submission
from channels.slack.channel import SlackChannel
from tests.channels.slack.conftest import Inbox
from tests.servers.slack import Conversation, SlackServer, User
from tests.servers.slack_delivery import Delivery

Listening = asyncio.Task[None]

FORM = Form(
    action="limits",
    value="7",
    title="Limits of a channel with a long name",
    fields=(
        FormField("cost", "Cost per day", "at most 10.00", "3.00"),
        FormField("paused", "Paused", choices=(("", "not set"), ("yes", "yes"), ("no", "no"))),
        FormField("instructions", "Instructions", lines=True),
    ),
    send="Apply",
    close="Discard",
    intro="*Today*: 1.00 of 3.00 USD",
    buttons=(Button("Edit as text", "limits", "text"),),
)


async def done(server: SlackServer, delivery: Delivery) -> None:
    await server.wait_for(lambda: delivery.done)


async def asked(inbox: Inbox, where: Conversation) -> InboundMessage:
    where.slash("/galata", "limits")
    return (await inbox.wait_for(len(inbox.messages) + 1))[-1]


async def test_a_form_is_opened_by_a_command_and_comes_back_filled_in(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    ana = server.user("Ana")
    general = server.channel("general", members=[ana])
    assert await channel.open_form(await asked(inbox, general), FORM)
    (view,) = server.views
    assert view.title == "Limits of a channel with"
    assert "Today" in view.shown
    await done(server, server.submit(view, {"cost": "2.50", "paused": "yes"}))
    got = inbox.messages[-1]
    texts = {"cost": "2.50", "paused": "yes", "instructions": ""}
    assert got.form == Submission("limits", "7", texts)
    assert (got.address.chat, got.address.private, got.sender.id) == (general.id, False, ana.id)
    assert (got.event, got.message_id, got.text) == (f"f:{view.id}", "", "")
    assert not view.open


async def test_faults_stand_at_their_fields_and_nothing_is_lost(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    ana = server.user("Ana")
    general = server.channel("general", members=[ana])
    assert await channel.open_form(await asked(inbox, general), FORM)
    (view,) = server.views
    inbox.faults.append(FormRefused({"cost": "is above what you may set (10.00)"}))
    await done(server, server.submit(view, {"cost": "12"}))
    assert view.open
    assert view.errors == {"cost": "is above what you may set (10.00)"}
    await done(server, server.submit(view, {"cost": "9"}))
    assert not view.open
    assert inbox.messages[-1].form is not None


async def test_a_button_in_a_form_puts_another_in_its_place(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    ana = server.user("Ana")
    dm = server.dm(ana)
    assert await channel.open_form(await asked(inbox, dm), FORM)
    (view,) = server.views
    await done(server, server.press_inside(view, "Edit as text"))
    press = inbox.messages[-1]
    assert press.press is not None
    assert (press.press.action, press.press.value, press.press.message_id) == ("limits", "text", "")
    text = replace(FORM, buttons=(), fields=(FormField("text", "Lines", value="a: b", lines=True),))
    assert await channel.open_form(press, text)
    assert [block["type"] for block in view.body["blocks"]] == ["section", "input"]
    await done(server, server.submit(view, {"text": "paused: yes"}))
    assert inbox.messages[-1].form == Submission("limits", "7", {"text": "paused: yes"})


async def test_a_button_under_a_message_opens_one_and_too_late_none(
    server: SlackServer, channel: SlackChannel, listening: Listening, inbox: Inbox
) -> None:
    ana: User = server.user("Ana")
    dm = server.dm(ana)
    dm.send("go")
    (message,) = await inbox.wait_for(1)
    reply = channel.open_reply(message.address, reply_to=message.message_id)
    await reply.finish(OutboundReply("Limits", buttons=(Button("Change", "limits", "form"),)))
    dm.press(dm.from_bot[-1], "Change", ana)
    press = (await inbox.wait_for(2))[-1]
    assert await channel.open_form(press, FORM)
    assert not await channel.open_form(press, FORM)  # a trigger is good for one
    await channel.answer_press(press, "")
    assert len(server.views) == 1
