"""Line 1: the lightest trim that is enough, at turn boundaries, and the newest turn always."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from agent.context import (
    FEW_TURNS,
    OLD_RESULT_CHARACTERS,
    Budget,
    Working,
    brief,
    cut_middle,
    fits,
    shorten,
    size,
    trim,
    turns,
    without_seals,
    without_thinking,
)
from agent.history import repair, violations
from agent.messages import (
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    assistant_text,
    user_text,
)
from tests.agent.bed import SIZES


def tool_turn(number: int, result: str = "ok", answer: str = "done") -> tuple[Message, ...]:
    call = ToolUseBlock(f"c{number}", "read", {"path": "a"})
    return (
        user_text(f"q{number}"),
        Message("assistant", (call,)),
        Message("user", (ToolResultBlock(call.id, (TextBlock(result),)),)),
        assistant_text(f"{answer}{number}"),
    )


def conversation(count: int, *, words: int = 1, result: str = "ok") -> Working:
    old = [tool_turn(i, result, "done " * words) for i in range(count)]
    return Working((*old, (user_text("now"),)))


wide = Budget(tokens=10**9, max_turns=20)

turn_lists = st.lists(
    st.builds(
        tool_turn,
        st.integers(0, 10**6),
        st.integers(0, 60_000).map(lambda n: "r" * n),
        st.integers(1, 3_000).map(lambda n: "a" * n),
    ),
    max_size=30,
    unique_by=lambda turn: turn[0].text,
)


def test_what_fits_is_left_as_it_is() -> None:
    working = conversation(5)
    trimmed = trim(working, wide, SIZES)
    assert trimmed.working == working
    assert trimmed.dropped == ()


def test_long_results_of_old_turns_are_cut_with_a_marker_that_says_how_to_get_them() -> None:
    working = conversation(2, result="x" * 60_000)
    first, second, newest = trim(working, wide, SIZES).working.turns
    for turn in (first, second):
        (part,) = turn[2].tool_results[0].content
        assert isinstance(part, TextBlock)
        assert len(part.text) < OLD_RESULT_CHARACTERS + 200
        assert "40000 characters were left out here; read_transcript" in part.text
    assert newest == (user_text("now"),)


def test_more_turns_than_allowed_drop_the_older_half() -> None:
    trimmed = trim(conversation(20), wide, SIZES)
    assert len(trimmed.working.turns) == 10
    assert trimmed.working.left == 11
    assert trimmed.dropped[0] == user_text("q0")
    assert len(trim(conversation(19), wide, SIZES).working.turns) == 20, "as many as are allowed"


def test_five_turns_are_not_few() -> None:
    working = conversation(FEW_TURNS - 1, result="x" * 9_000)
    trimmed = trim(working, replace(wide, tokens=size(working, SIZES) * 7 // 10), SIZES)
    assert (trimmed.working.brief, len(trimmed.working.turns)) == (0, 3)


def test_a_few_large_turns_become_question_and_answer_before_any_is_dropped() -> None:
    working = conversation(FEW_TURNS - 2, result="x" * 9_000)
    budget = replace(wide, tokens=size(working, SIZES) // 2)
    trimmed = trim(working, budget, SIZES)
    assert [len(turn) for turn in trimmed.working.turns] == [2, 2, 2, 1]
    assert (trimmed.working.left, trimmed.working.brief) == (0, 3)
    assert all(message.tool_uses or message.tool_results for message in trimmed.dropped)


def test_many_turns_over_the_budget_are_halved_until_they_fit() -> None:
    working = conversation(16, words=300)
    budget = replace(wide, tokens=size(working, SIZES) // 3)
    trimmed = trim(working, budget, SIZES)
    assert size(trimmed.working, SIZES) <= budget.tokens
    assert trimmed.working.turns[-1] == (user_text("now"),)


def test_inside_one_giant_turn_the_oldest_results_are_shortened_first() -> None:
    giant = (user_text("now"), *(m for i in range(4) for m in tool_turn(i, "x" * 50_000)[1:3]))
    working = Working((giant,))
    budget = replace(wide, tokens=round(size(working, SIZES) * 0.6))
    trimmed = trim(working, budget, SIZES)
    lengths = [
        len(part.text)
        for message in trimmed.working.newest
        for result in message.tool_results
        for part in result.content
        if isinstance(part, TextBlock)
    ]
    assert lengths == sorted(lengths), "older ones are shorter"
    assert lengths[-1] == 50_000
    assert size(trimmed.working, SIZES) <= budget.tokens


@given(turn_lists, st.integers(10, 60_000), st.integers(1, 25))
def test_laws_of_trimming(old: list[tuple[Message, ...]], tokens: int, max_turns: int) -> None:
    working = Working((*old, (user_text("the question"),)))
    trimmed = trim(working, Budget(tokens, max_turns), SIZES)
    kept = trimmed.working
    assert kept.turns[-1] == working.turns[-1], "the newest turn is never dropped"
    assert len(kept.turns) <= max(1, max_turns)
    assert size(kept, SIZES) <= tokens or len(kept.turns) == 1
    assert kept.left + len(kept.turns) == len(working.turns)
    assert violations(repair(kept.messages())) == []
    again = trim(kept, Budget(tokens, max_turns), SIZES)
    assert again.dropped == (), "what was trimmed is not trimmed again"
    said = [m.text for turn in old for m in turn if m.text]
    still = [m.text for turn in kept.turns[:-1] for m in turn if m.text]
    gone = [m.text for m in trimmed.dropped if m.text]
    assert sorted(still + gone) == sorted(said), "every word is kept or given back"


def test_a_brief_turn_is_its_question_and_its_final_answer() -> None:
    turn = tool_turn(1)
    assert brief(turn) == (turn[0], turn[-1])
    assert brief(turn[:3]) == turn[:3], "one without an answer stays whole"


def test_a_note_stands_before_the_first_words() -> None:
    working = replace(conversation(1), note="[Earlier conversation] They met.")
    first = working.messages()[0]
    assert first.text == "[Earlier conversation] They met.\n\nq0"
    assert turns(working.messages())[0][0] == first


@given(st.text(min_size=0, max_size=500), st.integers(2, 200))
def test_a_cut_is_bounded_keeps_both_ends_and_is_not_cut_again(text: str, limit: int) -> None:
    cut = cut_middle(text, limit)
    assert len(cut) <= max(len(text), limit + 120)
    assert cut.startswith(text[: limit // 2])
    assert cut_middle(cut, limit) == cut


def test_a_result_of_many_texts_is_cut_as_one() -> None:
    """Ten parts that fit would else be a result of ten times what a result may have."""
    parts = (*[TextBlock("x" * 1_000)] * 20, TextBlock("short"))
    message = Message("user", (ToolResultBlock("a", parts),))
    cut = shorten(message, 10_000, "ask again")
    assert sum(len(part.text) for part in cut.tool_results[0].content) < 10_000 + 21 * 150
    assert shorten(cut, 10_000, "ask again") is cut


@given(turn_lists, st.none() | st.text(min_size=1), st.integers(0, 60_000))
def test_what_fits_is_what_is_not_larger_than_that(
    found: list[tuple[Message, ...]], note: str | None, tokens: int
) -> None:
    working = Working(tuple(found), note=note)
    whole = size(working, SIZES)
    assert fits(working, tokens, SIZES) is (whole <= tokens)
    assert fits(working, whole, SIZES)
    assert not fits(working, whole - 1, SIZES)


def test_reasoning_without_a_seal_stays_in_turns_with_calls_and_goes_elsewhere() -> None:
    """DeepSeek wants that of a turn with calls back in every later request; a seal is bound to what
    came before it."""
    spoken = ThinkingBlock("spoken", "p/m")
    sealed = ThinkingBlock("sealed", "p/m", signature="s")
    withheld = ThinkingBlock("", "p/m", redacted="opaque")
    question, call, results, answer = tool_turn(1)
    thought = Message("assistant", (spoken, sealed, withheld, *call.blocks))
    final = Message("assistant", (spoken, *answer.blocks))
    kept = Message("assistant", (spoken, *call.blocks))
    turn = (question, thought, results, final)
    assert without_seals(turn) == (question, kept, results, final)
    assert without_seals((question, final)) == (question, answer)
    assert without_thinking(turn) == (question, call, results, answer)
    assert without_seals((question, answer))[1] is answer
