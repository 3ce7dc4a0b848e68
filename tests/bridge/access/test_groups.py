"""Groups that the bot is added to: the owners decide, and without them it leaves."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bridge.access import ChannelAccess
from bridge.scheduler import Due
from channels.base import InboundMessage
from channels.testing import FakeReply
from memory.access.known_groups import LEAVE
from memory.jobs import Jobs
from tests.bridge.bed import Bed, bed

ZOO = {"chat": "zoo", "private": False}


def added(it: Bed, *, chat: str = "zoo", by: str = "eve", deaf: bool = False) -> InboundMessage:
    message = it.channel.message("", person=by, chat=chat, private=False)
    return replace(
        message, event="joined:1", message_id="", joined=True, joined_deaf=deaf, addressed=deaf
    )


async def receive(it: Bed, message: InboundMessage) -> None:
    await it.bridge.receive(message)
    await it.bridge.idle()


def question(it: Bed) -> FakeReply:
    (found,) = [one for one in it.channel.replies if one.to.chat == "owner" and one.buttons]
    return found


async def decide(it: Bed, button: int) -> FakeReply:
    asked = question(it)
    await receive(it, it.channel.press(asked, button=button, person="owner"))
    return asked


async def due(it: Bed) -> str:
    (job,) = [row for row in await Jobs(it.database).all() if row.kind == LEAVE]
    assert job.due_at is not None
    now = datetime.now(UTC)
    return await it.bridge.door.handlers[LEAVE].run(Due(LEAVE, job.scope, None, job.due_at, now))


async def test_an_allowed_group_is_greeted_once_and_answered(tmp_path: Path) -> None:
    async with bed(tmp_path, ["Roar."]) as it:
        it.channel.membership.titles = {"zoo": "The *Zoo*"}
        await receive(it, added(it))
        await receive(it, added(it))
        (line,) = it.channel.said_in("zoo")
        assert line.startswith("I do not know this group yet")
        assert "`zoo`" in line
        text = question(it).final or ""
        assert "(`fake:eve`) wants me in the group The Zoo (`fake:zoo`)" in text
        await it.send("hello?", person="eve", chat="zoo", private=False)
        await it.bridge.idle()
        assert len(it.channel.said_in("zoo")) == 1
        assert it.provider.requests == []
        asked = await decide(it, 0)
        assert (asked.final or "").startswith("I answer in The Zoo (`fake:zoo`) now.")
        greeting = it.channel.said_in("zoo")[-1]
        for told in ("/ask", "/limits", "/privacy", "`zoo`"):
            assert told in greeting
        assert await it.ask("hi", person="eve", **ZOO) == "Roar."
        await receive(it, added(it))
        assert len(it.channel.said_in("zoo")) == 3
        assert [row for row in await Jobs(it.database).all() if row.kind == LEAVE] == []


async def test_a_refused_group_is_left_and_left_again_but_not_for_an_owner(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        await receive(it, added(it))
        asked = await decide(it, 1)
        assert (asked.final or "").startswith("I leave")
        assert it.channel.membership.left == ["zoo"]
        await receive(it, added(it, by="mal"))
        assert it.channel.membership.left == ["zoo", "zoo"]
        assert len(it.channel.said_in("zoo")) == 1
        await receive(it, added(it, by="owner"))
        assert question(it).final
        rows = await it.database.read("SELECT actor, action, target FROM audit")
        assert [tuple(row) for row in rows] == [("fake:owner", "group.refused", "fake:zoo")]


async def test_what_another_owner_has_allowed_an_old_question_does_not_refuse(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path) as it:
        await receive(it, added(it))
        old = replace(question(it))  # as the other owner still sees it
        await decide(it, 0)
        it.channel.replies.append(old)
        await receive(it, it.channel.press(old, button=1, person="owner"))
        assert it.channel.membership.left == []


async def test_after_a_day_without_an_answer_it_leaves(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        await receive(it, added(it))
        (job,) = [row for row in await Jobs(it.database).all() if row.kind == LEAVE]
        assert job.due_at is not None
        assert timedelta(hours=23) < job.due_at - datetime.now(UTC) <= timedelta(hours=24)
        assert await due(it) == "left"
        assert it.channel.membership.left == ["zoo"]
        asked = await decide(it, 0)
        assert asked.final == "Nobody has answered in time, so I have left that group."


async def test_a_decision_stands_after_a_restart(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        await receive(it, added(it))
        await decide(it, 0)
    async with bed(tmp_path, ["Roar."]) as it:
        assert await it.ask("hi", person="eve", **ZOO) == "Roar."


async def test_a_group_of_the_configuration_is_greeted_once_also_when_it_is_deaf(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path) as it:
        await receive(it, added(it, chat="team", deaf=True))
        assert "privacy mode" in it.channel.said_in("team")[0]
        assert "`team`" in it.channel.said_in("team")[0]
        await receive(it, added(it, chat="team", deaf=True))
        assert it.channel.said_in("team")[1].startswith("Thank you for adding me.")


async def test_owners_are_not_flooded_by_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.access.known_groups.MOST_TOLD", 2)
    async with bed(tmp_path) as it:
        for number in range(4):
            await receive(it, added(it, chat=f"g{number}"))
        assert len([one for one in it.channel.replies if one.buttons]) == 2
        people = await it.ask("/people", person="owner", chat="owner")
        assert people.count("waits for an owner") == 4


async def test_a_channel_that_others_read_along_in_is_left_and_nobody_is_asked(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path) as it:
        it.channel.membership.shared = {"zoo"}
        await receive(it, added(it))
        assert it.channel.said_in("zoo")[0].startswith("People of other organisations")
        assert it.channel.membership.left == ["zoo"]
        assert it.channel.said_in("owner") == []


async def test_a_group_that_the_configuration_lists_no_more_is_unknown_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bed(tmp_path) as it:
        await receive(it, added(it, chat="team"))
        assert it.channel.said_in("team")[0].startswith("Hello.")
    monkeypatch.setattr("tests.bridge.bed.RULES", ChannelAccess(frozenset({"owner"})))
    async with bed(tmp_path) as it:
        await it.send("hi", person="eve", chat="team", private=False)
        await it.bridge.idle()
        assert it.channel.said_in("team")[0].startswith("I do not know this group yet")
        assert it.provider.requests == []
        assert question(it).final
