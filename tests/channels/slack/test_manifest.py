"""The app's manifest: what it asks for is what the channel needs."""

from __future__ import annotations

import asyncio

import pytest

from channels.base import Attachment, OutboundDocument, OutboundReply, StopControl
from channels.slack.channel import SlackChannel
from channels.slack.manifest import EVENTS, SCOPES, manifest
from tests.channels.slack.conftest import Inbox
from tests.servers.slack import SlackServer


def test_it_is_for_socket_mode_with_the_command_and_buttons() -> None:
    made = manifest("Galata")
    assert made["display_information"]["name"] == "Galata"
    assert made["features"]["slash_commands"][0]["command"] == "/galata"
    assert made["features"]["app_home"]["messages_tab_enabled"]
    assert not made["features"]["app_home"]["messages_tab_read_only_enabled"]
    assert made["settings"]["socket_mode_enabled"]
    assert made["settings"]["interactivity"]["is_enabled"]
    assert "request_url" not in str(made)


def test_it_names_the_address_for_signed_requests() -> None:
    made = manifest("Galata", url="https://bot.example/slack/events")
    assert not made["settings"]["socket_mode_enabled"]
    assert str(made).count("https://bot.example/slack/events") == 3


@pytest.mark.parametrize("name", ["G" * 200, "Galata"])
def test_names_fit(name: str) -> None:
    made = manifest(name)
    assert len(made["display_information"]["name"]) <= 35
    assert len(made["features"]["bot_user"]["display_name"]) <= 80


def test_every_event_has_its_scope() -> None:
    kinds = {event.removeprefix("message.") for event in EVENTS if event.startswith("message.")}
    assert {f"{kind}:history" for kind in kinds} <= set(SCOPES)


async def test_its_scopes_and_events_are_enough(
    server: SlackServer,
    channel: SlackChannel,
    listening: asyncio.Task[None],
    inbox: Inbox,
) -> None:
    server.scopes[:] = manifest("Galata")["oauth_config"]["scopes"]["bot"]
    server.subscriptions = set(manifest("Galata")["settings"]["event_subscriptions"]["bot_events"])
    ana = server.user("Ana")
    general = server.channel("general", members=[ana])
    root = general.send("see")
    file = server.file("a.txt", b"x")
    general.send("<@BOT> read this", thread=root, files=[file])
    message = (await inbox.wait_for(2))[0]
    assert (message.sender.name, message.quote) == ("Ana", "Ana: see")
    assert await channel.fetch(message.attachments[0]) == b"x"
    assert await channel.mark_waiting(message.address, message.message_id, True) == "taken"
    stop = StopControl("Stop", "r1")
    reply = channel.open_reply(message.address, reply_to=message.message_id, stop=stop)
    reply.show("so far")
    await general.wait_for_text("so far")
    await reply.finish(OutboundReply("done", (OutboundDocument("b.txt", "y"),)))
    assert len(general.from_bot) == 2
    assert isinstance(message.attachments[0], Attachment)
    refused = [call for call in server.calls if call.method.startswith("conversations.info")]
    assert refused == []
