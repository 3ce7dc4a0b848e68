"""Links that let in a number of people until a time."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from bridge.access.invites import span_of
from memory.access.codes import MOST_WRONG
from tests.bridge.bed import Bed, bed

OWNER = {"person": "owner", "chat": "owner"}


async def invite(it: Bed, args: str = "") -> str:
    """The code."""
    told = await it.ask(f"/invite {args}".strip(), **OWNER)
    found = re.search(r"inv_[\w-]+", told)
    assert found, told
    return found[0]


async def test_a_link_lets_in_as_many_as_it_says(tmp_path: Path) -> None:
    async with bed(tmp_path, ["Hello."]) as it:
        code = await invite(it, "2 7d")
        assert "Uses: 2; it is good for 7d" in it.channel.said_in("owner")[0]
        for person in ("eve", "mal"):
            told = await it.ask(f"/start {code}", person=person, chat=person)
            assert told.startswith("You may talk to me now.")
        assert "used up" in await it.ask(code, person="zed", chat="zed")
        assert "already" in await it.ask(f"/start {code}", person="eve", chat="eve")
        assert await it.ask("hi", person="eve", chat="eve") == "Hello."
        await it.bridge.resume()
        await it.bridge.idle()
        assert len(it.channel.said_in("mal")) == 1
        rows = await it.database.read("SELECT actor, action, target, after FROM audit ORDER BY id")
        assert [row[1] for row in rows] == ["invite.made", "person.let_in", "person.let_in"]
        assert tuple(rows[1]) == ("fake:owner", "person.let_in", "fake:eve", "invite:1")
        assert "inv_" not in str([tuple(row) for row in rows])


async def test_one_that_is_over_or_revoked_lets_nobody_in(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        code = await invite(it, "5")
        await it.database.write(lambda c: c.execute("UPDATE invites SET expires_at = made_at"))
        assert "over" in await it.ask(f"/start {code}", person="eve", chat="eve")
        code = await invite(it, "5")
        assert "`invite:2` on fake: 0 of 5 used" in await it.ask("/people", **OWNER)
        assert "`invite:2`" in await it.ask("/revoke invite:2", **OWNER)
        assert "over" in await it.ask(f"/start {code}", person="eve", chat="eve")


async def test_a_code_that_was_passed_on_or_guessed_does_nothing(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        code = await invite(it)
        forwarded = it.channel.message(code, person="eve", chat="eve")
        await it.bridge.receive(replace(forwarded, own_words=False))
        await it.bridge.idle()
        assert "forwarded" in it.channel.said_in("eve")[0]
        for number in range(MOST_WRONG):
            assert "over" in await it.ask(f"inv_{number}", person="eve", chat="eve")
        assert "Too many" in await it.ask(code, person="eve", chat="eve")


async def test_who_was_shut_out_comes_in_by_no_link(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        code = await invite(it, "9")
        await it.ask(f"/start {code}", person="eve", chat="eve")
        await it.ask("/revoke eve", **OWNER)
        assert "over" in await it.ask(f"/start {await invite(it)}", person="eve", chat="eve")


async def test_the_code_of_somebody_with_access_is_in_no_history(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        code = await invite(it)
        assert "already" in await it.ask(code)
        assert it.provider.requests == []
        rows = await it.database.read("SELECT body FROM inbox WHERE person = 'ana'")
        assert [row[0] for row in rows] == [None]


@pytest.mark.parametrize("args", ["0", "1001", "2 0d", "2 400d", "x", "2 7w", "-1", "2 7 d"])
async def test_a_wish_that_is_none_is_said(args: str, tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        assert "So many people" in await it.ask(f"/invite {args}", **OWNER)
        assert await it.database.read("SELECT * FROM invites") == []


def test_times_are_read_as_they_are_typed() -> None:
    assert span_of("7d") == timedelta(days=7)
    assert span_of("90m") == timedelta(minutes=90)
    assert span_of("2h") == timedelta(hours=2)
    assert span_of("7") is None
    assert span_of("\u0667d") is None
