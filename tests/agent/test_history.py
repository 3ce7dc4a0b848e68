"""Line 2: repair makes every history legal, and never loses or moves what people said."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from agent.history import (
    BEGINNING,
    CONTINUE,
    LOST_RESULT,
    NO_CONTENT,
    is_legal,
    lost_result,
    repair,
    violations,
)
from agent.messages import (
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    assistant_text,
    decode,
    encode,
    user_text,
)
from tests.fuzz.histories import (
    damaged_histories,
    histories,
    messages,
    sound_histories,
    words,
)

OURS = {BEGINNING, CONTINUE, NO_CONTENT}
many = settings(max_examples=100, deadline=None)


def said(history: Sequence[Message]) -> list[tuple[str, str | bytes]]:
    """Who said what, in order: texts of both, images of the user."""
    return [
        (message.role, block.text if isinstance(block, TextBlock) else block.data)
        for message in history
        for block in message.blocks
        if (isinstance(block, TextBlock) and block.text.strip())
        or (isinstance(block, ImageBlock) and message.role == "user")
    ]


# Laws -------------------------------------------------------------------------------------------


@given(histories)
@many
def test_any_history_becomes_legal_once_and_the_same_each_time(history: list[Message]) -> None:
    before = list(history)
    repaired = repair(history)
    assert violations(repaired) == []
    assert repair(repaired) is repaired
    assert repair(list(history)) == repaired
    assert history == before


@given(histories)
@many
def test_every_word_stays_with_its_speaker_and_in_its_place(history: list[Message]) -> None:
    kept = [words for words in said(repair(history)) if words[1] not in OURS]
    assert kept == [words for words in said(history) if words[1] not in OURS]


@given(sound_histories())
@many
def test_a_legal_history_comes_back_as_the_same_object(history: list[Message]) -> None:
    assert violations(history) == []
    assert repair(history) is history


@given(histories | sound_histories())
@many
def test_the_fast_check_and_the_oracle_agree(history: list[Message]) -> None:
    assert is_legal(history) == (violations(history) == [])


@given(damaged_histories())
@many
def test_a_result_stays_with_the_call_that_it_answers(history: list[Message]) -> None:
    """Ids are unique in these conversations, so that each text names its call."""
    for message in repair(history):
        for result in message.tool_results:
            (text,) = [part.text for part in result.content if isinstance(part, TextBlock)]
            original = text.removeprefix("result of ")
            assert text == LOST_RESULT or result.tool_use_id.startswith(original)


@given(damaged_histories())
@many
def test_no_result_is_called_lost_that_comes_later(history: list[Message]) -> None:
    repaired = repair(history)
    lost = {r.tool_use_id for m in repaired for r in m.tool_results if r.content[0] == LOST}
    asked: set[str] = set()
    twice: set[str] = set()
    for message in history:
        if message.role == "assistant":
            twice |= asked & {call.id for call in message.tool_uses}
            asked |= {call.id for call in message.tool_uses}
        else:
            late = {result.tool_use_id for result in message.tool_results} & asked - twice
            assert not late & lost


LOST = TextBlock(LOST_RESULT)


@given(histories, words, sound_histories(2))
@many
def test_what_was_sent_stays_a_prefix_of_what_is_sent_next(
    history: list[Message], question: str, run: list[Message]
) -> None:
    """Prompt caching and the seals of thinking depend on it."""
    asked = [*history, user_text(question)]
    sent = repair(asked)
    fresh = [_renamed(message) for message in run[1:]]
    assert list(repair([*asked, *fresh])) == [*sent, *fresh]


def _renamed(message: Message) -> Message:
    """With ids that no generated history has."""
    return Message(
        message.role,
        tuple(
            replace(block, id=f"new {block.id}")
            if isinstance(block, ToolUseBlock)
            else replace(block, tool_use_id=f"new {block.tool_use_id}")
            if isinstance(block, ToolResultBlock)
            else block
            for block in message.blocks
        ),
    )


@given(messages)
def test_a_message_survives_the_store(message: Message) -> None:
    for block in message.blocks:
        if isinstance(block, ToolUseBlock):  # NaN is not equal to itself
            block.arguments.clear()
    assert decode(encode(message)) == message


def work(function: Callable[[], object]) -> int:
    """How many calls of functions, ours and the interpreter's, this takes."""
    count = 0

    def counted(*_: Any) -> None:
        nonlocal count
        count += 1

    sys.setprofile(counted)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def call(id_: str, raw: str | None = None) -> ToolUseBlock:
    return ToolUseBlock(id_, "read", {}, raw)


