"""Line 3: no run goes in circles, and work that gets on is never stopped."""

from __future__ import annotations

import json
from collections import Counter
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.breaker import Breaker, RunLimits, canonical
from agent.messages import JsonObject, JsonValue, ToolUseBlock

WIDE = RunLimits(steps=1_000, tool_calls=10_000, seconds=1e6, tokens=10**9)
ids = count()


def call(tool: str = "read", raw: str | None = None, **arguments: JsonValue) -> ToolUseBlock:
    return ToolUseBlock(f"c{next(ids)}", tool, arguments, raw)


def run(breaker: Breaker, wanted: ToolUseBlock, *, failed: bool = False) -> bool:
    """One call in a step of its own; whether it was executed."""
    if breaker.judge(wanted) is not None:
        return False
    breaker.note(wanted, failed=failed)
    return True


def ending(breaker: Breaker) -> str | None:
    limit = breaker.tripped()
    return limit.limit if limit else None


# The same call ----------------------------------------------------------------------------------


def test_polling_with_the_same_answer_is_hinted_refused_and_ended() -> None:
    breaker = Breaker(WIDE)
    told: list[int] = []
    executed: list[int] = []
    attempt = 0
    for attempt in range(1, 1_535):
        executed += [attempt] if run(breaker, call("process", action="log", id="X")) else []
        told += [attempt] if breaker.hint() else []
        if breaker.tripped():
            break
    assert (executed, told, attempt) == ([1, 2, 3, 4, 5], [3, 4, 5], 8)
    limit = breaker.tripped()
    assert limit is not None
    assert (limit.limit, limit.values) == ("repeating", {"tool": "process"})


def test_a_refused_poll_is_told_what_to_do_instead() -> None:
    breaker = Breaker(WIDE)
    for _ in range(5):
        run(breaker, call())
    text = breaker.judge(call())
    assert text is not None
    assert "5 times" in text
    assert "do something else, or tell the user" in text


def test_successful_repeats_count_whatever_the_order_of_their_keys() -> None:
    breaker = Breaker(WIDE)
    for number in range(5):
        pairs: list[tuple[str, JsonValue]] = [("path", "h.jsonl"), ("limit", 50), ("offset", 1.0)]
        turned = pairs[number % 3 :] + pairs[: number % 3]
        assert run(breaker, ToolUseBlock(f"x{number}", "read_file", dict(turned)))
    assert not run(breaker, call("read_file", limit=50.0, offset=1, path="h.jsonl"))


def test_a_call_that_failed_three_times_is_refused_and_ends_at_the_eighth_attempt() -> None:
    breaker = Breaker(WIDE)
    executed = [run(breaker, call(path="gone"), failed=True) for _ in range(7)]
    assert executed == [True] * 3 + [False] * 4
    assert ending(breaker) is None
    assert not run(breaker, call(path="gone"))
    assert ending(breaker) == "tool_failing"


def test_another_call_of_the_tool_goes_on_after_one_was_refused() -> None:
    breaker = Breaker(WIDE)
    for _ in range(4):
        run(breaker, call(path="gone"), failed=True)
    assert run(breaker, call(path="here"))


@pytest.mark.parametrize("length", [2, 3, 5])
def test_circles_of_calls_are_hinted_refused_and_ended(length: int) -> None:
    breaker = Breaker(WIDE)
    paths = [f"/tmp/{number}.md" for number in range(length)]
    executed, hints = 0, 0
    for turn in range(8):
        for path in paths:
            executed += run(breaker, call("write", path=path, content="the same"))
            hint = breaker.hint()
            hints += hint is not None
            if turn < 2:
                assert hint is None
    assert (executed, hints, ending(breaker)) == (5 * length, 3 * length, "repeating")


def test_arguments_that_only_look_new_meet_the_cap_of_one_tool() -> None:
    breaker = Breaker(WIDE)
    executed = sum(run(breaker, call("write", path=f"/tmp/{n}.md")) for n in range(200))
    assert executed == 50
    assert run(breaker, call("read"))
    text = breaker.judge(call("write", path="new"))
    assert text is not None
    assert "50 times" in text
    assert ending(breaker) is None


