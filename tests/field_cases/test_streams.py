"""Field cases (j): whatever shape an answer comes in, nothing half made is executed and nobody is left
without a word.

Streams go through the real SDKs. What each chunk is read as is asserted in
agent/providers/test_odd_streams.py:

    149  finish_reasons_are_read_and_unknown_ones_end_the_answer
    150  usage_is_taken_wherever_it_comes, usage_may_be_half_told; error bodies of any shape:
         agent/providers/test_errors.py: every_known_refusal (SHAPES), any_body_gives_a_refusal
    153  chunks_that_say_nothing_change_nothing (no choices first and last, null delta),
         calls_are_put_together_however_they_come (no id in later chunks, all in one chunk)
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from agent.errors import ProviderError, RefusalKind
from agent.events import Retrying
from agent.loop import NUDGE
from agent.messages import (
    JsonObject,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    assistant_text,
    user_text,
)
from tests.agent.providers.test_odd_streams import call, chunk, no_choices
from tests.field_cases.bed import KINDS, Called, Json, Kind, chat, facts, run, texts
from tests.servers.llm import Usage, thinking, tool

GO = user_text("go")
CUT = '{"path":"a","con'
WHOLE: JsonObject = {"path": "a", "content": "x"}


def writer() -> Called:
    return Called("write", required=["path", "content"], side_effects=True)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_stream_that_ends_within_a_call_is_an_error_and_is_made_again(kind: Kind) -> None:
    """Case 142: nothing runs of it, and nothing of it is stored."""
    write = writer()
    async with run(kind, tools=[write]) as it:
        it.server.answer(tool("write", CUT, size=100)).end_after(1)
        it.server.answer(tool("write", WHOLE))
        it.server.answer("Written.")
        made = it.it.run([GO])
        assert await made.execute() == "Written."
        assert write.ran == [WHOLE]
        first, second, third = it.requests
        assert first.messages == second.messages
        assert [type(event) for event in it.it.events].count(Retrying) == 1
        called = [words for _, words in facts(third, kind) if words.startswith("call ")]
        assert len(called) == 1, "nothing of the cut one is kept"
        assert [outcome.outcome for outcome in it.it.booked] == ["failed", "completed", "completed"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("made", "spent"), [((WHOLE,), 300), ((WHOLE, CUT), 20)])
async def test_a_call_that_met_the_cap_is_a_cut_one_whatever_the_reason_says(
    kind: Kind, made: tuple[Any, ...], spent: int
) -> None:
    """Case 143: reported as a whole call, with as many tokens as were allowed; and case 145, one whose
    text ends early by a cap that nobody told: the whole call beside it does not run either."""
    write = writer()
    async with run(kind, tools=[write], most_output=300) as it:
        stop = "tool_use" if kind == "anthropic" else "tool_calls"
        parts = [tool("write", given) for given in made]
        it.server.answer(*parts, stop=stop, usage=Usage(10, spent))
        it.server.answer("Too long.")
        assert await it.it.run([GO]).execute() == "Too long."
        assert write.ran == []
        assert "were cut off before their end" in facts(it.requests[1], kind)[-1][1]


@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_server_has_closed_of_a_cut_call_is_refused_as_cut(kind: Kind) -> None:
    """Case 144: valid JSON without its last keys; "an argument is missing" would lead nowhere. Every
    call of such an answer is refused, also one that looks whole."""
    write = writer()
    async with run(kind, tools=[write]) as it:
        stop = "max_tokens" if kind == "anthropic" else "length"
        it.server.answer(tool("write", WHOLE), tool("write", {"path": "x.jac"}), stop=stop)
        it.server.answer("Too long.")
        assert await it.it.run([GO]).execute() == "Too long."
        assert write.ran == []
        errors = [words for _, words in facts(it.requests[1], kind)[-2:]]
        assert all("were cut off before their end" in words for words in errors)
        assert not any("required" in words for words in errors)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["", " ", "null", "{}"])
async def test_no_arguments_run_only_where_none_are_needed(kind: Kind, text: str) -> None:
    """Case 145."""
    write, now = writer(), Called("now")
    async with run(kind, tools=[write, now]) as it:
        it.server.answer(tool("write", text), tool("now", text))
        it.server.answer("Done.")
        assert await it.it.run([GO]).execute() == "Done."
        assert (write.ran, now.ran) == ([], [{}])
        refused, done = (words for _, words in facts(it.requests[1], kind)[-2:])
        assert "'path' is a required property" in refused
        assert done.endswith("ok")


async def test_seven_kilobytes_of_a_call_without_its_end_never_become_an_empty_call() -> None:
    """Case 145: fragments of Anthropic's, and then no end of the block."""
    write = writer()
    big = '{"path":"a","content":"' + "x" * 7_130
    async with run("anthropic", tools=[write]) as it:
        for _ in range(4):
            it.server.answer(tool("write", big, size=100)).end_after(None)
            it.server.answer(tool("write", big, size=100)).end_after(60)
        with pytest.raises(ProviderError) as caught:
            await it.it.run([GO]).execute()
        assert caught.value.refusal.kind is RefusalKind.TRANSIENT
        assert write.ran == []
        assert len(it.requests) == 4, "three tries more, and then it is told"