def result(id_: str, text: str = "ok") -> ToolResultBlock:
    return ToolResultBlock(id_, (TextBlock(text),))


def asks(*ids: str) -> Message:
    return Message("assistant", tuple(call(id_) for id_ in ids))


def answers(*ids: str) -> Message:
    return Message("user", tuple(result(id_) for id_ in ids))


@pytest.mark.parametrize(
    "shape",
    [
        [user_text("q"), asks("a"), answers("a"), assistant_text("x")],
        [user_text("q"), asks("a"), assistant_text("x")],
        [asks("a"), asks("a")],
        [asks("a", "b"), user_text("q"), answers("b"), answers("a")],
        [Message("user", ()), assistant_text(" ")],
    ],
)
def test_the_work_grows_with_the_length_and_no_faster(shape: list[Message]) -> None:
    """Also where each id was used before, and where all results are late."""
    for function in (repair, violations):
        once = work(lambda function=function: function(shape * 100))  # type: ignore[misc]
        twice = work(lambda function=function: function(shape * 200))  # type: ignore[misc]
        assert twice < 2.1 * once


# Cases ------------------------------------------------------------------------------------------

Q, NEXT, LOST_A, LOST_B = (
    user_text("q"),
    user_text("next"),
    lost_result("a"),
    lost_result("b"),
)


def with_text(message: Message, text: str) -> Message:
    return Message(message.role, (*message.blocks, TextBlock(text)))