def test_parallel_calls_of_one_step_count_while_they_are_under_way() -> None:
    breaker = Breaker(WIDE)
    step = [call("roll") for _ in range(7)]
    assert [breaker.judge(one) is None for one in step] == [True] * 5 + [False] * 2
    for one in step[:5]:
        breaker.note(one, failed=False)
    hint = breaker.hint()
    assert hint is not None
    assert "5 times" in hint


def test_the_hint_is_told_once_and_names_the_tools() -> None:
    breaker = Breaker(WIDE)
    for _ in range(3):
        run(breaker, call("a"))
        run(breaker, call("b"))
    hint = breaker.hint()
    assert hint is not None
    assert "2 calls in turn (a, b) 3 times" in hint
    assert breaker.hint() is None
    run(breaker, call("c"))
    assert breaker.hint() is None


# Failures of one tool ---------------------------------------------------------------------------


def test_a_tool_that_failed_six_times_is_off_and_the_eighth_attempt_ends_the_run() -> None:
    breaker = Breaker(WIDE)
    executed = [run(breaker, call("fetch", n=n), failed=True) for n in range(7)]
    assert executed == [True] * 6 + [False]
    assert ending(breaker) is None
    assert run(breaker, call("read"))
    text = breaker.judge(call("fetch", n=99))
    assert text is not None
    assert "failed 6 times" in text
    limit = breaker.tripped()
    assert limit is not None
    assert (limit.limit, limit.values) == ("tool_failing", {"tool": "fetch"})


def test_many_failures_in_one_step_leave_the_model_a_chance_to_say_so() -> None:
    breaker = Breaker(WIDE)
    step = [call("fetch", n=n) for n in range(12)]
    assert [breaker.judge(one) for one in step] == [None] * 12
    for one in step:
        breaker.note(one, failed=True)
    assert ending(breaker) is None
    run(breaker, call("fetch", n=13))
    assert ending(breaker) == "tool_failing"


def test_different_broken_arguments_are_different_calls() -> None:
    breaker = Breaker(WIDE)
    for text in ("{'a", "{'b", "{'c"):
        broken = call("list", raw=text)
        assert breaker.judge(broken) is None
        breaker.note(ToolUseBlock(broken.id, "list", {}), failed=True)
    assert run(breaker, call("list"))


def test_a_call_that_was_never_judged_still_counts() -> None:
    breaker = Breaker(WIDE)
    for _ in range(8):
        breaker.note(call("write"), failed=True)
    assert ending(breaker) == "tool_failing"


def test_an_invented_name_does_not_flood_the_chat() -> None:
    breaker = Breaker(WIDE)
    for _ in range(8):
        run(breaker, call("x" * 5_000), failed=True)
    limit = breaker.tripped()
    assert limit is not None
    assert limit.values == {"tool": "x" * 64}


# Cut answers ------------------------------------------------------------------------------------


def test_the_third_cut_answer_ends_the_run_and_the_next_question_starts_afresh() -> None:
    breaker = Breaker(WIDE)
    for _ in range(3):
        assert ending(breaker) is None
        breaker.cut_off([call("write_file") for _ in range(4)])
    assert ending(breaker) == "cut_off"
    assert ending(Breaker(WIDE)) is None


def test_a_model_that_follows_the_advice_to_send_less_goes_on() -> None:
    breaker = Breaker(WIDE)
    for part in range(10):
        breaker.cut_off([call("write_file")])
        assert run(breaker, call("write_file", part=part))
    assert ending(breaker) is None


# Caps -------------------------------------------------------------------------------------------

SMALL = RunLimits(steps=3, tool_calls=4, seconds=60.0, tokens=1_000, cost_microusd=500)


def cap(
    breaker: Breaker, step: int = 1, *, seconds: float = 0, tokens: int = 0, cost: int = 0
) -> str | None:
    return breaker.cap(step, seconds=seconds, tokens=tokens, cost_microusd=cost)


def test_each_cap_is_met_and_named() -> None:
    breaker = Breaker(SMALL)
    assert cap(breaker, 3, seconds=59.9, tokens=999, cost=499) is None
    assert cap(breaker, 4) == "steps"
    assert cap(breaker, seconds=60) == "seconds"
    assert cap(breaker, tokens=1_000) == "tokens"
    assert cap(breaker, cost=500) == "cost"
    for number in range(4):
        assert cap(breaker) is None
        run(breaker, call(n=number))
    assert cap(breaker) == "tool_calls"