@pytest.mark.parametrize("fragments", [[], ['{"path":"a"}'], ['{"path":"a']])
async def test_a_call_whose_block_never_ends_is_refused_as_cut(fragments: list[str]) -> None:
    """Case 145: the answer ends as it should, the block in it does not. No call of it runs."""
    now, write = Called("now"), writer()
    events: list[Json] = [{"type": "message_start", "message": {"role": "assistant"}}]
    for index, name in enumerate(("now", "write")):
        made: Json = {"type": "tool_use", "id": name, "name": name, "input": {}}
        events.append({"type": "content_block_start", "index": index, "content_block": made})
        if name == "now":
            events.append({"type": "content_block_stop", "index": index})
    for piece in fragments:
        delta = {"type": "input_json_delta", "partial_json": piece}
        events.append({"type": "content_block_delta", "index": 1, "delta": delta})
    events += [
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
        {"type": "message_stop"},
    ]
    async with run("anthropic", tools=[now, write]) as it:
        lines = (f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
        it.server.answer_http(200, "".join(lines))
        it.server.answer("Too long.")
        assert await it.it.run([GO]).execute() == "Too long."
        assert (now.ran, write.ran) == ([], [])
        errors = [words for _, words in facts(it.requests[1], "anthropic")[-2:]]
        assert all("were cut off before their end" in words for words in errors)


@pytest.mark.parametrize("kind", KINDS)
async def test_why_an_answer_has_no_word_is_told(tmp_path: Path, kind: Kind) -> None:
    """The provider's filter, or a model that has thought up to the cap: after one nudge it is said."""
    filtered, cut = ("refusal", "max_tokens")
    if kind == "openai":
        filtered, cut = ("content_filter", "length")
    async with chat(tmp_path, kind) as it:
        for stop, told in ((filtered, "content filter held"), (cut, "met its length limit")):
            before = len(it.server.requests)
            for _ in range(2):
                it.server.answer(thinking("hm"), stop=stop, usage=Usage(10, 5))
            said = await it.ask("tell me")
            assert told in said
            assert "gave no answer" not in said
            assert "ends here" not in said
            assert len(it.server.requests) - before == 2


@pytest.mark.parametrize("kind", KINDS)
async def test_an_empty_answer_after_a_tool_is_asked_for_once_and_then_said(
    tmp_path: Path, kind: Kind
) -> None:
    """Case 147: with tools off; no empty message is stored, none of ours either."""
    async with chat(tmp_path, kind, tools=[Called("read")]) as it:
        for answer in ("It says ok.", None):
            it.server.answer(tool("read", {}))
            it.server.answer(usage=Usage(10, 0))
            it.server.answer(*([answer] if answer else []), usage=Usage(10, 2))
            before = len(it.server.requests)
            said = await it.ask("read it")
            assert said == (
                answer or "The model gave no answer. Please ask again, perhaps in other words."
            )
            nudged = it.server.requests[-1]
            assert nudged.body["tool_choice"] in ("none", {"type": "none"})
            assert NUDGE in texts(nudged)
            assert len(it.server.requests) - before == 3
        stored = await it.stored()
        assert NUDGE not in str(stored)
        assert all(message["blocks"] for message in stored)
        it.server.answer("Fine.")
        assert await it.ask("and?") == "Fine."
        assert NUDGE not in texts(it.server.requests[-1])


async def test_an_answer_that_is_all_reasoning_counts_as_empty_and_is_not_shown(
    tmp_path: Path,
) -> None:
    """Case 148."""
    async with chat(tmp_path) as it:
        it.server.answer(thinking("The user wants a number, so 42."), stop="stop")
        it.server.answer(thinking("Again."), "42.")
        assert await it.ask("how many?") == "42."
        assert [reply.preview for reply in it.channel.replies] == ["42."]
        for _ in range(2):
            it.server.answer(thinking("The user wants more."))
        assert "The model gave no answer" in await it.ask("and?")
        assert "wants" not in str([reply.preview for reply in it.channel.replies])


ODD = ["abort", "repetition", "eos", "stop", "tool_calls", ""]


@pytest.mark.parametrize("reason", [*ODD, None])
async def test_calls_decide_whether_tools_run_whatever_the_reason(
    reason: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Case 149: known, unknown and missing reasons, with and without calls. One that nobody knows is
    logged. Where none comes, the usage of the whole answer says that it is whole."""
    write = writer()
    with caplog.at_level(logging.INFO):
        async with run(tools=[write]) as it:
            it.server.answer("I write it.", tool("write", WHOLE), stop=reason)
            it.server.answer("Written.", stop=reason)
            assert await it.it.run([GO]).execute() == "Written."
            assert write.ran == [WHOLE]
            assert len(it.requests) == 2
    logged = "unknown finish reason" in caplog.text
    assert logged is (reason not in ("stop", "tool_calls", "abort"))


async def test_a_window_that_is_full_after_some_words_cuts_the_answer(tmp_path: Path) -> None:
    """Case 149: z.ai's reason; the words are kept and the person is told."""
    async with chat(tmp_path, tools=[writer()]) as it:
        it.server.answer("The first half", stop="model_context_window_exceeded")
        said = await it.ask("go")
        assert said.startswith("The first half\n\n(The answer met the length limit")
        it.server.answer(tool("write", WHOLE), stop="model_context_window_exceeded")
        it.server.answer("I stop here.")
        assert await it.ask("go on") == "I stop here."
        assert "were cut off before their end" in texts(it.server.requests[-1])


async def test_text_that_looks_like_a_call_is_text(tmp_path: Path) -> None:
    """Case 149: of a server without a parser for its model's calls."""
    remove = Called("rm", side_effects=True)
    async with chat(tmp_path, tools=[remove]) as it:
        written = '<tool_call>{"name":"rm","arguments":{}}</tool_call>'
        it.server.answer(written)
        assert await it.ask("go") == written
        assert remove.ran == []


@pytest.mark.parametrize("usage", ["told", "never told"])
async def test_chunks_without_choices_anywhere_are_no_error_and_usage_is_booked(
    tmp_path: Path, usage: str
) -> None:
    """Cases 150 and 153: Azure sends one first, `include_usage` one last; without usage the tokens are
    estimated and marked so."""
    told = {"usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}
    chunks: list[Any] = [
        no_choices(prompt_filter_results=[]),
        {"id": "c", "object": "brand.new", "x": 1},
        chunk({"role": "assistant", "content": "hi"}),
        chunk(None),
        no_choices(),
        chunk({"content": None}, "stop"),
        *([no_choices(**told)] if usage == "told" else []),
    ]
    async with chat(tmp_path) as it:
        it.server.answer_http(200, sse(*chunks))
        assert await it.ask("hello") == "hi"
        rows = await it.database.read(
            "SELECT input_tokens, output_tokens, estimated, outcome FROM usage"
        )
        (row,) = [tuple(row) for row in rows]
        if usage == "told":
            assert row == (10, 5, 0, "completed")
        else:
            assert row[2:] == (1, "completed")
            assert min(row[:2]) > 0


async def test_calls_without_ids_in_later_chunks_and_at_once_run(tmp_path: Path) -> None:
    """Case 153."""
    write = writer()
    async with chat(tmp_path, tools=[write]) as it:
        fragments = [
            chunk(call("", index=0, id="a", name="write")),
            chunk(call('{"path":"a",', index=0)),
            chunk(call('"content":"x"}', index=0)),
        ]
        at_once = [chunk(call('{"path":"a","content":"x"}', index=0, id="b", name="write"))]
        for chunks in (fragments, at_once):
            it.server.answer_http(200, sse(*chunks, chunk({}, "tool_calls")))
            it.server.answer("Written.")
            assert await it.ask("write") == "Written."
        assert write.ran == [WHOLE, WHOLE]


def sse(*chunks: Any) -> str:
    """A whole stream."""
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, {"error": "Unauthorized"}, "does not accept my key"),
        (400, {"object": "error", "message": "prompt is too long", "code": 400}, "too long"),
        (500, "<html><body>nginx</body></html>", "does not answer properly"),
        (404, "<html>", "does not accept my key or model"),
        (400, "null", "does not say why"),
        (400, {"message": ["?"]}, "does not say why"),
    ],
)
async def test_an_error_of_any_shape_is_one_sentence(
    tmp_path: Path, status: int, body: Any, words: str
) -> None:
    """Case 150: flat, a string, a page, or nothing that can be read."""
    async with chat(tmp_path) as it:
        for _ in range(4):
            it.server.answer_http(status, body)
        said = await it.ask("hi")
        assert words in said or "cannot be reached right now" in said
        assert "Error id: " in said
        assert "nginx" not in said
        assert "html" not in said


