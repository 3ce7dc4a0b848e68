"""A disk that is full, locked or read-only: nothing is acknowledged that is not stored, nothing is
answered twice, and the bot recovers by itself."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from pathlib import Path

import pytest

from agent.testing import calls
from agent.tools import ToolContext, ToolOutput, ToolSpec
from bridge.lanes import Outcome
from bridge.runs import settling
from channels.base import Attachment
from channels.errors import NotStored
from tests.bridge.bed import Bed, bed
from tests.bridge.faulty_store import BULK, FAULTS, Fault

fault = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
PATH = "galata.db"


@pytest.fixture(autouse=True)
def soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "STORE_AGAIN_S", (0.05,))


class Pay:
    """A tool with an effect and a long answer, that ends when `done` is set."""

    spec = ToolSpec(
        "pay", "Pays.", {"type": "object", "properties": {}}, parallel=False, side_effects=True
    )

    def __init__(self, done: asyncio.Event) -> None:
        self.paid = 0
        self.begun = asyncio.Event()
        self.done = done

    async def run(self, arguments: object, context: ToolContext) -> ToolOutput:
        self.paid += 1
        self.begun.set()
        await self.done.wait()
        return ToolOutput.of(BULK)


async def rows(it: Bed, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in await it.database.read(sql)]


@fault
async def test_what_cannot_be_stored_is_not_acknowledged_and_comes_again(
    tmp_path: Path, fault: Fault
) -> None:
    async with bed(tmp_path, ["answer"]) as it:
        message = it.channel.message(BULK)
        async with fault(it.database, tmp_path / PATH):
            for _ in range(3):  # as the platform delivers it again and again
                with pytest.raises(NotStored):
                    await it.bridge.receive(message)
        assert await rows(it, "SELECT * FROM inbox") == []
        assert it.provider.requests == []
        await it.until(lambda: it.channel.finals)
        await it.bridge.receive(message)
        await it.until(lambda: len(it.channel.finals) > 1)
        await it.bridge.idle()
        told, answer = it.channel.finals
        assert "your message waits" in told, "once, however often it comes"
        assert answer == "answer"
        assert await rows(it, "SELECT state, outcome FROM inbox") == [("done", "answered")]


async def test_who_comes_behind_what_cannot_be_stored_is_told_once_and_nothing_is_taken_in(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["answer"]) as it:
        message = it.channel.message("behind")
        for _ in range(2):
            with pytest.raises(NotStored):
                await it.bridge.receive(replace(message, behind=True))
        overheard = it.channel.message("chatter", chat="team", private=False, addressed=False)
        with pytest.raises(NotStored):
            await it.bridge.receive(replace(overheard, behind=True))
        await it.until(lambda: it.channel.finals)
        await it.bridge.idle()
        assert ["your message waits" in told for told in it.channel.finals] == [True]
        assert await rows(it, "SELECT * FROM inbox") == []
        await it.bridge.receive(message)
        await it.bridge.idle()
        assert it.channel.finals[1:] == ["answer"]


async def test_where_it_may_not_come_again_nobody_is_told_that_they_need_not_send_it_again(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path) as it:
        it.channel.capabilities = replace(it.channel.capabilities, comes_again=False)
        with pytest.raises(NotStored):
            await it.bridge.receive(replace(it.channel.message("hi"), behind=True))
        await it.until(lambda: it.channel.finals)
        assert it.channel.finals[0].endswith("should no answer come, please send it again.")


@fault
async def test_a_command_that_cannot_be_stored_comes_again(tmp_path: Path, fault: Fault) -> None:
    async with bed(tmp_path) as it:
        message = it.channel.message(f"/help {BULK}")
        async with fault(it.database, tmp_path / PATH):
            with pytest.raises(NotStored):
                await it.bridge.receive(message)
        await it.bridge.receive(message)
        await it.until(lambda: it.channel.finals)
        assert len(it.channel.finals) == 1


@fault
async def test_other_messages_are_taken_after_it_is_over(tmp_path: Path, fault: Fault) -> None:
    async with bed(tmp_path, ["one", "two"]) as it:
        assert await it.ask("before") == "one"
        async with fault(it.database, tmp_path / PATH):
            with pytest.raises(NotStored):
                await it.send(BULK)
        assert await it.ask("after") == "two"
        assert it.said()[-1] == ("user", "after")


@fault
async def test_an_answer_that_cannot_be_stored_waits_for_the_store_with_one_word_and_comes_once(
    tmp_path: Path, fault: Fault
) -> None:
    stall = asyncio.Event()
    async with bed(tmp_path, [BULK, "next"], stall=stall) as it:
        question = await it.send("question")
        await it.provider.streaming.wait()
        async with fault(it.database, tmp_path / PATH):
            stall.set()
            await it.until(lambda: it.channel.finals)
            assert "The answer comes when I can" in it.channel.finals[0]
            assert len(it.channel.finals) == 1
        await it.bridge.receive(question)  # the platform has not heard of it yet: it is known
        await it.until(lambda: len(it.channel.finals) > 1)
        await it.bridge.idle()
        assert it.channel.finals.count(BULK.strip()) == 1
        assert await it.ask("and now?") == "next"
        assert len(it.channel.finals) == 3
        assert await rows(it, "SELECT id FROM inbox WHERE state = 'open'") == []
        assert [text for role, text in it.said() if role == "user"] == ["question", "and now?"]
        assert (await rows(it, "PRAGMA integrity_check"))[0] == ("ok",)


@fault
async def test_a_fault_at_the_end_of_a_run_outlived_by_a_restart_repeats_no_answer(
    tmp_path: Path, fault: Fault
) -> None:
    stall = asyncio.Event()
    async with bed(tmp_path, [BULK], stall=stall) as it:
        await it.send("question")
        await it.provider.streaming.wait()
        async with fault(it.database, tmp_path / PATH):
            stall.set()
            await it.until(lambda: it.channel.finals)
    async with bed(tmp_path, ["again"]) as it:
        await it.bridge.resume()
        await it.bridge.idle()
        assert await rows(it, "SELECT id FROM inbox WHERE state = 'open'") == []
        users = [text for role, text in it.said() if role == "user"] if it.provider.requests else []
        assert users in ([], ["question"]), "it stands in the history once"


@pytest.mark.parametrize("in_time", [True, False])
async def test_with_a_damaged_database_an_answer_comes_while_there_is_time_and_none_is_promised(
    tmp_path: Path, in_time: bool
) -> None:
    stall = asyncio.Event()
    async with bed(tmp_path, ["An answer."], stall=stall) as it:
        await it.send("question")
        await it.provider.streaming.wait()
        it.database.damaged.set()
        if in_time:
            stall.set()
        await it.bridge.close(10.0 if in_time else 0.0)
        *before, told = it.channel.finals
        assert "lost with it: please ask again" in told
        assert before == ["An answer."] * in_time


async def test_with_little_room_files_are_not_fetched_and_words_are_answered(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["fine"]) as it:
        it.services.pictures._room = lambda: False
        it.channel.files = {"p": b"a picture"}
        attachment = Attachment("image", "p", "photo.jpg", "image/jpeg")
        await it.bridge.receive(replace(it.channel.message("look"), attachments=(attachment,)))
        await it.until(lambda: it.channel.finals)
        assert "nearly full" in it.channel.finals[0]
        assert it.provider.requests == []
        await it.bridge.idle()
        assert await it.ask("hi") == "fine"


@fault
async def test_a_run_whose_tool_has_acted_goes_on_from_there_when_the_store_is_back(
    tmp_path: Path, fault: Fault
) -> None:
    pay = Pay(asyncio.Event())
    async with bed(tmp_path, [calls(("p", "pay", {})), "Paid."], more_tools=[pay]) as it:
        await it.send("pay")
        await pay.begun.wait()
        async with fault(it.database, tmp_path / PATH):
            pay.done.set()
            await it.until(lambda: any("when I can" in text for text in it.channel.finals))
        await it.until(lambda: "Paid." in it.channel.finals)
        await it.bridge.idle()
        assert pay.paid == 1
        (result,) = it.provider.requests[-1].messages[-1].tool_results
        assert not result.is_error, "what came of it was known, and is kept"


@fault
async def test_a_run_that_cannot_be_stored_and_is_stopped_then_is_not_taken_up_again(
    tmp_path: Path, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = settling.Settling.settle
    pay = Pay(asyncio.Event())
    async with bed(tmp_path, [calls(("a", "pay", {})), "paid"], more_tools=[pay]) as it:
        stopped = asyncio.Event()

        async def settle_late(job: settling.Settling, outcome: Outcome) -> None:
            with contextlib.suppress(NotStored):  # it is small: a full disk may still take it
                await it.send("/cancel")
            stopped.set()
            await settle(job, outcome)

        monkeypatch.setattr(settling.Settling, "settle", settle_late)
        await it.send("pay")
        await pay.begun.wait()
        async with fault(it.database, tmp_path / PATH):
            pay.done.set()
            await stopped.wait()
        await it.until(lambda: any("Done before the stop: `pay`" in t for t in it.channel.finals))
        await it.bridge.idle()
        assert len(it.provider.requests) == 1
        assert await rows(it, "SELECT id FROM inbox WHERE state = 'open' AND kind = 'turn'") == []
