"""The loop: tools, caps, cancel at any await, and messages that are exactly the run's own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC

import pytest

from agent.cancel import CancelToken
from agent.context import TurnWindow
from agent.errors import LimitReached, ProviderError, RefusalKind
from agent.events import RunEvent
from agent.history import repair, violations
from agent.loop import STOPPED_MARK, AgentPorts, AgentRun, AgentTask, ModelCall
from agent.messages import (
    JsonObject,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    assistant_text,
    user_text,
)
from agent.provider import ModelTraits, Usage
from agent.testing import ScriptedProvider, Step, calls, refusal
from agent.tools import Toolbox, ToolContext, ToolOutput, ToolSpec


class Journal:
    def __init__(self) -> None:
        self.rows: dict[int, Message] = {}

    async def append(self, ordinal: int, message: Message) -> None:
        await asyncio.sleep(0)
        self.rows.setdefault(ordinal, message)


class Steps:
    def __init__(self, most: int = 10) -> None:
        self.most = most

    async def check(self, step: int) -> None:
        await asyncio.sleep(0)
        if step > self.most:
            raise LimitReached("steps_per_run", limit=str(self.most))


class Echo:
    def __init__(self, name: str = "echo", *, parallel: bool = False) -> None:
        self.spec = ToolSpec(
            name,
            "Says it again.",
            {"type": "object", "properties": {"say": {"type": "string"}}, "required": ["say"]},
            parallel=parallel,
            side_effects=not parallel,
        )
        self.ran: list[JsonObject] = []
        self.release: asyncio.Event | None = None
        self.begun = asyncio.Event()
        self.running = 0
        self.most_at_once = 0

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        self.ran.append(arguments)
        self.begun.set()
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        await asyncio.sleep(0)
        if self.release is not None:
            await self.release.wait()
        self.running -= 1
        return ToolOutput.of(str(arguments["say"]))


class Fixture:
    def __init__(self, steps: Sequence[Step], *, tools: Sequence[Echo] = (), max_turns: int = 20):
        self.provider = ScriptedProvider(steps)
        self.tools = list(tools) or [Echo()]
        self.journal = Journal()
        self.flushed: list[Message] = []
        self.booked: list[ModelCall] = []
        self.events: list[RunEvent] = []
        self.token = CancelToken()
        self.gate = Steps()
        self.max_turns = max_turns

    def run(
        self, history: Sequence[Message] = (user_text("q"),), resumed: Sequence[Message] = ()
    ) -> AgentRun:
        async def flush(messages: Sequence[Message]) -> None:
            await asyncio.sleep(0)
            self.flushed += messages

        async def book(call: ModelCall) -> None:
            await asyncio.sleep(0)
            self.booked.append(call)

        task = AgentTask(
            provider=self.provider,
            model="m",
            system="s",
            toolbox=Toolbox(self.tools),
            max_output_tokens=100,
            traits=ModelTraits(),
            history=tuple(history),
            tool_context=ToolContext("r", "s", UTC, self.token),
            resumed=tuple(resumed),
        )
        ports = AgentPorts(
            TurnWindow(self.max_turns), self.journal, self.gate, flush, book, self.events.append
        )
        return AgentRun(task, ports)


def result_texts(message: Message) -> list[str]:
    return ["".join(getattr(p, "text", "") for p in r.content) for r in message.tool_results]


async def test_tools_run_and_their_results_reach_the_model() -> None:
    fixture = Fixture([calls(("a", "echo", {"say": "hi"})), "It said hi."])
    run = fixture.run()
    assert await run.execute() == "It said hi."
    assert [m.role for m in run.last_run_new_messages] == ["assistant", "user", "assistant"]
    assert result_texts(fixture.provider.requests[1].messages[-1]) == ["hi"]
    assert list(fixture.journal.rows.values()) == run.last_run_new_messages
    assert [call.outcome for call in fixture.booked] == ["completed", "completed"]


async def test_only_tools_that_say_so_run_side_by_side() -> None:
    alone, together = Echo("alone"), Echo("together", parallel=True)
    step = calls(
        *[(f"p{i}", "together", {"say": str(i)}) for i in range(3)],
        *[(f"s{i}", "alone", {"say": str(i)}) for i in range(3)],
    )
    run = Fixture([step, "ok"], tools=[alone, together]).run()
    await run.execute()
    assert (together.most_at_once, alone.most_at_once) == (3, 1)
    assert result_texts(run.last_run_new_messages[1]) == ["0", "1", "2"] * 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (ToolUseBlock("a", "unknown", {}), "no tool named"),
        (ToolUseBlock("a", "echo", {}), "'say' is a required property"),
        (ToolUseBlock("a", "echo", {}, raw='{"say": "x'), "not valid JSON"),
        (ToolUseBlock("a", "echo", {}, raw="[1]"), "must be a JSON object"),
    ],
)
async def test_a_bad_call_is_an_error_result_and_is_not_run(call: ToolUseBlock, words: str) -> None:
    fixture = Fixture([Message("assistant", (call,)), "sorry"])
    run = fixture.run()
    assert await run.execute() == "sorry"
    assert words in result_texts(run.last_run_new_messages[1])[0]
    assert fixture.tools[0].ran == []
    assert violations([user_text("q"), *run.last_run_new_messages[:2]]) == []


async def test_slips_of_syntax_are_mended_for_tools_without_side_effects() -> None:
    tool = Echo(parallel=True)
    step = Message("assistant", (ToolUseBlock("a", "echo", {}, raw="{'say': 'hi',}"),))
    run = Fixture([step, "ok"], tools=[tool]).run()
    await run.execute()
    assert tool.ran == [{"say": "hi"}]


async def test_the_step_cap_ends_the_run_and_the_history_is_legal() -> None:
    loop_for_ever = [calls((f"c{i}", "echo", {"say": "x"})) for i in range(20)]
    fixture = Fixture(loop_for_ever)
    fixture.gate.most = 3
    run = fixture.run()
    with pytest.raises(LimitReached):
        await run.execute()
    run.close("[limit]")
    assert len(fixture.tools[0].ran) == 3
    assert violations([user_text("q"), *run.last_run_new_messages, user_text("more")]) == []


async def test_trim_overflow_and_reset_never_touch_what_the_run_hands_back() -> None:
    """All three in one run: what it hands back is what the store holds, and nothing else."""
    history = [m for i in range(30) for m in (user_text(f"q{i}"), assistant_text(f"a{i}"))]
    history.append(user_text("now"))
    long = "x" * 9_000
    overflows: list[Step] = [refusal(RefusalKind.OVERFLOW)] * 4
    fixture = Fixture([calls(("a", "echo", {"say": long})), *overflows, "done"])
    run = fixture.run(history)
    assert await run.execute() == "done"
    assert run.context_was_reset
    assert list(fixture.journal.rows.values()) == run.last_run_new_messages
    assert result_texts(run.last_run_new_messages[1]) == [long]
    assert fixture.flushed == [m for m in history[:-1] if m.text], (
        "each message that left was flushed once, in order"
    )
    sizes = [len(request.messages) for request in fixture.provider.requests]
    assert sizes[0] < len(history)
    assert len(fixture.tools[0].ran) == 1
    last = fixture.provider.requests[-1].messages
    assert "now" in last[0].text
    assert len(result_texts(last[-1])[0]) < 3_000


async def test_an_overflow_that_nothing_can_mend_is_raised() -> None:
    fixture = Fixture([refusal(RefusalKind.OVERFLOW)] * 3)
    with pytest.raises(ProviderError):
        await fixture.run().execute()


async def test_thinking_stays_within_the_run_that_made_it() -> None:
    def thought(words: str) -> ThinkingBlock:
        return ThinkingBlock(words, "p/m", signature="s")

    old = Message("assistant", (thought("old"), TextBlock("a")))
    step = calls(("a", "echo", {"say": "x"}))
    new = Message("assistant", (thought("new"), *step.blocks))
    fixture = Fixture([new, "ok", refusal(RefusalKind.OVERFLOW)])
    await fixture.run([user_text("q"), old, user_text("and?")]).execute()
    first, second = (str(request.messages) for request in fixture.provider.requests)
    assert "old" not in first
    assert "old" not in second
    assert "new" in second, "the tool loop gets its own reasoning back, byte-identical"


async def test_one_call_id_in_each_answer_becomes_unique() -> None:
    step = calls(("call_0", "echo", {"say": "x"}))
    run = Fixture([step, step, "ok"]).run()
    await run.execute()
    ids = [c.id for m in run.last_run_new_messages for c in m.tool_uses]
    assert len(set(ids)) == 2


async def test_calls_of_an_earlier_process_are_not_executed_again() -> None:
    fixture = Fixture(["I do not know whether it worked."])
    run = fixture.run(resumed=[calls(("a", "echo", {"say": "x"}))])
    await run.execute()
    assert fixture.tools[0].ran == []
    assert "lost" in result_texts(fixture.provider.requests[0].messages[-1])[0]
    assert len(run.last_run_new_messages) == 3


async def test_cancel_at_every_await_leaves_a_legal_history_and_the_next_turn_works() -> None:
    for k in range(60):
        fixture = Fixture([calls(("a", "echo", {"say": "x"}), text="Let me see."), "All done."])
        run = fixture.run()
        task = asyncio.ensure_future(run.execute())
        fixture.token.bind(task)
        for _ in range(k):
            await asyncio.sleep(0)
        finished = task.done()
        fixture.token.cancel()
        outcome = (await asyncio.gather(task, return_exceptions=True))[0]
        if finished:
            assert outcome == "All done."
            return
        run.close(STOPPED_MARK)
        history = [user_text("q"), *run.last_run_new_messages, user_text("and now?")]
        assert violations(repair(history)) == []
        assert violations(history) == []
        own = run.last_run_new_messages
        assert list(fixture.journal.rows.values()) == own[: len(fixture.journal.rows)]
        answers = Fixture(["fine"]).run(history)
        assert await answers.execute() == "fine"
    pytest.fail("the run never finished")


async def test_a_cancelled_call_is_booked_with_what_came_in_not_with_the_first_token() -> None:
    fixture = Fixture(["x" * 400])
    fixture.provider.reported = Usage(input_tokens=50, output_tokens=1)
    fixture.provider.stall = asyncio.Event()
    run = fixture.run()
    task = asyncio.ensure_future(run.execute())
    fixture.token.bind(task)
    await fixture.provider.streaming.wait()
    fixture.token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (call,) = run.calls
    assert call.outcome == "cancelled"
    assert call.usage == Usage(input_tokens=50, output_tokens=50, estimated=True)


async def test_a_tool_that_comes_back_after_the_end_adds_nothing() -> None:
    tool = Echo()
    tool.release = asyncio.Event()
    fixture = Fixture([calls(("a", "echo", {"say": "x"}))], tools=[tool])
    run = fixture.run()
    task = asyncio.ensure_future(run.execute())
    await tool.begun.wait()
    run.close(STOPPED_MARK)
    closed = list(run.last_run_new_messages)
    tool.release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert run.last_run_new_messages == closed


async def test_a_tool_that_was_stopped_counts_as_unknown_only_if_it_has_side_effects() -> None:
    for parallel, words in ((False, "Outcome unknown"), (True, "Cancelled by user")):
        tool = Echo(parallel=parallel)
        tool.release = asyncio.Event()
        fixture = Fixture([calls(("a", "echo", {"say": "x"}))], tools=[tool])
        run = fixture.run()
        task = asyncio.ensure_future(run.execute())
        fixture.token.bind(task)
        await tool.begun.wait()
        fixture.token.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        run.close(STOPPED_MARK)
        assert words in result_texts(run.last_run_new_messages[1])[0]
