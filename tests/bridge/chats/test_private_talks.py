"""A private conversation: not remembered, not found, and gone at its end."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import bridge.chats.erasing
from agent.testing import calls
from bridge.chats.private_talks import LASTS
from bridge.scheduler import Due
from bridge.session import chat_scope
from channels.base import Address
from memory.clock import stamp
from tests.bridge.bed import Bed, bed
from tests.bridge.chats.test_erasing import MINE, bytes_with, rows_with

ANA = Address("fake", "bot", "1")


def due(after: timedelta) -> Due:
    now = datetime.now(UTC) + after
    return Due("private_end", "fake:bot:1", None, now, now)


async def flush_all(it: Bed) -> None:
    flushing = it.services.memory.flushing
    for (session,) in await it.database.read("SELECT id FROM sessions"):
        owner = await flushing.owner(session)
        if owner is not None:
            await flushing.flush(session, owner)


async def test_nothing_of_it_is_kept_and_the_conversation_before_goes_on(tmp_path: Path) -> None:
    remember = calls(("a", "remember", {"text": f"likes {MINE}"}))
    async with bed(tmp_path, ["One.", remember, "Two.", "Three."]) as it:
        await it.ask("my name is Ana")
        assert (await it.ask("/private")).startswith("A private conversation begins")
        assert await it.ask(f"my secret is {MINE}") == "Two."
        assert "my name is Ana" not in str(it.said())
        tools = {tool.name for tool in it.provider.requests[-1].tools}
        assert "memory_search" in tools
        assert not tools & {"remember", "forget"}
        assert "write nothing down" in await it.ask(f"/remember {MINE}")
        await flush_all(it)
        assert bytes_with(tmp_path / "memory", MINE) == []
        assert await it.services.notebook.search.find(chat_scope(ANA), MINE) == []
        assert await rows_with(it, MINE)
        assert (await it.ask("/new")).startswith("The private conversation is over")
        assert await rows_with(it, MINE) == []
        assert bytes_with(tmp_path, MINE) == []
        assert await it.ask("and?") == "Three."
        assert "my name is Ana" in str(it.said())


async def test_it_ends_after_a_day_also_over_a_restart(tmp_path: Path) -> None:
    async with bed(tmp_path, ["One."]) as it:
        await it.ask("/private")
        await it.ask(f"my secret is {MINE}")
        (job,) = [row for row in await it.services.jobs.all() if row.kind == "private_end"]
        assert job.scope == "fake:bot:1"
        assert job.due_at is not None
        assert abs(job.due_at - datetime.now(UTC) - LASTS) < timedelta(minutes=5)
    async with bed(tmp_path, ["Two."]) as it:
        await it.bridge.resume()
        await it.ask("go on")
        assert MINE in str(it.said())
        assert await it.bridge.talks.by_the_clock(due(timedelta())) == "none has to end"
        assert await it.bridge.talks.by_the_clock(due(LASTS)) == "ended"
        assert await rows_with(it, MINE) == []
        assert it.bridge.talks.of(ANA) is None


async def test_that_it_ended_by_time_is_said_once_and_not_where_another_one_goes_on(
    tmp_path: Path,
) -> None:
    over = "ended after 24 hours"
    async with bed(tmp_path, list("123456")) as it:
        await it.ask("/private")
        await it.ask("a secret")
        await it.bridge.talks.by_the_clock(due(LASTS))
    async with bed(tmp_path, list("3456")) as it:
        assert over in await it.ask("hello")
        assert over not in await it.ask("hello again")
        await it.ask("/private")
        await it.bridge.talks.by_the_clock(due(LASTS))
        await it.ask("/private")
        assert over not in await it.ask("another secret")
        await it.ask("/new")
        assert over not in await it.ask("and now")


async def test_an_answer_that_is_under_way_at_its_end_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge.chats.erasing, "QUIET_WAIT_S", 0.05)
    gate = asyncio.Event()
    async with bed(tmp_path, ["One."], stall=gate) as it:
        await it.ask("/private")
        await it.send("hi")
        await it.until(lambda: it.provider.requests)
        await it.send("/new")
        await it.until(lambda: any("Stop the running" in said for said in it.channel.finals))
        late = due(LASTS)
        assert "tried again" in await it.bridge.talks.by_the_clock(late)
        (job,) = [row for row in await it.services.jobs.all() if row.kind == "private_end"]
        assert job.due_at is not None
        assert stamp(job.due_at) > stamp(late.now)
        gate.set()
        await it.until(lambda: "One." in it.channel.finals)
        await it.bridge.idle()
        assert await it.bridge.talks.by_the_clock(late) == "ended"


async def test_in_a_group_there_is_none(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        said = await it.ask("/private", chat="team", private=False)
        assert said == "This works in a private chat with me only."
