"""A run ends when its time is up, whatever a tool or a stream does, and its history is legal then."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agent import loop, tool_runner
from agent.errors import LimitReached, RefusalKind
from agent.history import violations
from agent.loop import FAILED_MARK, TIME_UP, TIME_UP_UNKNOWN, AgentRun, Effects
from agent.messages import JsonObject, Message, user_text
from agent.provider import ModelRequest
from agent.testing import calls, refusal
from agent.tool_runner import MAYBE
from agent.tools import ToolContext, ToolOutput
from tests.agent.bed import LIMITS, Echo, Fixture, result_texts

SHORT = replace(LIMITS, seconds=0.02)


class Stubborn(Echo):
    """Goes on whatever it is told, until it is released."""

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        self.ran.append(arguments)
        self.begun.set()
        assert self.release is not None
        while not self.release.is_set():
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                continue
        raise RuntimeError("too late for anybody to read")


def hanging(tool: Echo) -> Echo:
    tool.release = asyncio.Event()
    return tool


def legal(run: AgentRun) -> bool:
    return violations([user_text("q"), *run.last_run_new_messages, user_text("more")]) == []


@pytest.mark.parametrize(
    ("parallel", "text", "unknown"),
    [(False, TIME_UP_UNKNOWN, ("echo",)), (True, TIME_UP, ())],
)
async def test_a_hanging_tool_ends_with_the_run_and_is_unknown_if_it_has_side_effects(
    parallel: bool, text: str, unknown: tuple[str, ...]
) -> None:
    tool = hanging(Echo(parallel=parallel))
    step = calls(("a", "echo", {"say": "x"}))
    fixture = Fixture([step, "So far I have nothing."], tools=[tool], limits=SHORT)
    run = fixture.run()
    assert await run.execute() == "So far I have nothing."
    assert [(notice.limit, notice.values) for notice in run.notices] == [
        ("seconds", {"limit": "0.02"})
    ]
    assert result_texts(run.last_run_new_messages[1]) == [text]
    assert run.effects() == Effects(done=(), unknown=unknown)
    assert not fixture.provider.requests[-1].may_call
    assert list(fixture.journal.rows.values()) == run.last_run_new_messages
    assert legal(run)


async def test_what_was_done_before_the_time_was_up_keeps_its_result_and_nothing_more_starts() -> (
    None
):
    slow, quick = hanging(Echo("slow")), Echo("quick")
    step = calls(
        ("a", "quick", {"say": "1"}), ("b", "slow", {"say": "2"}), ("c", "quick", {"say": "3"})
    )
    time_for_the_first = replace(LIMITS, seconds=1.0)  # also where the machine is busy
    run = Fixture([step, "ok"], tools=[slow, quick], limits=time_for_the_first).run()
    await run.execute()
    assert result_texts(run.last_run_new_messages[1]) == ["1", TIME_UP_UNKNOWN, TIME_UP]
    assert len(quick.ran) == 1
    assert run.effects() == Effects(done=("quick",), unknown=("slow",))


async def test_a_tool_that_swallows_its_end_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_runner, "GRACE_S", 0.01)
    tool = hanging(Stubborn())
    run = Fixture([calls(("a", "echo", {"say": "x"})), "ok"], tools=[tool], limits=SHORT).run()
    assert await run.execute() == "ok"
    assert result_texts(run.last_run_new_messages[1]) == [TIME_UP_UNKNOWN]
    before = list(run.last_run_new_messages)
    await released(tool)
    assert run.last_run_new_messages == before


async def released(tool: Echo) -> None:
    """Let the tool come to its end, and its task with it."""
    assert tool.release is not None
    tool.release.set()
    others = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
    await asyncio.wait(others)


async def test_a_silent_stream_ends_with_the_run_and_what_was_shown_stays() -> None:
    fixture = Fixture(["first half, second half"], limits=SHORT)
    fixture.provider.stall = asyncio.Event()
    run = fixture.run()
    with pytest.raises(LimitReached) as stopped:
        await run.execute()
    assert (stopped.value.limit, stopped.value.values) == ("seconds", {"limit": "0.02"})
    assert len(fixture.provider.requests) == 1, "nothing is said anew"
    run.close(FAILED_MARK)
    assert run.last_run_new_messages[-1].text == f"first half,\n\n{FAILED_MARK}"
    assert [call.outcome for call in run.calls] == ["cancelled"]
    assert legal(run)


async def test_a_wait_between_two_tries_ends_with_the_run() -> None:
    async def sleep(_: float) -> None:
        await asyncio.Event().wait()

    run = Fixture([refusal(RefusalKind.RATE_LIMIT)], limits=SHORT).run(sleep=sleep)
    with pytest.raises(LimitReached):
        await run.execute()
    run.close(FAILED_MARK)
    assert legal(run)


async def test_a_closing_call_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "CLOSING_S", 0.02)
    fixture = Fixture([], tools=[hanging(Echo())], limits=SHORT)

    def closing(request: ModelRequest) -> Message:
        fixture.provider.stall = asyncio.Event()
        return Message("assistant", user_text("Here is what I have.").blocks)

    fixture.provider.steps += [calls(("a", "echo", {"say": "x"})), closing]
    run = fixture.run()
    with pytest.raises(LimitReached) as stopped:
        await run.execute()
    assert stopped.value.limit == "seconds"
    run.close(FAILED_MARK)
    assert "Here is wh" in run.last_run_new_messages[-1].text
    assert legal(run)


@pytest.mark.parametrize("stubborn", [False, True])
async def test_a_cancel_in_a_run_with_little_time_left_is_a_cancel(
    stubborn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_runner, "GRACE_S", 0.01)
    tool = hanging(Stubborn() if stubborn else Echo())
    fixture = Fixture([calls(("a", "echo", {"say": "x"}))], tools=[tool])
    run = fixture.run()
    task = asyncio.ensure_future(run.execute())
    fixture.token.bind(task)
    await tool.begun.wait()
    fixture.token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    if stubborn:
        await released(tool)


async def test_a_tool_that_ran_into_its_own_limit_is_of_unknown_outcome() -> None:
    changing, reading = hanging(Echo("change")), hanging(Echo("read", parallel=True))
    for tool in (changing, reading):
        tool.spec = replace(tool.spec, timeout_s=0.01)
    step = calls(("a", "change", {"say": "x"}), ("b", "read", {"say": "x"}))
    run = Fixture([step, "ok"], tools=[changing, reading]).run()
    await run.execute()
    changed, read = result_texts(run.last_run_new_messages[1])
    assert changed.endswith(MAYBE)
    assert MAYBE not in read
    assert run.effects() == Effects(done=(), unknown=("change",))


class Broken(Echo):
    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        raise LookupError("after half of it")


async def test_a_tool_that_broke_in_the_middle_is_of_unknown_outcome() -> None:
    run = Fixture([calls(("a", "echo", {"say": "x"})), "ok"], tools=[Broken()]).run()
    await run.execute()
    assert result_texts(run.last_run_new_messages[1])[0].endswith(MAYBE)
    assert run.effects() == Effects(done=(), unknown=("echo",))


async def test_a_result_that_is_no_valid_text_reaches_the_store_and_the_model() -> None:
    """File names need not be valid Unicode: half a character alone cannot be stored."""
    fixture = Fixture([calls(("a", "echo", {"say": "x"})), "ok"], tools=[Listing()])
    run = fixture.run()
    assert await run.execute() == "ok"
    assert result_texts(fixture.journal.rows[2]) == ["name \ufffd.txt, \U0001f600"]


class Listing(Echo):
    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        return ToolOutput.of("name \udcff.txt, \ud83d\ude00")
