"""Line 4: each rung makes the request smaller, and no executed call is forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.context import Trimmed, Working, size
from agent.errors import ProviderError, Refusal, RefusalKind
from agent.messages import (
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    assistant_text,
    decode,
    encode,
    user_text,
)
from agent.overflow import (
    BOUNDARY,
    Rung,
    aggressive,
    compact,
    emergency,
    executed,
    reset,
    target_tokens,
)
from agent.testing import Step, calls
from tests.agent.bed import SIZES, Fixture, result_texts
from tests.agent.test_context import conversation, tool_turn


def overflow(limit: int | None = None, requested: int | None = None) -> ProviderError:
    return ProviderError("scripted", Refusal(RefusalKind.OVERFLOW, 400, limit, requested))


def long_history(turns: int, words: int = 400) -> list[Message]:
    pairs = [(user_text(f"q{i}"), assistant_text(f"a{i} " * words)) for i in range(turns)]
    return [message for pair in pairs for message in pair] + [user_text("now")]


async def test_compaction_goes_to_the_limit_that_was_stated() -> None:
    fixture = Fixture([overflow(2_000, 9_000), "done"])
    run = fixture.run(long_history(15))
    assert await run.execute() == "done"
    first, second = fixture.provider.requests
    ratio = SIZES.request(second) / SIZES.request(first)
    assert ratio < 2_000 / 9_000
    assert second.messages[-1].text.endswith("now")
    assert [rung for rung, _ in fixture.keeper.bounds] == [Rung.COMPACT]
    assert "[Earlier conversation]" in second.messages[0].text


async def test_the_summary_and_the_boundary_come_after_the_flush() -> None:
    fixture = Fixture([overflow(), "done"])
    await fixture.run(long_history(6)).execute()
    ((rung, working),) = fixture.keeper.bounds
    assert rung is Rung.COMPACT
    assert working.left > 0
    assert fixture.keeper.flushed == long_history(6)[: 2 * working.left]


async def test_an_overflow_climbs_until_the_request_is_small_enough() -> None:
    steps: list[Step] = [calls(("a", "echo", {"say": "x" * 30_000})), *[overflow()] * 4, "done"]
    fixture = Fixture(steps, window=1_000_000)
    run = fixture.run(long_history(10, 4_000))
    assert await run.execute() == "done"
    assert [rung for rung, _ in fixture.keeper.bounds] == [Rung.RESET], "the one that was taken"
    assert len(fixture.provider.requests) == 6
    sizes = [SIZES.request(request) for request in fixture.provider.requests[1:]]
    assert sizes == sorted(set(sizes), reverse=True), "each is smaller than the one before"
    assert run.context_was_reset


async def test_an_emergency_keeps_the_question_and_names_the_snapshot_and_every_call() -> None:
    steps: list[Step] = [
        *[calls((f"c{i}", "echo", {"say": f"file {i} " + "x" * 9_000})) for i in range(6)],
        *[overflow()] * 2,
        "done",
    ]
    fixture = Fixture(steps, window=1_000_000)
    await fixture.run(long_history(0)).execute()
    last = fixture.provider.requests[-1].messages
    head = last[0].text
    assert head.startswith(BOUNDARY)
    assert "snapshot-1.jsonl" in head
    assert head.endswith("now")
    assert all(f"file {i} " in head for i in range(6))
    assert len(last) <= 6
    assert result_texts(last[-1])[0].startswith("file 5")
    assert len(fixture.tools[0].ran) == 6, "nothing ran twice"


async def test_in_one_long_turn_the_oldest_results_are_shortened_first_and_the_newest_stays() -> (
    None
):
    """Field case 18: they were all cut alike, and then all gone, so that the model called again."""
    texts = [f"file {i} " + "word " * 2_000 for i in range(6)]
    steps = [calls((f"c{i}", "echo", {"say": text})) for i, text in enumerate(texts)]
    fixture = Fixture([*steps, "done"], window=16_000)
    run = fixture.run()
    assert await run.execute() == "done"
    seen = [t for m in fixture.provider.requests[-1].messages for t in result_texts(m)]
    sizes = [len(text) for text in seen]
    assert len(seen) == 6, "the model sees something of each"
    assert sizes == sorted(sizes)
    assert sizes[0] < 2_200
    assert seen[-1] == texts[-1]
    assert fixture.keeper.bounds == []


async def test_an_emergency_at_a_question_keeps_the_newest_messages_before_it() -> None:
    """The commonest overflow: the first call of a turn. Nothing but a question would be left."""
    fixture = Fixture([*[overflow(10**9)] * 2, "done"])
    history = [*long_history(3)[:-1], *two_tools("q3"), *long_history(1)]
    run = fixture.run([*long_history(4)[:-1], *history])
    assert await run.execute() == "done"
    last = fixture.provider.requests[-1].messages
    assert [rung for rung, _ in fixture.keeper.bounds] == [Rung.EMERGENCY]
    assert last[0].text.startswith(BOUNDARY)
    assert [message.role for message in last] == ["user", "assistant"] * 2 + ["user"]
    assert last[0].text.endswith("q3")
    assert last[1].text == "done with q3", "a long turn stays as question and answer"
    assert (last[2].text, last[4].text) == ("q0", "now")
    _, bound = fixture.keeper.bounds[-1]
    assert (bound.brief, len(bound.turns)) == (1, 3)
    assert bound.left + len(bound.turns) == 10
    assert not run.context_was_reset


def two_tools(question: str) -> list[Message]:
    steps = [*tool_turn(100)[1:3], *tool_turn(101)[1:3]]
    return [user_text(question), *steps, assistant_text(f"done with {question}")]


async def test_an_emergency_that_frees_nothing_with_them_keeps_the_question_alone() -> None:
    fixture = Fixture([*[overflow(10**9)] * 2, "done"])
    assert await fixture.run(long_history(2)).execute() == "done"
    ((rung, working),) = fixture.keeper.bounds
    assert rung is Rung.RESET
    assert working.turns == ((user_text("now"),),)


async def test_a_reset_after_an_emergency_still_names_every_call() -> None:
    many = [calls((f"c{i}", "echo", {"say": f"file {i} " + "x" * 9_000})) for i in range(5)]
    more = [calls((f"d{i}", "echo", {"say": f"more {i} " + "x" * 9_000})) for i in range(2)]
    fixture = Fixture([*many, *[overflow()] * 2, *more, *[overflow()] * 2, "done"])
    fixture.keeper.most = 1
    assert await fixture.run().execute() == "done"
    (last,) = fixture.provider.requests[-1].messages
    assert all(f"file {i} " in last.text for i in range(5))
    assert all(f"more {i} " in last.text for i in range(2))


async def test_emergencies_that_are_used_up_are_skipped() -> None:
    steps: list[Step] = [
        *[calls((f"c{i}", "echo", {"say": "x" * 9_000})) for i in range(4)],
        *[overflow()] * 2,
        "done",
    ]
    fixture = Fixture(steps)
    fixture.keeper.most = 0
    run = fixture.run()
    assert await run.execute() == "done"
    assert run.context_was_reset


async def test_an_overflow_that_never_ends_is_told_after_few_requests() -> None:
    fixture = Fixture([overflow(200_000, 250_000)] * 50)
    with pytest.raises(ProviderError):
        await fixture.run(long_history(30)).execute()
    assert len(fixture.provider.requests) <= 5


async def test_a_run_that_was_reset_once_can_still_shorten_what_comes_later() -> None:
    steps: list[Step] = [
        *[overflow()] * 1,
        calls(("a", "echo", {"say": "x" * 40_000})),
        overflow(),
        "done",
    ]
    fixture = Fixture(steps, window=1_000_000)
    run = fixture.run(long_history(1))
    assert await run.execute() == "done"
    last = fixture.provider.requests[-1].messages
    assert len(result_texts(last[-1])[0]) < 11_000
    assert len(fixture.tools[0].ran) == 1


async def test_a_request_that_is_larger_than_the_minute_is_shrunk_but_nothing_is_reset() -> None:
    refused = ProviderError("s", Refusal(RefusalKind.REQUEST_TOO_LARGE, 429, 2_000, 9_000))
    fixture = Fixture([refused, "done"])
    assert await fixture.run(long_history(15)).execute() == "done"
    alone = Fixture([refused] * 5)
    with pytest.raises(ProviderError):
        await alone.run([user_text("x" * 90_000)]).execute()
    assert len(alone.provider.requests) == 1


async def test_an_answer_without_words_at_a_full_window_is_an_overflow() -> None:
    def full(_: object) -> Message:
        return Message("assistant", ())

    fixture = Fixture([full, "done"], window=1_000)
    fixture.provider.stop_reason = "window"
    assert await fixture.run(long_history(8, 20)).execute() == "done"
    assert [rung for rung, _ in fixture.keeper.bounds][-1] is Rung.COMPACT


@given(st.integers(1, 8), st.integers(1, 400), st.integers(10, 5_000))
def test_laws_of_the_rungs(turns: int, words: int, target: int) -> None:
    working = Working((*conversation(turns, words=words).turns[:-1], tool_turn(99, "x" * 15_000)))
    rungs = [
        compact(working, target, SIZES),
        aggressive(working),
        emergency(working, "s.jsonl", working.newest),
        emergency(working, "s.jsonl", working.newest, 5),
        reset(working, working.newest),
    ]
    for trimmed in rungs:
        kept: Trimmed = trimmed
        assert kept.working.turns[-1][0] == working.turns[-1][0], "the question stays"
        assert kept.working.left == len(working.turns) - len(kept.working.turns)
    assert size(rungs[0].working, SIZES) <= max(target, size(Working(working.turns[-1:]), SIZES))
    for last in rungs[2:]:
        assert "- read(" in (last.working.note or "")


def test_a_call_without_a_result_is_listed_as_unknown() -> None:
    turn = (user_text("q"), Message("assistant", (ToolUseBlock("a", "pay", {"sum": 5}),)))
    assert '- pay({"sum": 5}): outcome unknown' in executed(turn)
    assert executed((user_text("q"), Message("assistant", (TextBlock("hi"),)))) == ""
    refused = ToolResultBlock("a", (TextBlock("no"),), is_error=True, outcome="not_run")
    assert executed((*turn, Message("user", (refused,)))) == ""
    late = replace(refused, outcome="unknown")
    assert executed((*turn, Message("user", (late,)))).endswith(": outcome unknown")
    assert decode(encode(Message("user", (refused,)))).blocks == (refused,)


@pytest.mark.parametrize(
    ("limit", "requested", "expected"),
    [(None, None, 400), (1_000, None, 700), (1_000, 2_000, 300), (10**9, None, 5_000)],
)
def test_the_target_of_a_compaction(
    limit: int | None, requested: int | None, expected: int
) -> None:
    refusal = Refusal(RefusalKind.OVERFLOW, 400, limit, requested)
    target = target_tokens(refusal, estimated=1_000, fixed=100, reserved=111, budget=5_000)
    assert abs(target - expected) <= 1
