"""The token estimate: what it promises, and how far off it may be."""

from __future__ import annotations

import re
import struct
from collections import Counter
from dataclasses import replace

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
from agent.estimate_features import (
    ASCII_NAMES,
    OTHER_NAMES,
    SCRIPTS,
    ascii_features,
    other_features,
)
from agent.estimate_images import HIGH, STANDARD, image_size, image_tokens
from agent.estimate_weights import CHARACTERS, LOWEST, RUNS_AND_SIGNS, SCRIPTS_AND_LETTERS, STEP
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
from bench.estimate import TOKENS, Corpus, Text, by_kind, chats, errors, size, too_low

Conversations = list[list[tuple[Text, ...]]]
TEXT = st.text(st.characters(), max_size=300)
ESTIMATORS = [Estimator(family) for family in Family]
TOOL = ToolSpec("find", "Finds things.", {"type": "object", "properties": {}})


def request(*messages: Message, tools: tuple[ToolSpec, ...] = (), system: str = "") -> ModelRequest:
    return ModelRequest("m", system, messages, tools, 1000)


def others(text: str) -> Counter[str]:
    """The counts beyond ASCII, by name."""
    counts: Counter[str] = Counter()
    for position, count in other_features(text.encode("utf-8", "replace")):
        counts[OTHER_NAMES[position]] += count
    return counts


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus()


@pytest.fixture(scope="module")
def conversations(corpus: Corpus) -> Conversations:
    return chats(corpus)


@pytest.mark.parametrize("family", [family for family in Family if family is not Family.UNKNOWN])
def test_the_goals_are_met_on_texts_that_the_weights_were_not_fitted_to(
    family: Family, conversations: Conversations
) -> None:
    found = errors(family, conversations)
    assert size(found.before) < 0.15
    assert size(found.after) < 0.05
    assert too_low(found.before) <= 0.01
    assert too_low(found.in_life) <= 0.01
    # one model serves chats in many languages, and there is one correction for each model
    shared = errors(family, conversations, shared=True)
    assert size(shared.after) < 0.05
    assert too_low(shared.in_life) <= 0.01


def test_what_is_measured_is_at_least_ten_languages_and_all_kinds_of_content(
    corpus: Corpus,
) -> None:
    kinds = {text.kind for text in corpus.texts}
    assert len(corpus.chat_kinds) >= 30
    assert {"json", "base64", "log", "ids", "numbers", "code:python", "chat:emoji"} <= kinds
    assert TOKENS.stat().st_size < 1_000_000


@pytest.mark.parametrize("family", [family for family in Family if family is not Family.UNKNOWN])
def test_no_language_is_far_too_low_by_itself(family: Family, corpus: Corpus) -> None:
    estimator = Estimator(family)
    for kind in corpus.chat_kinds:
        texts = corpus.of(kind)
        estimated = sum(estimator.text(text.text) for text in texts)
        assert estimated > 0.88 * sum(text.tokens[family] for text in texts), kind


def test_the_common_rule_is_beaten_for_every_kind_of_text(corpus: Corpus) -> None:
    for kind, (ours, rule) in by_kind(corpus).items():
        assert ours < 0.6 * rule or ours < 0.2, kind


def test_an_unknown_model_counts_as_the_costliest_but_claude(corpus: Corpus) -> None:
    cautious = Estimator(Family.UNKNOWN)
    others = [family for family in corpus.families if not family.startswith("claude")]
    low = [
        cautious.text(text.text) < 0.85 * max(text.tokens[family] for family in others)
        for text in corpus.texts
        if len(text.text) > 200
    ]
    assert sum(low) <= 0.02 * len(low)


