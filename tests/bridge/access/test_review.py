"""The configuration's rules change while the bot runs: who loses access by that is not answered."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridge.access import ChannelAccess
from tests.bridge.access.test_people import OWNER, TEAM, run_of
from tests.bridge.bed import RULES, Bed, bed


def without(*ids: str) -> dict[str, ChannelAccess]:
    return {"fake": replace(RULES, allowed=RULES.allowed - set(ids))}


async def open_questions(it: Bed) -> list[str]:
    rows = await it.database.read(
        "SELECT chat FROM inbox WHERE state = 'open' AND kind = 'turn' ORDER BY chat"
    )
    return [str(row[0]) for row in rows]


async def test_only_who_has_lost_access_is_stopped_and_is_a_stranger_then(tmp_path: Path) -> None:
    stall = asyncio.Event()
    places = (
        {"person": "bo", "chat": "2"},
        {"person": "bo", **TEAM},
        {"person": "ana", "chat": "1"},
    )
    async with bed(tmp_path, ["A long answer."] * 3 + ["And then."], stall=stall) as it:
        for number, where in enumerate(places, start=1):
            await run_of(it, **where)
            await it.until(lambda number=number: len(it.provider.requests) == number)
            await it.until(lambda: it.channel.replies[-1].preview)
        it.bridge.door.change(without("bo"))
        await it.until(lambda: it.channel.said_in("2"))
        assert "Stopped." in it.channel.said_in("2")[-1]
        assert await open_questions(it) == ["1", "1", "team", "team"], "in the group all may ask"
        it.bridge.door.change(without("bo", "team"))
        await it.until(lambda: it.channel.said_in("team"))
        assert "Stopped." in it.channel.said_in("team")[-1]
        assert await open_questions(it) == ["1", "1"]
        stall.set()
        await it.bridge.idle()
        assert it.channel.said_in("1") == ["A long answer.", "And then."]
        await it.ask("hi", person="bo", chat="2")
        assert "I do not know you yet" in it.channel.said_in("2")[-1]


async def test_owners_come_and_go(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        it.bridge.door.change({"fake": replace(RULES, owners=frozenset({"ana"}))})
        told = await it.ask("/people", **OWNER)
        assert "would like to talk to me" in told, "the new owner is asked about the former one"
        assert "Owners" in await it.ask("/people", person="ana", chat="ana")


async def test_where_the_platform_does_not_answer_a_running_answer_goes_on(tmp_path: Path) -> None:
    stall = asyncio.Event()
    async with bed(tmp_path, ["A long answer.", "And then."], stall=stall) as it:
        await run_of(it, person="bo", chat="2")
        it.channel.membership.standings = {"bo": None}
        it.bridge.door.change(without("bo"))
        await asyncio.sleep(0)
        stall.set()
        await it.bridge.idle()
        assert it.channel.said_in("2") == ["A long answer.", "And then."]


async def test_a_question_that_is_stored_while_the_rules_change_is_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bed(tmp_path, ["never"], stall=asyncio.Event()) as it:
        put = it.services.inbox.put_question

        async def late(*args: Any) -> Any:
            it.access.change(without("bo"))
            return await put(*args)

        monkeypatch.setattr(it.services.inbox, "put_question", late)
        await it.send("quick", person="bo", chat="2")
        await it.bridge.idle()
        assert await open_questions(it) == []
        assert it.channel.said_in("2") in ([], ["Stopped."])


async def test_what_was_asked_before_access_was_lost_is_not_answered_at_the_next_start(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["never"], stall=asyncio.Event()) as it:
        await run_of(it, person="bo", chat="2")
        await it.bridge.close(0)
    async with bed(tmp_path, ["no"], stall=asyncio.Event()) as it:
        it.access.change(without("bo"))
        await it.bridge.resume()
        await it.bridge.idle()
        assert await open_questions(it) == []
