"""Who administers a workspace, as Slack says at the moment it is asked."""

from __future__ import annotations

from typing import Any

import pytest

from channels.base import Address
from channels.slack.api import SlackApi
from channels.slack.channel import SlackChannel
from channels.slack.manifest import SCOPES
from channels.slack.people import administers
from tests.servers.slack import SlackServer


def general(server: SlackServer) -> Address:
    return Address("slack", server.team_id, "C1", "1.2", private=False)


@pytest.mark.parametrize(
    ("role", "expected"), [({"is_admin": True}, True), ({"is_owner": True}, True), ({}, False)]
)
async def test_admins_and_owners_of_the_workspace_are_told_from_members(
    server: SlackServer, channel: SlackChannel, role: dict[str, Any], expected: bool
) -> None:
    person = server.user("Ana", **role)
    assert await channel.is_admin(general(server), person.id) is expected


async def test_an_admin_of_another_workspace_is_none_here(
    server: SlackServer, channel: SlackChannel
) -> None:
    guest = server.user("Guest", is_admin=True, team_id="T0OTHER001")
    assert not await channel.is_admin(general(server), guest.id)


async def test_it_is_asked_each_time(server: SlackServer, channel: SlackChannel) -> None:
    ana = server.user("Ana", is_admin=True)
    assert await channel.is_admin(general(server), ana.id)
    ana.is_admin = False
    assert not await channel.is_admin(general(server), ana.id)


@pytest.mark.parametrize("fault", [{"error": "user_not_found"}, {"drop": True}, {"html": True}])
async def test_nobody_is_an_admin_when_slack_does_not_answer(
    server: SlackServer, channel: SlackChannel, fault: dict[str, Any]
) -> None:
    ana = server.user("Ana", is_admin=True)
    server.fail_next("users.info", count=9, **fault)
    assert not await channel.is_admin(general(server), ana.id)


async def test_nobody_is_an_admin_without_the_scope_which_the_manifest_asks_for(
    server: SlackServer, channel: SlackChannel
) -> None:
    ana = server.user("Ana", is_admin=True)
    server.scopes = list(SCOPES)
    assert await channel.is_admin(general(server), ana.id)
    server.scopes.remove("users:read")
    assert not await channel.is_admin(general(server), ana.id)


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"team_id": "E1", "is_admin": True, "enterprise_user": {"teams": ["T1", "T2"]}}, True),
        ({"team_id": "E1", "is_admin": True, "enterprise_user": {"teams": ["T2"]}}, False),
        ({"team_id": "T1", "is_admin": True, "enterprise_user": None}, True),
        ({"team_id": "T1", "is_admin": False, "is_owner": True}, True),
        ({"team_id": "T1", "is_admin": "yes"}, False),
        ({"is_admin": True}, False),
        (None, False),
        ([], False),
    ],
)
async def test_only_a_clear_answer_makes_an_admin(user: object, expected: bool) -> None:
    class Api(SlackApi):
        def __init__(self) -> None:
            """No connection."""

        async def read(self, method: str, params: object) -> dict[str, Any]:
            return {"ok": True, "user": user}

    assert await administers(Api(), "T1", "U1") is expected


async def test_a_private_chat_is_the_direct_message(
    server: SlackServer, channel: SlackChannel
) -> None:
    ana = server.user("Ana")
    opened = await channel.private_with(general(server), ana.id)
    assert opened == Address("slack", server.team_id, server.dm(ana).id)
    assert await channel.private_with(general(server), "U404") is None


async def test_who_has_made_the_channel_manages_it_while_a_full_member_of_both(
    server: SlackServer, channel: SlackChannel
) -> None:
    ana, bo = server.user("Ana"), server.user("Bo")
    made = server.channel("made", members=[ana, bo])
    made.creator = ana
    place = Address("slack", server.team_id, made.id, None, private=False)
    assert await channel.is_admin(place, ana.id, managing=True)
    assert await channel.is_admin(place, ana.id) is False
    assert await channel.is_admin(place, bo.id, managing=True) is False
    made.members.remove(ana)
    assert await channel.is_admin(place, ana.id, managing=True) is False
    made.members.append(ana)
    ana.deleted = True
    assert await channel.is_admin(place, ana.id, managing=True) is False
    ana.deleted = False
    server.fail_next("conversations.info", error="internal_error")
    assert await channel.is_admin(place, ana.id, managing=True) is None


async def test_whom_the_operator_names_manages_also_by_a_user_group(
    server: SlackServer, channel: SlackChannel
) -> None:
    ana, bo, cleo = server.user("Ana"), server.user("Bo"), server.user("Cleo")
    server.user_groups["S0LEADS001"] = [bo]
    place = Address("slack", server.team_id, server.channel("c").id, None, private=False)

    async def manages(person: str) -> bool | None:
        named = {ana.id, "S0LEADS001"}
        return await channel.is_admin(place, person, managing=True, named=named)

    assert await manages(ana.id)
    assert await manages(bo.id)
    assert await manages(cleo.id) is False
    assert await channel.is_admin(place, ana.id, managing=True) is False, "who is named no more"
    server.user_groups.clear()
    assert await manages(bo.id) is None