CASES: dict[str, tuple[list[Message], list[Message]]] = {
    "a lost parallel result is replaced in the very next message": (
        [Q, asks("a", "b"), answers("a"), NEXT],
        [Q, asks("a", "b"), Message("user", (result("a"), LOST_B, TextBlock("next")))],
    ),
    "calls without any result are answered, then the user speaks": (
        [Q, asks("a"), NEXT],
        [Q, asks("a"), Message("user", (LOST_A, TextBlock("next")))],
    ),
    "a run that died between two steps": (
        [Q, asks("a"), asks("b"), answers("b")],
        [Q, asks("a"), Message("user", (LOST_A,)), asks("b"), answers("b")],
    ),
    "parallel results in the order of the calls, in one message": (
        [Q, asks("a", "b"), answers("b"), answers("a")],
        [Q, asks("a", "b"), answers("a", "b")],
    ),
    "results come before the text of their message": (
        [Q, asks("a"), Message("user", (TextBlock("next"), result("a")))],
        [Q, asks("a"), with_text(answers("a"), "next")],
    ),
    "a late result is moved to its call: it is the truth": (
        [Q, asks("a"), NEXT, assistant_text("wait"), answers("a")],
        [Q, asks("a"), with_text(answers("a"), "next"), assistant_text("wait"), user_text(CONTINUE)],
    ),
    "a late result answers the newest use of its id only": (
        [Q, asks("a"), NEXT, asks("a"), answers("a"), answers("a")],
        [
            Q,
            asks("a"),
            Message("user", (LOST_A, TextBlock("next"))),
            asks("a_2"),
            answers("a_2"),
        ],
    ),
    "an orphan at the tail goes and the question stays": (
        [Q, asks("a"), answers("a"), NEXT, answers("b")],
        [Q, asks("a"), with_text(answers("a"), "next")],
    ),
    "orphans and second results go, the first stays": (
        [
            Q,
            asks("a"),
            Message("user", (result("a"), result("c"), result("a", "again"), result("", "x"))),
        ],
        [Q, asks("a"), answers("a")],
    ),
    "a result before its call is an orphan": (
        [Q, answers("a"), asks("a")],
        [Q, asks("a"), Message("user", (LOST_A,))],
    ),
    "one id in two turns becomes two ids on both halves": (
        [Q, asks("a"), answers("a"), assistant_text("x"), NEXT, asks("a"), answers("a")],
        [Q, asks("a"), answers("a"), assistant_text("x"), NEXT, asks("a_2"), answers("a_2")],
    ),
    "one id twice in one message: results in the order of the calls": (
        [Q, asks("a", "a"), Message("user", (result("a", "1"), result("a", "2")))],
        [Q, asks("a", "a_2"), Message("user", (result("a", "1"), result("a_2", "2")))],
    ),
    "one id twice in one message and one result: it is used once": (
        [Q, asks("a", "a"), answers("a"), NEXT, answers("a")],
        [
            Q,
            asks("a", "a_2"),
            Message("user", (result("a"), result("a_2"), TextBlock("next"))),
        ],
    ),
    "one id twice in one message, and its second result lost": (
        [Q, asks("a", "a"), answers("a", "b"), NEXT],
        [
            Q,
            asks("a", "a_2"),
            Message("user", (result("a"), replace(LOST_A, tool_use_id="a_2"), TextBlock("next"))),
        ],
    ),
    "results in two messages": (
        [Q, asks("a", "b"), answers("a"), answers("b"), NEXT],
        [Q, asks("a", "b"), with_text(answers("a", "b"), "next")],
    ),
    "calls without ids get ids": (
        [Q, asks("", ""), answers("", "")],
        [Q, asks("call", "call_2"), answers("call", "call_2")],
    ),
    "an answer of line feeds only, alone": (
        [Q, assistant_text("\n\n"), NEXT],
        [Message("user", (*Q.blocks, *NEXT.blocks))],
    ),
    "an answer of line feeds only, beside a call": (
        [Q, Message("assistant", (TextBlock("\n\n"), call("a"))), answers("a")],
        [Q, asks("a"), answers("a")],
    ),
    "an empty result has words": (
        [Q, asks("a", "b"), Message("user", (ToolResultBlock("a", ()), result("b", " ")))],
        [Q, asks("a", "b"), Message("user", (result("a", NO_CONTENT), result("b", NO_CONTENT)))],
    ),
    "blank parts of a result go, its image stays": (
        [
            Q,
            asks("a"),
            Message(
                "user", (ToolResultBlock("a", (TextBlock(""), ImageBlock("image/png", b"i"))),)
            ),
        ],
        [Q, asks("a"), Message("user", (ToolResultBlock("a", (ImageBlock("image/png", b"i"),)),))],
    ),
    "an assistant that speaks first is kept, after words of the user's": (
        [assistant_text("Good morning."), NEXT],
        [user_text(BEGINNING), assistant_text("Good morning."), NEXT],
    ),
    "a cut inside a turn keeps the calls that were executed": (
        [asks("a"), answers("a"), assistant_text("x"), NEXT],
        [user_text(BEGINNING), asks("a"), answers("a"), assistant_text("x"), NEXT],
    ),
    "a cut between a call and its result keeps the words": (
        [answers("a"), assistant_text("x"), NEXT],
        [user_text(BEGINNING), assistant_text("x"), NEXT],
    ),
    "questions in a row become one message, each word kept": (
        [Q, user_text("and?"), NEXT],
        [Message("user", (*Q.blocks, TextBlock("and?"), *NEXT.blocks))],
    ),
    "answers in a row become one message": (
        [Q, assistant_text("x"), asks("a"), answers("a")],
        [Q, Message("assistant", (TextBlock("x"), call("a"))), answers("a")],
    ),
    "a blank question keeps two answers apart": (
        [Q, assistant_text("x"), user_text(" "), assistant_text("y"), user_text("")],
        [
            *(Q, assistant_text("x"), user_text(NO_CONTENT)),
            *(assistant_text("y"), user_text(NO_CONTENT)),
        ],
    ),
    "a blank question beside words of the user's goes": (
        [Q, assistant_text("x"), user_text(" "), NEXT, user_text("")],
        [Q, assistant_text("x"), NEXT],
    ),
    "an assistant that speaks last gets a short word": (
        [Q, assistant_text("half an ans")],
        [Q, assistant_text("half an ans"), user_text(CONTINUE)],
    ),
    "an aborted reply: the visible text stays, the half-made call goes": (
        [Q, Message("assistant", (TextBlock("Let me see."), call("a", '{"pa'))), NEXT],
        [Q, assistant_text("Let me see."), NEXT],
    ),
    "an aborted reply of nothing but thinking and a half-made call": (
        [Q, Message("assistant", (ThinkingBlock("hm", "m"), call("a", '{"pa'))), NEXT],
        [Message("user", (*Q.blocks, *NEXT.blocks))],
    ),
    "a whole call beside a half-made one": (
        [Q, Message("assistant", (call("a"), call("b", '{"pa'))), NEXT],
        [Q, asks("a"), Message("user", (LOST_A, TextBlock("next")))],
    ),
    "a call that nobody could read and that was answered stays with its answer": (
        [Q, Message("assistant", (call("a", '{"pa'),)), answers("a")],
        [Q, asks("a"), answers("a")],
    ),
    "thinking that stands alone goes": (
        [Q, Message("assistant", (ThinkingBlock("hm", "m", "s"),)), NEXT],
        [Message("user", (*Q.blocks, *NEXT.blocks))],
    ),
    "blocks on the wrong side go": (
        [
            Message("user", (TextBlock("q"), call("a"), ThinkingBlock("hm", "m"))),
            Message(
                "assistant", (TextBlock("x"), result("a"), ImageBlock("image/png", b"i"))
            ),
            NEXT,
        ],
        [Q, assistant_text("x"), NEXT],
    ),
    "the whole conversation stored twice": (
        [Q, asks("a"), answers("a"), assistant_text("x")] * 2 + [NEXT],
        [
            *(Q, asks("a"), answers("a"), assistant_text("x")),
            *(Q, asks("a_2"), answers("a_2"), assistant_text("x"), NEXT),
        ],
    ),
    "nothing at all": ([], [user_text(BEGINNING)]),
    "nothing but blanks and orphans": (
        [Message("user", (result("a"), TextBlock(" "))), Message("assistant", ())],
        [user_text(BEGINNING)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_repairs(name: str) -> None:
    broken, whole = CASES[name]
    assert violations(broken)
    assert list(repair(broken)) == whole


def test_what_is_whole_in_a_broken_history_is_not_made_again() -> None:
    long = [message for n in range(50) for message in (user_text(f"q{n}"), assistant_text("x"))]
    repaired = repair([*long, Q, asks("a"), NEXT])
    assert all(new is old for new, old in zip(repaired, long, strict=False))


@pytest.mark.parametrize("cut", range(44))
@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_a_window_cut_anywhere_in_a_long_tool_loop_keeps_every_pair(cut: int, size: int) -> None:
    """One question and 20 steps: whatever rows are left, no executed call loses its result."""
    rows = [Q, *(row for n in range(20) for row in (asks(f"c{n}"), answers(f"c{n}"))), NEXT]
    window = rows[cut : cut + size] or [NEXT]
    repaired = repair(window)
    assert violations(repaired) == []
    kept = {r.tool_use_id for m in window[1:] for r in m.tool_results}
    if window[0].tool_results:
        assert window[0].tool_results[0].tool_use_id not in {
            r.tool_use_id for m in repaired for r in m.tool_results
        }
    assert kept <= {r.tool_use_id for m in repaired for r in m.tool_results}
