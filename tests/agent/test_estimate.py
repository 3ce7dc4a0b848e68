"""The token estimate: what it promises, and how far off it may be."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.estimate import (
    LEAST_RATIO,
    MOST_RATIO,
    Correction,
    Estimator,
    Family,
    family_of,
)
from agent.estimate_features import NAMES, features
from agent.estimate_images import image_size
from agent.estimate_weights import WEIGHTS
from agent.messages import (
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    user_text,
)
from agent.provider import ModelRequest, ModelTraits
from agent.tools import ToolSpec

TEXT = st.text(st.characters(), max_size=300)
ESTIMATORS = [Estimator(family) for family in Family]
TOOL = ToolSpec("find", "Finds things.", {"type": "object", "properties": {}})


def request(*messages: Message, tools: tuple[ToolSpec, ...] = (), system: str = "") -> ModelRequest:
    return ModelRequest("m", system, messages, tools, 1000)


def test_each_family_has_a_weight_for_each_count() -> None:
    assert {family.value for family in Family} == WEIGHTS.keys()
    assert {len(weights) for weights in WEIGHTS.values()} == {len(NAMES)}


@given(TEXT)
def test_any_text_is_estimated(text: str) -> None:
    for estimator in ESTIMATORS:
        assert 0 <= estimator.text(text) <= 8 * len(text) + 1
    assert len(features(text)) == len(NAMES)


def test_a_lone_surrogate_is_estimated() -> None:
    assert all(estimator.text("\ud83d") >= 0 for estimator in ESTIMATORS)


@pytest.mark.parametrize(
    ("model", "kind", "family"),
    [
        ("claude-haiku-5-5", "anthropic", Family.CLAUDE_NEW),
        ("claude-opus-4-7", "anthropic", Family.CLAUDE_NEW),
        ("claude-opus-4-6", "anthropic", Family.CLAUDE_OLD),
        ("claude-opus-4@20250514", "anthropic", Family.CLAUDE_OLD),
        ("claude-sonnet-4-20250514", "anthropic", Family.CLAUDE_OLD),
        ("claude-3-5-sonnet-20241022", "anthropic", Family.CLAUDE_OLD),
        ("anthropic/claude-3.7-sonnet", "openai", Family.CLAUDE_OLD),
        ("us.anthropic.claude-sonnet-5-v1:0", "openai", Family.CLAUDE_NEW),
        ("claude-instant-1.2", "anthropic", Family.CLAUDE_OLD),
        ("my-proxy", "anthropic", Family.CLAUDE_NEW),
        ("gpt-4o-mini", "openai", Family.O200K),
        ("gpt-4.1", "openai", Family.O200K),
        ("gpt-6-luna", "openai", Family.O200K),
        ("o3-mini", "openai", Family.O200K),
        ("openai/gpt-oss-120b", "openai", Family.O200K),
        ("gpt-4-turbo", "openai", Family.CL100K),
        ("gpt-35-turbo", "openai", Family.CL100K),
        ("gpt-3.5-turbo", "openai", Family.CL100K),
        ("Qwen/Qwen3-32B", "openai", Family.QWEN),
        ("deepseek-chat", "openai", Family.DEEPSEEK),
        ("deepseek-r1-distill-llama-70b", "openai", Family.UNKNOWN),
        ("deepseek-r1-distill-qwen-32b", "openai", Family.QWEN),
        ("google/gemini-3-pro", "openai", Family.GEMINI),
        ("mistral-large", "openai", Family.UNKNOWN),
        ("", "openai", Family.UNKNOWN),
    ],
)
def test_a_models_family_is_known_by_its_id(model: str, kind: str, family: Family) -> None:
    assert family_of(model, kind) == family


def test_a_message_counts_all_its_blocks() -> None:
    estimator = Estimator(Family.O200K)
    blocks = (
        TextBlock("word " * 50),
        ThinkingBlock("thought " * 50, "p/m"),
        ImageBlock("image/png", b"?"),
        ToolUseBlock("1", "find", {"query": "word " * 50}),
        ToolResultBlock("1", (TextBlock("word " * 50), ImageBlock("image/png", b"?"))),
    )
    least = [50, 50, 85, 60, 135]
    for block, tokens in zip(blocks, least, strict=True):
        assert estimator.message(Message("user", (block,))) >= tokens
    parts = sum(estimator.message(Message("user", (block,))) for block in blocks)
    assert 0 <= parts - estimator.message(Message("user", blocks)) <= 5 * len(blocks)


def test_a_call_whose_arguments_are_no_json_counts_its_text() -> None:
    estimator = Estimator(Family.O200K)
    short = Message("assistant", (ToolUseBlock("1", "find", {}),))
    raw = Message("assistant", (ToolUseBlock("1", "find", {}, raw="{broken " * 100),))
    assert estimator.message(raw) > estimator.message(short) + 100


def test_a_request_is_what_is_fixed_and_its_messages() -> None:
    estimator = Estimator(Family.CLAUDE_NEW)
    messages = [user_text("Hello"), user_text("there")]
    whole = estimator.request(request(*messages, tools=(TOOL,), system="Be brief."))
    assert abs(whole - estimator.fixed("Be brief.", [TOOL]) - estimator.messages(messages)) <= 1
    bare = request(*messages, tools=(TOOL,))
    blind = ModelRequest("m", "", bare.messages, (TOOL,), 1000, ModelTraits(tools=False))
    assert estimator.request(blind) < estimator.request(bare)


def test_the_ratio_multiplies_everything() -> None:
    once, twice = Estimator(Family.QWEN), Estimator(Family.QWEN, 2.0)
    wanted = request(user_text("word " * 200), tools=(TOOL,), system="s")
    assert abs(twice.request(wanted) - 2 * once.request(wanted)) <= 1
    assert abs(twice.text("word " * 200) - 2 * once.text("word " * 200)) <= 1


def test_a_message_is_counted_once() -> None:
    estimator = Estimator(Family.O200K)
    message = user_text("word " * 200)
    first = estimator.message(message)
    assert [estimator.message(message) for _ in range(3)] == [first] * 3
    assert abs(estimator.messages([message] * 3) - 3 * first) <= 3


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height)


def jpeg(width: int, height: int) -> bytes:
    return b"\xff\xd8\xff\xe0\0\x04AB\xff\xc0\0\x11\x08" + struct.pack(">HH", height, width) + b"\3"


def webp(kind: bytes, rest: bytes) -> bytes:
    return (b"RIFF\0\0\0\0WEBP" + kind + bytes(4) + rest).ljust(40, b"\0")


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (png(640, 480), (640, 480)),
        (b"GIF89a" + struct.pack("<HH", 640, 480), (640, 480)),
        (jpeg(640, 480), (640, 480)),
        (webp(b"VP8X", bytes(4) + b"\x7f\2\0\xdf\1\0"), (640, 480)),
        (webp(b"VP8L", b"/" + struct.pack("<I", 639 | 479 << 14)), (640, 480)),
        (webp(b"VP8 ", b"abc\x9d\1*" + struct.pack("<HH", 640, 480)), (640, 480)),
        (webp(b"ELSE", b""), None),
        (b"\xff\xd8\xff", None),
        (b"text", None),
        (b"", None),
    ],
)
def test_an_images_size_is_read_from_its_first_bytes(
    data: bytes, size: tuple[int, int] | None
) -> None:
    assert image_size(data) == size


@given(st.binary(max_size=60))
def test_damaged_images_are_estimated(rest: bytes) -> None:
    for head in (b"", b"\xff\xd8", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFF\0\0\0\0WEBP"):
        image_size(head + rest)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=30))
def test_a_correction_stays_within_its_bounds(reports: list[tuple[int, int]]) -> None:
    correction = Correction()
    for estimated, reported in reports:
        correction = correction.observed(estimated, reported)
        assert LEAST_RATIO <= correction.ratio <= MOST_RATIO


def test_a_correction_follows_what_is_reported() -> None:
    correction = Correction()
    for _ in range(3):
        correction = correction.observed(1000, 1300)
    assert (correction.samples, correction.ratio) == (3, pytest.approx(1.3))
    for _ in range(12):
        correction = correction.observed(1000, 900)
    assert correction.ratio == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize("report", [(0, 0), (20, 60), (1000, 0), (1000, 40), (1000, 9000)])
def test_tiny_and_absurd_reports_teach_nothing(report: tuple[int, int]) -> None:
    assert Correction(1.2, 4).observed(*report) == Correction(1.2, 4)