def test_each_family_has_a_weight_for_each_character_and_count() -> None:
    for weights, names in ((RUNS_AND_SIGNS, ASCII_NAMES), (SCRIPTS_AND_LETTERS, OTHER_NAMES)):
        assert {family.value for family in Family} == weights.keys()
        assert {len(values) for values in weights.values()} == {len(names)}
    assert {family.value for family in Family} == CHARACTERS.keys()
    for values in CHARACTERS.values():
        assert len(values) == 128
        assert {(value - LOWEST) % STEP for value in values} == {0}
        assert all(0 <= (value - LOWEST) // STEP <= 255 for value in values)
    assert LOWEST % STEP == 0  # so that a weight of nothing is a whole step


@given(TEXT)
def test_any_text_is_estimated(text: str) -> None:
    for estimator in ESTIMATORS:
        assert 0 <= estimator.text(text) <= 8 * len(text) + 1


@given(TEXT)
def test_every_character_beyond_ascii_is_counted_in_one_script(text: str) -> None:
    counts = others(text)
    beyond = sum(character > "\x7f" for character in text if not "\ud800" <= character <= "\udfff")
    assert sum(counts[script] for script in SCRIPTS) == beyond


@given(st.text("ab Cd1.,\n é", max_size=200))
def test_counts_are_the_same_by_a_plain_count(text: str) -> None:
    counts = dict(zip(ASCII_NAMES, ascii_features(text.encode()), strict=True))
    pieces = re.findall("[a-zA-Z]+|[0-9]+|[.,]+|[^a-zA-Z0-9.,]+", text)
    assert counts["words"] == sum(piece[0] in "abCd" for piece in pieces)
    assert counts["numbers"] == sum(piece[0] == "1" for piece in pieces)
    assert counts["marks"] == sum(piece[0] in ".," for piece in pieces)
    assert counts["indents"] == sum(max(0, len(run) - 3) for run in re.findall(" +", text))
    assert counts["long numbers"] == sum(max(0, len(run) - 3) for run in re.findall("1+", text))
    assert counts["joints"] == len(re.findall("(?=[a-z][A-Z])", text))


def test_a_long_text_is_counted_in_blocks() -> None:
    long, short = "some words and 12 numbers\n" * 1_000, "some words and 12 numbers\n" * 10
    for estimator in ESTIMATORS:
        assert estimator.text(long) == pytest.approx(100 * estimator.text(short), rel=0.05)
    assert others("да " * 9_000)["cyrillic words"] == pytest.approx(9_000, abs=2)


@pytest.mark.parametrize("filler", ["word ", "hello world ", "the thing is the thing ", "x 1 "])
def test_filler_text_counts_at_least_a_token_for_each_word(filler: str) -> None:
    for estimator in ESTIMATORS:
        assert estimator.text(filler * 100) >= 100 * filler.count(" ")


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


def test_a_text_is_counted_once_whatever_the_ratio_and_forgotten_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[bytes] = []

    def count(data: bytes) -> tuple[int, ...]:
        counted.append(data)
        return ascii_features(data)

    monkeypatch.setattr("agent.estimate.ascii_features", count)
    monkeypatch.setattr("agent.estimate.REMEMBERED", 2)
    estimator = Estimator(Family.O200K)
    first = estimator.message(user_text("one"))
    assert estimator.message(user_text("one")) == first
    assert replace(estimator, ratio=2.0).message(user_text("one")) == 2 * first
    assert counted == [b"one"]
    assert [estimator.text(text) for text in ("two", "six", "one")][2] >= 1
    assert counted == [b"one", b"two", b"six", b"one"]


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


@pytest.mark.parametrize(
    ("size", "standard", "high"),  # as Anthropic's page on vision states them
    [
        ((1920, 1080), 1560, 2691),
        ((3840, 2160), 1568, 4784),
        ((200, 200), 64, 64),
        ((1, 20_000), 56, 92),
        ((0, 0), 1, 1),
    ],
)
def test_an_images_tokens_follow_its_size(size: tuple[int, int], standard: int, high: int) -> None:
    assert image_tokens(png(*size), STANDARD) == pytest.approx(standard, abs=10)
    assert image_tokens(png(*size), HIGH) == high
    assert image_tokens(b"?", HIGH) == HIGH.most


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
        correction = correction.observed(50_000, 45_000)
    assert correction.ratio == pytest.approx(0.9, abs=0.01)


def test_a_small_request_lowers_a_correction_little_and_raises_it_at_once() -> None:
    # 400 tokens of tool prompt that the provider does not count say nothing of a long conversation
    assert Correction().observed(900, 500).ratio > 0.75
    assert Correction().observed(90_000, 50_000).ratio < 0.57
    assert Correction().observed(500, 900).ratio == pytest.approx(1.8)


@pytest.mark.parametrize("report", [(0, 0), (20, 60), (1000, 0), (1000, 40), (1000, 9000)])
def test_tiny_and_absurd_reports_teach_nothing(report: tuple[int, int]) -> None:
    assert Correction(1.2, 4).observed(*report) == Correction(1.2, 4)
