"""Field cases (c): a model that goes in circles is told so, then refused, then ended, and the person is
told why.

The model is a stub on the strict server that makes the same calls for ever. The counters one by one are
tested in agent/test_breaker.py, every cap (also the one on seconds, which no progress moves) in
agent/test_loop.py: every_cap_ends_the_run_and_is_named.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bridge.bed import LIMITS
from tests.field_cases.bed import KINDS, Called, Kind, chat, facts, texts
from tests.servers.llm import LlmRequest, Reply, ToolUse, tool

MANY = replace(LIMITS, steps=40, tool_calls=200)
Stub = Callable[[LlmRequest], Reply]


def for_ever(*calls: ToolUse, last: str = "What I found so far.") -> Stub:
    """These calls in turn, without end; `last` when it may not call any more."""
    turn = itertools.cycle(calls)

    def answer(request: LlmRequest) -> Reply:
        choice = request.body.get("tool_choice")
        closed = choice == "none" or choice == {"type": "none"}
        return Reply(last) if closed else Reply(next(turn))

    return answer


@pytest.mark.parametrize("kind", KINDS)
async def test_polling_with_the_same_answer_is_hinted_refused_and_ended_and_the_chat_told(
    tmp_path: Path, kind: Kind
) -> None:
    """Case 46: the reported bot polled 1,535 times."""
    process = Called("process", lambda _: "no new output", side_effects=True)
    async with chat(tmp_path, kind, tools=[process], limits=MANY) as it:
        it.server.default = for_ever(tool("process", {"action": "log", "sessionId": "X"}))
        said = await it.ask("what does it say?")
        assert said.startswith("What I found so far.")
        assert "I went in circles: the same call of `process`" in said
        assert len(process.ran) == 5
        assert len(it.server.requests) == 9, "8 calls, and the answer"
        hinted = [n for n, r in enumerate(it.server.requests) if "made the same call" in texts(r)]
        assert hinted
        assert hinted[0] == 3, "after the third, and before any is refused"
        stored = str(await it.stored())
        assert "made the same call" not in stored, "what we tell the model is not stored"
        assert "Not executed: the same call was made 5 times already" in stored


async def test_a_run_that_costs_too_much_ends(tmp_path: Path) -> None:
    """Case 46: whatever the calls are. A call of this model costs a dollar."""
    process = Called("process", required=["n"])
    limits = replace(MANY, cost_microusd=3_000_000)
    async with chat(tmp_path, tools=[process], limits=limits) as it:
        it.server.default = for_ever(*(tool("process", {"n": str(n)}) for n in range(100)))
        said = await it.ask("go")
        assert (
            said == "What I found so far.\n\nI stopped at 3 USD, which is the limit for one answer."
        )
        assert len(process.ran) == 3


@pytest.mark.parametrize("kind", KINDS)
async def test_successful_repeats_end_with_an_answer_whatever_the_order_of_their_keys(
    tmp_path: Path, kind: Kind
) -> None:
    """Case 47: 100 successful calls were not seen, since only errors were counted."""
    read = Called("read_file", lambda _: "line 1", required=["path"])
    spelled = (
        '{"path":"h.jsonl","limit":50,"offset":1}',
        '{ "offset": 1.0, "limit": 5e1, "path": "h.jsonl" }',
    )
    async with chat(tmp_path, kind, tools=[read], limits=MANY) as it:
        it.server.default = for_ever(*(tool("read_file", text) for text in spelled))
        said = await it.ask("read it")
        assert said.startswith("What I found so far."), "an answer with tools off, not silence"
        assert "the same call of `read_file`" in said
        assert len(read.ran) == 5


async def test_two_calls_in_turn_are_a_circle(tmp_path: Path) -> None:
    """Case 48: alternating paths, the same content."""
    write = Called("write", required=["path", "content"], side_effects=True)
    paths = ("/tmp/a.md", "/tmp/b.md")
    async with chat(tmp_path, tools=[write], limits=MANY) as it:
        it.server.default = for_ever(
            *(tool("write", {"path": path, "content": "X"}) for path in paths)
        )
        said = await it.ask("write it")
        assert "I went in circles: the same call of `write`" in said
        assert len(write.ran) == 10
        hinted = [n for n, r in enumerate(it.server.requests) if "made the same call" in texts(r)]
        assert hinted[:2] == [5, 6], "for each of the two, before any is refused"


@pytest.mark.parametrize(
    ("limits", "at_once", "ran", "words"),
    [
        (replace(MANY, steps=12), 1, 12, "I stopped after 12 steps"),
        (MANY, 4, 50, "I stopped after 40 steps"),
        (replace(MANY, tool_calls=30), 4, 30, "I stopped after 30 tool calls"),
    ],
)
async def test_arguments_that_only_look_new_meet_the_caps(
    tmp_path: Path, limits: object, at_once: int, ran: int, words: str
) -> None:
    """Case 48: a fresh path each time; caps on steps, on one tool, and on calls."""
    write = Called("write", required=["path", "content"], side_effects=True)
    numbers = itertools.count()

    def answer(request: LlmRequest) -> Reply:
        if request.body.get("tool_choice") == "none":
            return Reply("Enough.")
        fresh = itertools.islice(numbers, at_once)
        return Reply(*(tool("write", {"path": f"/tmp/{n}", "content": "X"}) for n in fresh))

    async with chat(tmp_path, tools=[write], limits=limits) as it:  # type: ignore[arg-type]
        it.server.default = answer
        said = await it.ask("write it")
        assert said.startswith(f"Enough.\n\n{words}")
        assert len(write.ran) == ran


CUT = '{"path":"run.sh","content":"#!/usr/bin'


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_that_is_cut_off_is_never_executed_and_the_third_time_ends_the_run(
    tmp_path: Path, kind: Kind
) -> None:
    """Case 49; and 50: the next question finds a sane history and fresh counters."""
    write = Called("write_file", required=["path", "content"], side_effects=True)
    stop = "max_tokens" if kind == "anthropic" else "length"
    async with chat(tmp_path, kind, tools=[write]) as it:
        for _ in range(3):
            it.server.answer(tool("write_file", CUT), stop=stop)
        it.server.answer("It is too long for me.")
        said = await it.ask("write the script")
        assert said.startswith("It is too long for me.")
        assert "what I wrote for `write_file` was cut off again and again" in said
        assert (len(it.server.requests), write.ran) == (4, [])
        errors = [words for _, words in facts(it.server.requests[-1], kind) if "result" in words]
        assert len(errors) == 3
        assert all("cut off before their end" in words for words in errors)
        assert all("in smaller pieces" in words for words in errors)
        for n in range(2):
            it.server.answer(tool("write_file", CUT), stop=stop)
            it.server.answer(tool("write_file", {"path": "run.sh", "content": f"part {n}"}))
            it.server.answer("Written.")
            assert await it.ask("continue") == "Written."
        assert [arguments["content"] for arguments in write.ran] == ["part 0", "part 1"]
        uses = [b for m in await it.stored() for b in m["blocks"] if b["type"] == "tool_use"]
        assert all(use["raw"] is None for use in uses)