async def test_a_seal_of_thinking_that_another_model_refuses_is_left_out_and_asked_once_more() -> (
    None
):
    """Case 152: the calls that were made stay, those of earlier turns too, and nothing is reset."""
    write = writer()
    asked = Message("assistant", (ToolUseBlock("c0", "write", WHOLE),))
    answered = Message("user", (ToolResultBlock("c0", (TextBlock("ok"),)),))
    earlier = [user_text("old"), asked, answered, assistant_text("Written.")]
    async with run("anthropic", tools=[write]) as it:
        it.server.answer(thinking("I write it."), "So.", tool("write", WHOLE))
        it.server.fail(400, "messages.1.content.0: Invalid `signature` in `thinking` block")
        it.server.answer("Written.")
        made = it.it.run([*earlier, GO])
        assert await made.execute() == "Written."
        _, refused, again = it.requests
        assert "(ThinkingBlock)" in str(facts(refused, "anthropic"))
        expected = [fact for fact in facts(refused, "anthropic") if "(Thinking" not in fact[1]]
        assert facts(again, "anthropic") == expected
        assert write.ran == [WHOLE]
        assert not made.context_was_reset


async def test_thinking_of_older_turns_never_goes_to_another_model(tmp_path: Path) -> None:
    """Case 152: nor to the same one, after a restart."""
    async with chat(tmp_path, "anthropic") as it:
        it.server.answer(thinking("He greets me."), "Hello.")
        assert await it.ask("hi") == "Hello."
        assert "He greets me." in str(await it.stored())
    for kind in KINDS:
        async with chat(tmp_path, kind) as it:
            it.server.answer("Fine.")
            assert await it.ask("and?") == "Fine."
            assert "He greets me." not in texts(it.server.requests[-1])
