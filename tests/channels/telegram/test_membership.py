"""Who is in a group, as far as Telegram tells a bot; and leaving one."""

from __future__ import annotations

import pytest

from channels.base import Address
from channels.telegram.channel import TelegramChannel
from tests.servers.telegram import Chat, TelegramServer


def at(chat: Chat) -> Address:
    return Address("telegram", "1", str(chat.id), None, private=chat.kind == "private")


@pytest.mark.parametrize(
    ("status", "is_in"),
    [("member", True), ("administrator", True), ("creator", True), ("left", False)],
)
async def test_members_are_told_from_those_who_left(
    server: TelegramServer, channel: TelegramChannel, status: str, is_in: bool
) -> None:
    eve = server.user("Eve")
    group = server.group("Club", members=[eve])
    if status == "left":
        group.leave(eve)
    elif status != "member":
        group.make_admin(eve, status)
    assert await channel.membership.is_member(at(group), str(eve.id)) is is_in


async def test_hidden_members_are_not_known_but_to_an_administrator(
    server: TelegramServer, channel: TelegramChannel
) -> None:
    eve = server.user("Eve")
    group = server.group("Club", members=[eve])
    group.members_hidden = True
    assert await channel.membership.is_member(at(group), str(eve.id)) is None
    group.promote_bot()
    assert await channel.membership.is_member(at(group), str(eve.id)) is True
    group.remove_bot()
    assert await channel.membership.is_member(at(group), str(eve.id)) is None


async def test_a_group_is_left_and_being_out_already_is_as_good(
    server: TelegramServer, channel: TelegramChannel
) -> None:
    group = server.group("Zoo", members=[server.user("Eve")])
    assert await channel.membership.title(at(group)) == "Zoo"
    for _ in range(2):
        assert await channel.membership.leave(at(group))
    assert group.bot_status == "left"
    server.fail_next("leaveChat", status=500, description="Internal Server Error")
    assert not await channel.membership.leave(at(group))


async def test_nobody_can_be_written_to_before_they_have_written(
    server: TelegramServer, channel: TelegramChannel
) -> None:
    eve, bo = server.user("Eve"), server.user("Bo")
    server.private(eve, started=False)
    server.private(bo)
    assert await channel.membership.can_write_to(str(eve.id)) is False
    assert await channel.membership.can_write_to(str(bo.id)) is True
    server.fail_next("getChat", status=500, description="Internal Server Error")
    assert await channel.membership.can_write_to(str(bo.id)) is None


async def test_a_link_needs_the_bots_name(server: TelegramServer, channel: TelegramChannel) -> None:
    assert channel.membership.start_link("inv_x") is None
    await channel.identify()
    link = channel.membership.start_link("inv_x")
    assert link == f"https://t.me/{server.bot.username}?start=inv_x"
