"""Whatever a conversation holds, both APIs take the request: laws over any history, judged by the
rules of the strict servers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.history import repair
from agent.messages import (
    ImageBlock,
    JsonValue,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    assistant_text,
    user_text,
)
from agent.provider import ModelRequest, ModelTraits
from agent.providers import anthropic_body, openai_body
from agent.providers.openai_body import Dialect
from agent.providers.wire import WireIds, clean
from agent.tools import ToolSpec
from tests.fuzz.histories import MODEL, any_histories, damaged_histories, ids, words
from tests.fuzz.judges import judged, judges, on_the_wire
from tests.servers import anthropic_rules, openai_rules

NOW = ToolSpec("now", "The time.", {"type": "object", "properties": {}})
# What `repair` makes of any list with a question in it.
histories = (any_histories | damaged_histories(3)).map(
    lambda rest: tuple(repair([*rest, user_text("question")]))
)
traits = st.builds(ModelTraits, st.booleans(), st.booleans(), st.booleans())
requests = st.builds(
    ModelRequest,
    st.just("model"),
    words,
    histories,
    st.sampled_from([(), (NOW,)]),
    st.just(500),
    traits,
    st.booleans(),
)


@given(requests)
@settings(max_examples=150, deadline=None)
def test_anthropic_takes_any_repaired_history(request: ModelRequest) -> None:
    body = on_the_wire(anthropic_body.render(request, MODEL, thinking=False))
    assert not anthropic_body.has_thinking(body)
    body["stream"] = True
    anthropic_rules.check_request(body, "2023-06-01", 1, anthropic_rules.Rules())


@given(requests)
@settings(max_examples=100, deadline=None)
def test_only_the_models_own_thinking_goes_back_and_unchanged(request: ModelRequest) -> None:
    body = anthropic_body.render(request, MODEL)
    sent = [
        block
        for message in body["messages"]
        for block in message["content"]
        if block["type"] in ("thinking", "redacted_thinking")
    ]
    own = [
        {"type": "redacted_thinking", "data": block.redacted}
        if block.redacted is not None
        else {"type": "thinking", "thinking": block.text, "signature": block.signature}
        for message in request.messages
        for block in message.blocks
        if isinstance(block, ThinkingBlock)
        and block.model == MODEL
        and (block.redacted is not None or block.signature)
    ]
    offered = bool(request.tools) and request.traits.tools
    if offered or not any(message.tool_uses for message in request.messages):
        assert sent == own
    else:
        assert sent == []


DIALECTS = {
    "openai": (openai_rules.Rules(), Dialect(reasoning="none")),
    "deepseek": (openai_rules.deepseek(), Dialect(reasoning="required")),
    "mistral": (
        openai_rules.mistral(),
        Dialect(reasoning="none", short_ids=True, user_after_tool=False),
    ),
    "only max_tokens": (
        openai_rules.only_max_tokens(),
        Dialect(completion_tokens=False, stream_options=False, reasoning="none"),
    ),
    "alternating": (openai_rules.alternating(), Dialect(reasoning="none")),
}


@pytest.mark.parametrize("server", DIALECTS)
@given(request=requests)
@settings(max_examples=80, deadline=None)
def test_openai_and_its_like_take_any_repaired_history(server: str, request: ModelRequest) -> None:
    rules, dialect = DIALECTS[server]
    body = on_the_wire(openai_body.render(request, MODEL, dialect))
    body["stream"] = True
    openai_rules.check_request(body, rules)
    for message in body["messages"]:
        for call in message.get("tool_calls", ()):
            json.loads(call["function"]["arguments"], parse_constant=pytest.fail)


@given(requests)
@settings(deadline=None)
def test_rendering_is_deterministic_and_leaves_the_request_alone(request: ModelRequest) -> None:
    before = repr(request)
    first = anthropic_body.render(request, MODEL)
    assert anthropic_body.render(request, MODEL) == first
    chat = openai_body.render(request, MODEL, Dialect())
    assert openai_body.render(request, MODEL, Dialect()) == chat
    assert repr(request) == before


@given(requests)
@settings(deadline=None)
def test_traits_are_kept(request: ModelRequest) -> None:
    for body in (
        anthropic_body.render(request, MODEL),
        openai_body.render(request, MODEL, Dialect()),
    ):
        text = json.dumps(body)
        offered = bool(request.tools) and request.traits.tools
        assert ("tools" in body) == offered
        if not request.traits.images:
            assert '"type": "image' not in text
        if not request.traits.system_prompt:
            assert "system" not in body
            assert body["messages"][0]["role"] == "user"
        if not offered:
            assert '"tool_use"' not in text
            assert '"tool_calls"' not in text
            assert '"role": "tool"' not in text


@given(st.lists(words | ids, max_size=20))
@settings(deadline=None)
def test_different_ids_stay_different_and_fit(wanted: list[str]) -> None:
    history = [Message("assistant", tuple(ToolUseBlock(id_, "now", {}) for id_ in wanted))]
    wire = WireIds(history, openai_body._ID)
    made = {id_: wire(id_) for id_ in wanted}
    assert len(set(made.values())) == len(set(wanted))
    assert all(openai_body._ID.fullmatch(id_) for id_ in made.values())
    assert {id_: WireIds(history, openai_body._ID)(id_) for id_ in wanted} == made


@given(words)
@settings(deadline=None)
def test_cleaned_text_is_valid_and_valid_text_is_the_same(text: str) -> None:
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    cleaned.encode()
    if text.isprintable():
        assert cleaned == text


# Cases ------------------------------------------------------------------------------------------


def png(width: int = 1, height: int = 1, size: int = 64) -> bytes:
    header = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
    return (header + width.to_bytes(4) + height.to_bytes(4)).ljust(size, b"\x00")


def ask(*messages: Message, tools: bool = True) -> ModelRequest:
    return ModelRequest("model", "s", tuple(repair(messages)), (NOW,) if tools else (), 500)


def chat(request: ModelRequest, **dialect: Any) -> list[Any]:
    rendered: list[Any] = openai_body.render(request, MODEL, Dialect(**dialect))["messages"][1:]
    return rendered


def step(call: ToolUseBlock, *content: TextBlock | ImageBlock, failed: bool = False) -> Any:
    answer = ToolResultBlock(call.id, content, is_error=failed)
    return Message("assistant", (call,)), Message("user", (answer,))


Q = user_text("q")


C1, C2 = (ToolUseBlock(id_, "now", {}) for id_ in ("c1", "c2"))
A1, A2 = (ToolResultBlock(id_, (TextBlock("ok"),)) for id_ in ("c1", "c2"))
SHAPES: dict[str, list[Message]] = {
    "calls, then a question": [Q, Message("assistant", (C1,)), Q],
    "results without a call before them": [Message("assistant", ()), Message("user", (A1,)), Q],
    "results first": [Message("user", (A1,)), Message("user", (A2,)), Q],
    "two messages with calls, one result": [
        Q,
        Message("assistant", (C1,)),
        Message("assistant", (C2,)),
        Message("user", (A2,)),
    ],
    "questions in a row": [Q, Q, Q],
    "answers in a row": [Q, assistant_text("a"), assistant_text("b"), Q],
    "an assistant first": [assistant_text("a"), Q],
    "an assistant last": [Q, assistant_text("a")],
    "an empty tool result": [Q, *step(C1), Q],
    "line feeds beside a call": [Q, Message("assistant", (TextBlock("\n\n"), C1)), Q],
    "an unreadable call": [Q, Message("assistant", (replace(C1, raw='{"path": "a'),)), Q],
    "an unreadable call that was answered": [
        Q,
        Message("assistant", (replace(C1, raw='{"path": "a'),)),
        Message("user", (A1,)),
    ],
    "nothing": [],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_that_broke_chats_are_taken_by_every_api(shape: str) -> None:
    judged(judges(), ask(*SHAPES[shape]))


def test_tools_that_may_not_be_called_are_shown_all_the_same() -> None:
    """Their calls are in the history, and thinking is bound to them."""
    request = ask(Q, *step(C1, TextBlock("12:00")))
    closing = replace(request, may_call=False)
    body = anthropic_body.render(closing, MODEL)
    assert body.pop("tool_choice") == {"type": "none"}
    assert body == anthropic_body.render(request, MODEL)
    chatting = openai_body.render(closing, MODEL, Dialect())
    assert chatting.pop("tool_choice") == "none"
    assert chatting == openai_body.render(request, MODEL, Dialect())
    assert "tool_choice" not in openai_body.render(replace(closing, tools=()), MODEL, Dialect())
    judged(judges(), closing)


@pytest.mark.parametrize("system", ["", " ", "\n"])
def test_an_empty_system_prompt_is_left_out(system: str) -> None:
    request = replace(ask(Q), system=system)
    assert "system" not in anthropic_body.render(request, MODEL)
    rows = openai_body.render(request, MODEL, Dialect())["messages"]
    assert [row["role"] for row in rows] == ["user"]


@pytest.mark.parametrize("id_", ["functions.exec:0", "Bash:12", "call_x|fc_y", "x" * 90, "é"])
def test_ids_of_another_provider_fit_on_both_halves_and_stay_as_they_are_stored(id_: str) -> None:
    request = ask(Q, *step(ToolUseBlock(id_, "now", {}), TextBlock("12:00")))
    messages = anthropic_body.render(request, MODEL)["messages"]
    use, result = messages[1]["content"][0], messages[2]["content"][0]
    assert use["id"] == result["tool_use_id"] != id_
    call, answer = chat(request)[1:]
    assert call["tool_calls"][0]["id"] == answer["tool_call_id"] != id_
    assert request.messages[1].tool_uses[0].id == id_


def test_ids_that_would_be_the_same_after_rewriting_stay_apart() -> None:
    """An id on the wire that another call bears already."""
    odd = ToolUseBlock("functions.exec:0", "now", {})
    (made,) = {
        message["tool_call_id"]
        for message in chat(ask(Q, *step(odd, TextBlock("odd"))))
        if message["role"] == "tool"
    }
    taken = ToolUseBlock(made, "now", {})
    messages = chat(ask(Q, *step(odd, TextBlock("odd")), *step(taken, TextBlock("even"))))
    answers = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    assert sorted(answers.values()) == ["even", "odd"]
    assert answers[made] == "even"


def test_an_image_of_a_tool_is_a_row_of_the_users_in_chat_completions() -> None:
    picture = ImageBlock("image/png", png())
    call = ToolUseBlock("a", "now", {})
    request = ask(Q, *step(call, TextBlock("a clock"), picture), assistant_text("I see."), Q)
    _, calls, answer, image, *_ = chat(request)
    assert calls["content"] is None
    assert (answer["role"], answer["content"]) == ("tool", "a clock")
    assert (image["role"], image["content"][0]["type"]) == ("user", "image_url")
    only = chat(ask(Q, *step(call, picture)))
    assert only[2]["content"] == "(see the image that follows)"
    inside = anthropic_body.render(request, MODEL)["messages"][2]["content"][0]["content"]
    assert [part["type"] for part in inside] == ["text", "image"]


def test_an_image_of_a_failed_tool_follows_its_text() -> None:
    """Anthropic: all content of an error must be text."""
    call = ToolUseBlock("a", "now", {})
    request = ask(Q, *step(call, ImageBlock("image/png", png()), failed=True))
    result, image = anthropic_body.render(request, MODEL)["messages"][2]["content"]
    assert [part["type"] for part in result["content"]] == ["text"]
    assert image["type"] == "image"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (png(size=12_000_000), "12.0 MB, and 3.9 MB is the most"),
        (png(9_000, 10), "9000 x 10 pixels"),
        (b"<html>", "no PNG, JPEG, GIF or WebP"),
    ],
)
def test_an_image_that_the_api_would_refuse_is_named_instead(data: bytes, words: str) -> None:
    """Else each later turn of the chat would fail with it."""
    request = ask(Message("user", (TextBlock("what is it?"), ImageBlock("image/png", data))))
    text, note = anthropic_body.render(request, MODEL)["messages"][0]["content"]
    assert (text["text"], note["type"]) == ("what is it?", "text")
    assert words in note["text"]


def test_of_too_many_images_the_newest_stay_and_the_cut_moves_by_tens() -> None:
    def sent(count: int) -> list[int]:
        images = [ImageBlock("image/png", png(n + 1)) for n in range(count)]
        content = anthropic_body.render(ask(Message("user", tuple(images))), MODEL)
        blocks = content["messages"][0]["content"]
        return [place for place, block in enumerate(blocks) if block["type"] == "image"]

    assert sent(20) == list(range(20))
    assert sent(21) == list(range(10, 21))
    assert sent(30) == list(range(10, 30))
    assert sent(31) == list(range(20, 31))


def test_images_that_are_too_large_together_leave_with_the_oldest_first() -> None:
    images = [ImageBlock("image/png", png(n + 1, size=3_900_000)) for n in range(6)]
    blocks = anthropic_body.render(ask(Message("user", tuple(images))), MODEL)["messages"][0]
    kinds = [block["type"] for block in blocks["content"]]
    assert kinds == ["text", "text", "image", "image", "image", "image"]
    assert len(json.dumps(blocks)) < 24_000_000


def test_an_images_type_is_read_from_the_image() -> None:
    webp = ImageBlock("image/png", b"RIFF\x00\x00\x00\x00WEBPVP8 " + bytes(20))
    request = ask(Message("user", (webp,)))
    (block,) = anthropic_body.render(request, MODEL)["messages"][0]["content"]
    assert block["source"]["media_type"] == "image/webp"
    (part,) = chat(request)[0]["content"]
    assert part["image_url"]["url"].startswith("data:image/webp;base64,")


def test_arguments_are_json_whatever_a_model_made_of_them() -> None:
    deep: JsonValue = []
    for _ in range(500):
        deep = [deep]
    call = ToolUseBlock("a", "now", {"big": float("inf"), "none": float("nan"), "deep": deep})
    request = ask(Q, *step(call, TextBlock("no")))
    made = anthropic_body.render(request, MODEL)["messages"][1]["content"][0]["input"]
    assert (made["big"], made["none"]) == ("inf", "nan")
    assert "nested too deeply" in json.dumps(made, allow_nan=False)
    (rendered,) = chat(request)[1]["tool_calls"]
    assert json.loads(rendered["function"]["arguments"], parse_constant=pytest.fail) == made


def thought(model: str, text: str) -> ThinkingBlock:
    return ThinkingBlock(text, model, signature=f"seal of {text}")


def test_after_a_switch_in_mid_run_each_model_gets_its_own_thinking_only() -> None:
    def message(model: str, id_: str) -> Message:
        return Message("assistant", (thought(model, id_), ToolUseBlock(id_, "now", {})))

    answers = [Message("user", (ToolResultBlock(id_, (TextBlock("ok"),)),)) for id_ in "ab"]
    request = ask(Q, message(MODEL, "a"), answers[0], message("p/other", "b"), answers[1])
    for model, own in ((MODEL, "a"), ("p/other", "b"), ("p/third", None)):
        body = anthropic_body.render(request, model)
        assert [
            b["thinking"] for m in body["messages"] for b in m["content"] if "thinking" in b
        ] == ([own] if own else [])
        rows = openai_body.render(request, model, Dialect())["messages"]
        assert [r["reasoning_content"] for r in rows if "reasoning_content" in r] == (
            [own] if own else []
        )


def test_reasoning_goes_back_where_it_is_wanted_and_nowhere_else() -> None:
    call = ToolUseBlock("a", "now", {})
    history = (
        Q,
        assistant_text("before"),
        Q,
        Message("assistant", (ThinkingBlock("hm", MODEL), call)),
        Message("user", (ToolResultBlock("a", (TextBlock("12:00"),)),)),
    )

    def reasoning(wanted: str, *, tools: bool = True) -> list[str | None]:
        rows = chat(ask(*history, tools=tools), reasoning=wanted)
        return [row.get("reasoning_content") for row in rows if row["role"] == "assistant"]

    assert reasoning("own") == [None, "hm"]
    assert reasoning("none") == [None, None]
    assert reasoning("required") == [" ", "hm"], "DeepSeek: each message, and never an empty text"
    assert reasoning("required", tools=False) == [None, None]
