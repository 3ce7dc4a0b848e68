"""Who belongs to the workspace, who reads along, and leaving a channel, as Slack tells it."""

from __future__ import annotations

import pytest

from channels.base import Address
from channels.slack.channel import SlackChannel
from tests.servers.slack import Conversation, SlackServer


def at(server: SlackServer, channel: Conversation) -> Address:
    return Address("slack", server.team_id, channel.id, None, private=channel.kind == "im")


@pytest.mark.parametrize(
    ("traits", "standing"),
    [
        ({}, "full"),
        ({"is_restricted": True}, "guest"),
        ({"is_ultra_restricted": True}, "guest"),
        ({"team_id": "T0OTHER001"}, "foreign"),
    ],
)
async def test_what_a_person_is_to_the_workspace_is_asked_once_an_hour(
    server: SlackServer, channel: SlackChannel, traits: dict[str, bool], standing: str
) -> None:
    person = server.user("Eve", **traits)  # type: ignore[arg-type]
    to = at(server, server.dm(person))
    for _ in range(2):
        assert await channel.membership.standing(to, person.id) == standing
    assert await channel.membership.is_member(to, person.id) is (standing == "full")
    assert len(server.calls_to("users.info")) == 1


async def test_somebody_who_was_deactivated_is_gone(
    server: SlackServer, channel: SlackChannel
) -> None:
    person = server.user("Eve")
    person.deleted = True
    to = at(server, server.dm(person))
    assert await channel.membership.standing(to, person.id) == "gone"


async def test_what_slack_does_not_say_is_not_known_and_asked_again(
    server: SlackServer, channel: SlackChannel
) -> None:
    person = server.user("Eve")
    zoo = at(server, server.channel("zoo", members=[person]))
    server.fail_next("users.info", error="internal_error")
    server.fail_next("conversations.info", error="internal_error")
    assert await channel.membership.standing(zoo, person.id) is None
    assert await channel.membership.is_shared(zoo) is None
    assert await channel.membership.standing(zoo, person.id) == "full"
    assert await channel.membership.is_shared(zoo) is False
    assert await channel.membership.is_shared(zoo) is False
    assert len(server.calls_to("conversations.info")) == 2


async def test_a_channel_that_others_read_along_in_is_told_from_a_direct_message(
    server: SlackServer, channel: SlackChannel
) -> None:
    zoo = server.channel("zoo")
    zoo.is_ext_shared = True
    assert await channel.membership.is_shared(at(server, zoo)) is True
    assert await channel.membership.title(at(server, zoo)) == "#zoo"
    assert await channel.membership.is_shared(at(server, server.dm(server.user("Eve")))) is False


async def test_a_channel_is_left_and_being_out_already_is_as_good(
    server: SlackServer, channel: SlackChannel
) -> None:
    zoo = server.channel("zoo", private=True)
    assert await channel.membership.leave(at(server, zoo))
    assert not zoo.has_bot
    assert await channel.membership.leave(at(server, server.channel("other", bot=False)))
    server.scopes.remove("channels:manage")
    kept = server.channel("kept")
    assert not await channel.membership.leave(at(server, kept))
    assert kept.has_bot


async def test_who_reads_a_channel_is_told_by_the_channel(
    server: SlackServer, channel: SlackChannel
) -> None:
    eve, bob = server.user("Eve"), server.user("Bob")
    zoo = at(server, server.channel("zoo", members=[eve]))
    assert await channel.membership.is_in(zoo, eve.id) is True
    assert await channel.membership.is_in(zoo, bob.id) is False
    server.fail_next("conversations.members", error="internal_error")
    assert await channel.membership.is_in(zoo, eve.id) is None
