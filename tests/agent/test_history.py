"""Line 2: repair makes every history legal, and never loses or moves what people said."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.history import repair, violations
from agent.messages import (
    Block,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    assistant_text,
    begins_turn,
    decode,
    encode,
    user_text,
)

ids = st.sampled_from(["", "a", "b", "c", "call_0", "x|y", "a_1"])
texts = st.sampled_from(["", " ", "\n\n", "hello", "你好", "done"])
parts = st.lists(
    st.one_of(st.builds(TextBlock, texts), st.just(ImageBlock("image/png", b"i"))), max_size=2
).map(tuple)
blocks: st.SearchStrategy[Block] = st.one_of(
    st.builds(TextBlock, texts),
    st.just(ImageBlock("image/png", b"i")),
    st.builds(ThinkingBlock, texts, st.just("m")),
    st.builds(ToolUseBlock, ids, st.just("read"), st.just({})),
    st.builds(ToolResultBlock, ids, parts, st.booleans()),
)
messages = st.builds(
    Message, st.sampled_from(["user", "assistant"]), st.lists(blocks, max_size=4).map(tuple)
)
histories = st.lists(messages, max_size=10)


def said(history: object, role: str) -> list[str]:
    return [
        block.text
        for message in history  # type: ignore[attr-defined]
        if message.role == role
        for block in message.blocks
        if isinstance(block, TextBlock) and block.text.strip()
    ]


@given(histories)
@settings(max_examples=1500, deadline=None)
def test_repair_is_legal_idempotent_and_keeps_what_was_said(history: list[Message]) -> None:
    repaired = repair(history)
    if not any(begins_turn(m) for m in history if _has_words(m)):
        return
    assert violations(repaired) == []
    assert repair(repaired) is repaired
    first = next(i for i, m in enumerate(history) if _has_words(m))
    assert [t for t in said(repaired, "user") if t != "(continue)"] == said(history[first:], "user")
    assert said(repaired, "assistant") == said(history[first:], "assistant")


def _has_words(message: Message) -> bool:
    return message.role == "user" and any(
        isinstance(b, ImageBlock) or (isinstance(b, TextBlock) and b.text.strip())
        for b in message.blocks
    )


@given(histories)
@settings(max_examples=300, deadline=None)
def test_a_legal_history_comes_back_as_the_same_object(history: list[Message]) -> None:
    if not violations(history):
        assert repair(history) is history


@given(messages)
def test_a_message_survives_the_store(message: Message) -> None:
    assert decode(encode(message)) == message


def call(id_: str) -> ToolUseBlock:
    return ToolUseBlock(id_, "read", {})


def result(id_: str, text: str = "ok") -> ToolResultBlock:
    return ToolResultBlock(id_, (TextBlock(text),))


def test_a_lost_parallel_result_is_replaced_in_the_very_next_message() -> None:
    history = [
        user_text("go"),
        Message("assistant", (call("t1"), call("t2"))),
        Message("user", (result("t1"),)),
        user_text("and?"),
    ]
    repaired = repair(history)
    assert len(repaired) == 3
    first, second, text = repaired[2].blocks
    assert first == result("t1")
    assert isinstance(second, ToolResultBlock)
    assert (second.tool_use_id, second.is_error) == ("t2", True)
    assert text == TextBlock("and?")


def test_an_orphan_result_at_the_tail_does_not_empty_the_window() -> None:
    history = [
        user_text("q1"),
        Message("assistant", (call("A"),)),
        Message("user", (result("A"),)),
        user_text("q2"),
        Message("user", (result("B"),)),
    ]
    assert said(repair(history), "user") == ["q1", "q2"]


def test_one_id_in_two_turns_becomes_two_ids_on_both_halves() -> None:
    turn = [Message("assistant", (call("call_0"),)), Message("user", (result("call_0"),))]
    history = [user_text("a"), *turn, assistant_text("x"), user_text("b"), *turn]
    repaired = repair(history)
    ids_used = [u.id for m in repaired for u in m.tool_uses]
    assert len(set(ids_used)) == 2
    assert ids_used == [r.tool_use_id for m in repaired for r in m.tool_results]
    assert violations(repaired) == []


def test_a_history_that_ends_with_the_assistant_gets_a_user_message() -> None:
    repaired = repair([user_text("a"), assistant_text("half an ans")])
    assert [m.role for m in repaired] == ["user", "assistant", "user"]
