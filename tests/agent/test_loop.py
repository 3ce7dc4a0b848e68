"""The loop: tools, caps, cancel at any await, and messages that are exactly the run's own."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agent.errors import LimitReached, ProviderError, RefusalKind
from agent.history import repair, violations
from agent.loop import CLOSING, EMPTY_MARK, NUDGE, STOPPED_MARK
from agent.messages import (
    Message,
    Outcome,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    assistant_text,
    user_text,
)
from agent.provider import ModelRequest, Usage
from agent.testing import Step, calls, refusal
from agent.tool_log import Effects
from tests.agent.bed import LIMITS, SIZES, Echo, Fixture, result_texts


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
        (ToolUseBlock("a", "echo", {}, raw='{"say" "x"}'), "not valid JSON"),
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


async def test_a_model_that_invents_ever_new_tools_is_stopped() -> None:
    invented = [calls((f"c{n}", f"tool_{n}", {"n": n})) for n in range(8)]
    run = Fixture([*invented, "I have no such tool."]).run()
    assert await run.execute() == "I have no such tool."
    assert [notice.limit for notice in run.notices] == ["tool_failing"]


async def test_slips_of_syntax_are_mended_for_tools_without_side_effects() -> None:
    tool = Echo(parallel=True)
    step = Message("assistant", (ToolUseBlock("a", "echo", {}, raw="{'say': 'hi',}"),))
    run = Fixture([step, "ok"], tools=[tool]).run()
    await run.execute()
    assert tool.ran == [{"say": "hi"}]


async def test_a_cap_gives_one_closing_answer_and_says_why() -> None:
    for_ever = [calls((f"c{i}", "echo", {"say": str(i)})) for i in range(3)]
    fixture = Fixture([*for_ever, "What I found so far."], limits=replace(LIMITS, steps=3))
    run = fixture.run()
    assert await run.execute() == "What I found so far."
    assert [notice.limit for notice in run.notices] == ["steps"]
    assert len(fixture.tools[0].ran) == 3
    closing = fixture.provider.requests[-1]
    assert not closing.may_call
    assert CLOSING in closing.messages[-1].text
    assert all(CLOSING not in m.text for m in fixture.journal.rows.values()), "never stored"


async def test_an_answer_on_the_last_allowed_step_is_an_answer() -> None:
    fixture = Fixture([calls(("a", "echo", {"say": "x"})), "done"], limits=replace(LIMITS, steps=2))
    run = fixture.run()
    assert await run.execute() == "done"
    assert run.notices == []


async def test_a_model_that_calls_tools_although_it_may_not_ends_the_run_legally() -> None:
    for_ever = [calls((f"c{i}", "echo", {"say": str(i)})) for i in range(20)]
    fixture = Fixture(for_ever, limits=replace(LIMITS, steps=3))
    run = fixture.run()
    with pytest.raises(LimitReached) as stopped:
        await run.execute()
    assert stopped.value.values == {"limit": "3"}
    run.close("[limit]")
    assert len(fixture.tools[0].ran) == 3
    assert violations([user_text("q"), *run.last_run_new_messages, user_text("more")]) == []


@pytest.mark.parametrize(
    ("limits", "cap"),
    [
        (replace(LIMITS, tool_calls=2), "tool_calls"),
        (replace(LIMITS, tokens=30), "tokens"),
        (replace(LIMITS, seconds=0), "seconds"),
    ],
)
async def test_every_cap_ends_the_run_and_is_named(limits: object, cap: str) -> None:
    for_ever = [calls((f"c{i}", "echo", {"say": str(i)})) for i in range(2)]
    steps: list[Step] = [*for_ever, "Enough."] if cap != "seconds" else ["Enough."]
    run = Fixture(steps, limits=limits).run()  # type: ignore[arg-type]
    assert await run.execute() == "Enough."
    assert [notice.limit for notice in run.notices] == [cap]


async def test_the_same_call_again_and_again_ends_with_advice() -> None:
    fixture = Fixture([calls((f"c{i}", "echo", {"say": "x"})) for i in range(20)])
    run = fixture.run()
    with pytest.raises(LimitReached) as stopped:
        await run.execute()
    assert (stopped.value.limit, stopped.value.values) == ("repeating", {"tool": "echo"})
    assert len(fixture.tools[0].ran) == 5
    hints = [r for r in fixture.provider.requests if "the same call" in r.messages[-1].text]
    assert hints, "the model is told before it is refused"
    assert all("the same call" not in m.text for m in run.last_run_new_messages)


async def test_a_seal_that_answers_a_hint_is_not_sent_again() -> None:
    """It is bound to a text that is not sent again: the next step would be refused."""
    steps: list[Step] = []
    for i in range(5):
        thought = ThinkingBlock("hm", "p/m", signature=f"seal {i}.")
        call = calls((f"c{i}", "echo", {"say": "x"}))
        steps.append(Message("assistant", (thought, *call.blocks)))
    fixture = Fixture([*steps, "done"])
    await fixture.run().execute()
    requests = fixture.provider.requests
    hinted = ["the same call" in request.messages[-1].text for request in requests[:-1]]
    last = str(requests[-1].messages)
    assert any(hinted)
    assert [f"seal {i}." not in last for i in range(5)] == hinted


async def test_an_empty_answer_is_asked_for_once_more_and_no_empty_row_is_stored() -> None:
    fixture = Fixture(["", "Here it is."])
    run = fixture.run()
    assert await run.execute() == "Here it is."
    assert NUDGE in fixture.provider.requests[1].messages[-1].text
    assert run.last_run_new_messages == [assistant_text("Here it is.")]
    silent = Fixture([" \n", ""]).run()
    assert await silent.execute() == EMPTY_MARK
    assert silent.gave_no_answer


async def test_trim_overflow_and_reset_never_touch_what_the_run_hands_back() -> None:
    """All three in one run: what it hands back is what the store holds, and nothing else."""
    history = [m for i in range(30) for m in (user_text(f"q{i}"), assistant_text(f"a{i} " * 999))]
    history.append(user_text("now"))
    long = "x" * 30_000

    def refused_until_reset(request: ModelRequest) -> Message:
        if len(request.messages) > 1:
            raise refusal(RefusalKind.OVERFLOW)
        return assistant_text("done")

    overflows: list[Step] = [refused_until_reset] * 5
    fixture = Fixture([calls(("a", "echo", {"say": long})), *overflows])
    run = fixture.run(history)
    assert await run.execute() == "done"
    assert run.context_was_reset
    assert list(fixture.journal.rows.values()) == run.last_run_new_messages
    assert result_texts(run.last_run_new_messages[1]) == [long]
    assert fixture.keeper.flushed[: len(history) - 1] == history[:-1], (
        "each message that left was flushed once, in order"
    )
    sizes = [len(str(request.messages)) for request in fixture.provider.requests]
    assert sizes[1:] == sorted(sizes[1:], reverse=True)
    assert len(fixture.tools[0].ran) == 1
    (last,) = fixture.provider.requests[-1].messages
    assert last.text.startswith("[COMPACT_BOUNDARY]")
    assert "- echo(" in last.text, "the executed call is named, so that it is not made again"
    assert last.text.endswith("now")


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


@pytest.mark.parametrize(
    ("outcome", "failed", "unknown"),
    [
        ("known", True, ()),
        ("known", False, ()),
        ("unknown", True, ("echo",)),
        ("not_run", True, ()),
    ],
)
async def test_what_an_earlier_process_knows_of_its_calls_is_known_on(
    outcome: Outcome, failed: bool, unknown: tuple[str, ...]
) -> None:
    """A call that had failed was told as one of which nobody knows."""
    result = ToolResultBlock("a", (TextBlock("x"),), failed, outcome)
    step = (calls(("a", "echo", {"say": "x"})), Message("user", (result,)))
    run = Fixture(["So it is."]).run(resumed=step)
    await run.execute()
    done = ("echo",) if outcome == "known" and not failed else ()
    assert run.effects() == Effects(done, unknown)


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
    written = SIZES.text("x" * 200)
    assert call.usage == Usage(input_tokens=50, output_tokens=written, estimated=True)


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
