"""Who is answered: what is not let in is out, and what cannot be read is a no."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.access import Access, ChannelAccess
from bridge.access.policy import Verdict
from bridge.access.stores import AccessStores
from bridge.configuration.settings import Channels, Config, Slack, Telegram
from bridge.registry import access_rules
from channels.base import Address, Sender
from channels.testing import FakeChannel
from memory.access.admissions import Someone
from memory.chats.reach import Chats
from memory.database import Database

PRIVATE = Address("fake", "bot", "1")
GROUP = Address("fake", "bot", "team", None, private=False)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "galata.db")
    yield opened
    await opened.close()


class World:
    def __init__(self, database: Database) -> None:
        self.channel = FakeChannel()
        self.database = database

    async def verdict(self, rules: ChannelAccess, person: str, to: Address = PRIVATE) -> Verdict:
        return await self.access(rules).verdict(to, Sender(person, "Owner"))

    def access(self, rules: ChannelAccess) -> Access:
        stores = AccessStores.of(self.database)
        channels = {"fake": self.channel}
        return Access({"fake": rules}, Chats(self.database), stores, channels)


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


async def test_without_a_word_everybody_is_out(world: World) -> None:
    nothing = ChannelAccess()
    assert await world.verdict(nothing, "eve") == "unknown"
    assert await world.verdict(nothing, "eve", GROUP) == "unknown"
    assert await world.verdict(ChannelAccess(open=True), "eve") == "yes"
    assert await world.verdict(ChannelAccess(open=True), "eve", GROUP) == "yes"


async def test_guests_and_others_are_out_unless_the_operator_says_so(world: World) -> None:
    world.channel.membership.standings = {"gus": "guest", "fay": "foreign", "gil": "gone"}
    let_in = ChannelAccess(open=True, allowed=frozenset({"team"}))
    for person in ("gus", "fay", "gil"):
        for to in (PRIVATE, GROUP):
            assert await world.verdict(let_in, person, to) == "outsider"
    assert await world.verdict(replace(let_in, guests=True), "gus") == "yes"
    assert await world.verdict(replace(let_in, guests=True), "fay") == "outsider"
    assert await world.verdict(replace(let_in, other_organizations=True), "fay") == "yes"
    assert await world.verdict(ChannelAccess(allowed=frozenset({"gus"})), "gus") == "yes"


async def test_the_id_of_a_person_in_the_configuration_opens_no_group(world: World) -> None:
    world.channel.membership.standings = {"gus": "guest"}
    listed = ChannelAccess(allowed=frozenset({"ana", "gus"}))
    for person in ("ana", "gus"):
        assert await world.verdict(listed, person) == "yes"
        assert await world.verdict(listed, person, GROUP) == "unknown"
        both = replace(listed, allowed=listed.allowed | {"team"})
        assert await world.verdict(both, person, GROUP) == "yes"


async def test_a_shared_channel_is_out_unless_the_operator_says_so(world: World) -> None:
    world.channel.membership.shared = {"team"}
    listed = frozenset({"team", "ana"})
    assert await world.verdict(ChannelAccess(allowed=listed), "ana", GROUP) == "outsider"
    assert await world.verdict(ChannelAccess(allowed=listed), "ana") == "yes"
    shared = ChannelAccess(allowed=listed, shared_channels=True)
    assert await world.verdict(shared, "ana", GROUP) == "yes"


async def test_what_the_platform_does_not_say_is_a_no(world: World) -> None:
    world.channel.membership.standings = {"eve": None}
    assert await world.verdict(ChannelAccess(open=True), "eve") == "unreadable"
    members = ChannelAccess(members_of=frozenset({"hidden"}))
    assert await world.verdict(members, "bo") == "unreadable"
    world.channel.membership.shared = None
    listed = ChannelAccess(allowed=frozenset({"team"}))
    assert await world.verdict(listed, "bo", GROUP) == "unreadable"


async def test_members_of_a_named_group_are_let_in_until_they_leave_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = world.channel.membership.members = {"club": {"ana"}, "choir": set()}
    access = world.access(ChannelAccess(members_of=frozenset({"club", "choir"})))
    for _ in range(2):
        assert await access.verdict(PRIVATE, Sender("ana", "")) == "yes"
    assert world.channel.membership.asked == 2
    assert await access.verdict(GROUP, Sender("ana", "")) == "unknown"
    club = Address("fake", "bot", "club", None, private=False)
    assert await access.verdict(club, Sender("bo", "")) == "yes", "whoever writes there is in it"
    assert await access.verdict(PRIVATE, Sender("bo", "")) == "unknown"
    members["club"].clear()
    assert await access.verdict(PRIVATE, Sender("ana", "")) == "yes", (
        "the platform is not asked each time"
    )
    an_hour_later = asyncio.get_running_loop().time() + 3_600
    monkeypatch.setattr("bridge.access.members._now", lambda: an_hour_later)
    assert await access.verdict(PRIVATE, Sender("ana", "")) == "unknown"


async def test_who_was_shut_out_stays_out_whatever_else_lets_them_in(world: World) -> None:
    rules = ChannelAccess(
        allowed=frozenset({"eve", "team"}), open=True, members_of=frozenset({"club"})
    )
    access = world.access(rules)
    assert await access.verdict(PRIVATE, Sender("eve", "")) == "yes"
    await access.stores.admissions.shut_out("fake", "eve", "fake:owner")
    for one in (access, world.access(rules)):
        await one.load()
        assert await one.verdict(PRIVATE, Sender("eve", "")) == "shut_out"
        assert await one.verdict(GROUP, Sender("eve", "")) == "shut_out"
    access.note(Someone("fake", "eve"), "in")
    assert await access.verdict(GROUP, Sender("eve", "")) == "yes"


def test_every_key_of_the_configuration_becomes_a_rule() -> None:
    telegram = Telegram.model_validate(
        {
            "token": "1:a",
            "owners": ["1"],
            "allowed": ["2"],
            "access": "open",
            "members_of": ["-3"],
        }
    )
    slack = Slack.model_validate(
        {
            "bot_token": "xoxb-1",
            "app_token": "xapp-1",
            "workspace_members": True,
            "guests": True,
            "other_organizations": True,
            "shared_channels": True,
        }
    )
    rules = access_rules(Config(channels=Channels(telegram=telegram, slack=slack)))
    assert rules["telegram"] == ChannelAccess(
        frozenset({"1"}), frozenset({"2"}), open=True, members_of=frozenset({"-3"})
    )
    assert rules["slack"] == ChannelAccess(
        members_of=frozenset({""}), guests=True, other_organizations=True, shared_channels=True
    )
    assert rules["console"] == ChannelAccess(terminal=True)
    plain = Slack.model_validate({"bot_token": "xoxb-1", "app_token": "xapp-1"})
    assert access_rules(Config(channels=Channels(slack=plain)))["slack"] == ChannelAccess()
