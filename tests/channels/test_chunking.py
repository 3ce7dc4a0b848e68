"""Laws of cutting: nothing lost, nothing too long, no character torn, no formatting lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.chunking import Part, Span, split, units

FAMILY = "👨\u200d👩\u200d👧\u200d👦"
SCOTLAND = "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
SEQUENCES = [FAMILY, SCOTLAND, "🇹🇷", "👍🏽", "1\ufe0f\u20e3", "e\u0301", "❤\ufe0f", "\r\n"]

texts = st.lists(
    st.one_of(st.text(max_size=12), st.sampled_from([*SEQUENCES, "\n\n", "\n", " ", "word "])),
    max_size=60,
).map("".join)


def covered(text: str, span: Span) -> str:
    raw = text.encode("utf-16-le")
    return raw[span.offset * 2 : span.end * 2].decode("utf-16-le")


@st.composite
def spanned(draw: st.DrawFn) -> tuple[str, list[Span]]:
    text = draw(texts)
    borders = [0]
    for character in text:
        borders.append(borders[-1] + units(character))
    spans: list[Span] = []
    for _ in range(draw(st.integers(0, 12)) if text else 0):
        first = draw(st.integers(0, len(text) - 1))
        last = draw(st.integers(first + 1, len(text)))
        kind = draw(st.sampled_from(["bold", "pre", "text_link"]))
        spans.append(Span(kind, borders[first], borders[last] - borders[first], language="py"))
    return text, spans


@given(spanned(), st.integers(2, 60), st.integers(1, 8))
def test_parts_joined_are_the_source_and_none_is_too_long(
    source: tuple[str, list[Span]], limit: int, most: int
) -> None:
    text, spans = source
    parts = split(text, spans, limit_units=limit, max_spans=most)
    assert "".join(part.text for part in parts) == text
    for part in parts:
        assert 0 < units(part.text) <= limit
        assert len(part.spans) <= most
        for span in part.spans:
            assert span.length > 0
            assert covered(part.text, span)  # raises inside a surrogate pair


@given(spanned(), st.integers(2, 60))
def test_a_span_that_is_cut_goes_on_in_the_next_part(
    source: tuple[str, list[Span]], limit: int
) -> None:
    text, spans = source
    parts = split(text, spans, limit_units=limit, max_spans=100)
    pieces: list[tuple[str, int, int]] = []
    before = 0
    for part in parts:
        for span in part.spans:
            assert span.language == "py"
            pieces.append((span.type, span.offset + before, span.end + before))
        before += units(part.text)
    for kind in {span.type for span in spans}:
        for unit in range(units(text)):
            expected = sum(s.type == kind and s.offset <= unit < s.end for s in spans)
            assert sum(k == kind and a <= unit < b for k, a, b in pieces) == expected


def split_text(text: str, limit: int) -> list[str]:
    return [part.text for part in split(text, [], limit_units=limit)]


@given(texts, st.integers(30, 60))
def test_plain_parts_joined_are_the_source(text: str, limit: int) -> None:
    parts = split_text(text, limit)
    assert "".join(parts) == text
    assert all(0 < units(part) <= limit for part in parts)


@given(st.lists(st.sampled_from(SEQUENCES), min_size=1, max_size=40), st.integers(30, 60))
def test_no_sequence_is_torn(sequences: list[str], limit: int) -> None:
    text = "".join(sequences)
    borders = {0}
    for sequence in sequences:
        borders.add(max(borders) + len(sequence))
    position = 0
    for part in split(text, [], limit_units=limit):
        position += len(part.text)
        assert position in borders


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_a_sequence_at_the_border_goes_to_the_next_part(sequence: str) -> None:
    text = "a" * 4095 + sequence + "b"
    assert split(text, [])[0].text == "a" * 4095


def test_flags_are_cut_in_pairs_also_after_a_cut() -> None:
    parts = split("🇹🇷" * 3000, [], limit_units=4095)
    assert all(len(part.text) % 2 == 0 for part in parts)


def test_units_are_counted_not_characters() -> None:
    assert [units(part.text) for part in split("😀" * 5000, [])] == [4096, 4096, 1808]
    assert [part.text[-1] for part in split("a" * 4095 + "😀b", [])] == ["a", "b"]


def test_a_paragraph_is_preferred_to_a_line_and_a_line_to_a_word() -> None:
    assert split_text("aaaa aaa\naaa\n\nbb bb\nbb", 20) == ["aaaa aaa\naaa\n\n", "bb bb\nbb"]
    assert split_text("aaaa aaa\nbbb bbb bbbb", 16) == ["aaaa aaa\n", "bbb bbb bbbb"]
    assert split_text("aaaa aaa bbbbbb", 12) == ["aaaa aaa ", "bbbbbb"]


def test_a_break_far_from_the_end_does_not_make_a_tiny_part() -> None:
    assert split_text("a\n\n" + "b" * 100, 50)[0] == "a\n\n" + "b" * 47


def test_a_code_block_goes_on_with_its_language() -> None:
    code = "print(1)\n" * 1000
    parts = split("x " + code, [Span("pre", 2, len(code), language="python")])
    assert len(parts) == 3
    assert [part.spans[0].language for part in parts] == ["python"] * 3
    assert all(part.text.endswith("\n") for part in parts)


def test_a_part_ends_before_it_has_too_many_spans() -> None:
    parts = split("a " * 250, [Span("bold", 2 * i, 1) for i in range(250)])
    assert [len(part.spans) for part in parts] == [100, 100, 50]


def test_more_spans_on_one_character_than_allowed_lose_the_innermost() -> None:
    spans = [Span("bold", 0, 10 - i) for i in range(5)]
    parts = split("a" * 10, spans, max_spans=2)
    assert "".join(part.text for part in parts) == "a" * 10
    assert max(len(part.spans) for part in parts) == 2


def test_a_character_that_is_too_long_for_a_part_is_cut() -> None:
    assert "".join(split_text("e" + "\u0301" * 100, 10)) == "e" + "\u0301" * 100


def test_an_empty_text_gives_no_part() -> None:
    assert split("", []) == []
    assert split_text("", 10) == []
    assert split("a", []) == [Part("a")]
