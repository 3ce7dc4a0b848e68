"""Whatever a conversation holds, both APIs take the request: laws over any history, judged by the
rules of the strict servers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.history import repair
from agent.messages import (
    Block,
    ImageBlock,
    JsonObject,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    user_text,
)
from agent.provider import ModelRequest, ModelTraits
from agent.providers import anthropic_body, openai_body
from agent.providers.openai_body import Dialect
from agent.providers.wire import WireIds, clean
from agent.tools import ToolSpec
from tests.servers import anthropic_rules, openai_rules

NOW = ToolSpec("now", "The time.", {"type": "object", "properties": {}})
PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
MODEL = "p/model"

words = st.text(max_size=8) | st.sampled_from(["", " ", "\n", "\ud83d", "a\ude00b", "\x00", "你好"])
ids = st.sampled_from(
    ["a", "b", "c", "functions.exec:0", "x" * 90, "call_x|fc_y", "", "é", "\ud800"]
)
names = st.sampled_from(["now", "functions.exec", "a b", "", "n" * 300])
values = st.none() | st.booleans() | st.integers(-5, 5) | words
arguments: st.SearchStrategy[JsonObject] = st.dictionaries(words, values, max_size=2)
images = st.just(ImageBlock("image/png", PNG))
parts = words.map(TextBlock) | images
results = st.builds(
    ToolResultBlock, ids, st.lists(parts, max_size=3).map(tuple), is_error=st.booleans()
)
thoughts = st.builds(
    ThinkingBlock,
    words,
    st.sampled_from([MODEL, "p/other"]),
    signature=st.sampled_from([None, "seal"]),
    redacted=st.sampled_from([None, "opaque"]),
)
calls = st.builds(ToolUseBlock, ids, names, arguments)
blocks: st.SearchStrategy[Block] = parts | results | thoughts | calls
messages = st.builds(
    Message, st.sampled_from(["user", "assistant"]), st.lists(blocks, max_size=4).map(tuple)
)
# What `repair` makes of any list with a question in it.
histories = st.lists(messages, max_size=6).map(
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
)


def on_the_wire(body: dict[str, Any]) -> dict[str, Any]:
    """As the server reads it; raises when it is not valid JSON in UTF-8."""
    read: dict[str, Any] = json.loads(json.dumps(body, ensure_ascii=False).encode())
    return read


@given(requests)
@settings(max_examples=400, deadline=None)
def test_anthropic_takes_any_repaired_history(request: ModelRequest) -> None:
    body = on_the_wire(anthropic_body.render(request, MODEL, thinking=False))
    assert not anthropic_body.has_thinking(body)
    body["stream"] = True
    anthropic_rules.check_request(body, "2023-06-01", 1, anthropic_rules.Rules())


@given(requests)
@settings(max_examples=200, deadline=None)
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
@settings(max_examples=150, deadline=None)
def test_openai_and_its_like_take_any_repaired_history(server: str, request: ModelRequest) -> None:
    rules, dialect = DIALECTS[server]
    body = on_the_wire(openai_body.render(request, MODEL, dialect))
    body["stream"] = True
    openai_rules.check_request(body, rules)


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
            assert '"image' not in text.replace('"image/png"', "")
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