def test_a_model_without_a_price_has_no_cap_on_cost() -> None:
    assert cap(Breaker(WIDE), cost=10**12) is None


def test_one_step_cannot_overrun_the_cap_on_tool_calls() -> None:
    breaker = Breaker(SMALL)
    answers = [breaker.judge(call(n=number)) for number in range(20)]
    assert answers[:4] == [None] * 4
    assert all(text is not None and "4 tool calls" in text for text in answers[4:])
    assert ending(breaker) is None


# Laws -------------------------------------------------------------------------------------------

tools = st.sampled_from(["a", "b", "c"])
attempts = st.lists(st.tuples(tools, st.integers(0, 2), st.booleans()), max_size=120)


@given(st.lists(attempts.filter(bool), max_size=12))
def test_no_call_is_ever_executed_more_than_five_times(
    steps: list[list[tuple[str, int, bool]]],
) -> None:
    breaker = Breaker(WIDE)
    executed = Counter[tuple[str, int]]()
    failed = Counter[tuple[str, int]]()
    for step in steps:
        before = failed.copy()
        judged = [(call(tool, n=n), tool, n, fails) for tool, n, fails in step]
        for one, tool, n, fails in [entry for entry in judged if breaker.judge(entry[0]) is None]:
            assert before[tool, n] < 3
            executed[tool, n] += 1
            failed[tool, n] += fails
            breaker.note(one, failed=fails)
    assert all(times <= 5 for times in executed.values())


@given(st.lists(st.integers(0, 9), min_size=8, max_size=8), st.integers(0, 3))
def test_a_tool_that_always_fails_ends_the_run_at_the_eighth_call(
    arguments: list[int], others: int
) -> None:
    breaker = Breaker(WIDE)
    for number, n in enumerate(arguments):
        assert ending(breaker) is None, number
        run(breaker, call("fetch", n=n), failed=True)
        for other in range(others):
            run(breaker, call("read", n=number, other=other))
    assert ending(breaker) == "tool_failing"


@given(
    st.lists(st.integers(), unique=True, max_size=50),
    st.sets(st.integers(0, 49), max_size=5),
)
def test_work_that_gets_on_is_never_refused_hinted_or_ended(
    arguments: list[int], failing: set[int]
) -> None:
    breaker = Breaker(WIDE)
    for number, n in enumerate(arguments):
        assert run(breaker, call("read", n=n), failed=number in failing)
        assert breaker.hint() is None
    assert ending(breaker) is None


values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
objects: st.SearchStrategy[JsonObject] = st.dictionaries(st.text(), values, max_size=4)


def shuffled(value: JsonValue) -> JsonValue:
    """The same JSON, written otherwise: keys turned round, whole numbers as fractions."""
    if isinstance(value, dict):
        return {key: shuffled(inner) for key, inner in reversed(value.items())}
    if isinstance(value, list):
        return [shuffled(inner) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return float(value)
    return value


@given(objects)
def test_the_same_json_written_otherwise_is_the_same_call(arguments: JsonObject) -> None:
    other = shuffled(arguments)
    assert isinstance(other, dict)
    assert canonical(other) == canonical(arguments)
    assert canonical(json.loads(canonical(arguments))) == canonical(arguments)


def same(a: JsonValue, b: JsonValue) -> bool:
    """Equality of JSON: Python's, but true is not 1."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and a == b


@given(objects, objects)
def test_different_json_is_a_different_call(a: JsonObject, b: JsonObject) -> None:
    assert (canonical(a) == canonical(b)) == same(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [(1, True), (0, False), (0, None), (1, "1"), ("é", "e\u0301"), ([1, 2], [2, 1]), ({}, [])],
)
def test_what_json_tells_apart_stays_apart(a: JsonValue, b: JsonValue) -> None:
    assert canonical({"x": a}) != canonical({"x": b})


def test_arguments_nested_beyond_reason_are_compared_without_a_crash() -> None:
    value: JsonValue = 1
    for _ in range(100_000):
        value = [value]
    assert Breaker(WIDE).judge(call(deep=value)) is None
