"""Markdown to Slack messages."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slack_sdk.models.blocks import Block

from channels.base import Button, OutboundDocument, StopControl
from channels.chunking import units
from channels.slack.markup import readable
from channels.slack.render import (
    NOTHING_YET,
    POST_UNITS,
    TEXT_BYTES,
    UPDATE_UNITS,
    Content,
    content,
    dump,
    load,
    pieces,
    plain_text,
    preview,
)
from channels.text import whole
from tests.channels.numbering import unnumbered

STOP = StopControl("Stop", "r1")
LETTERS = "a b\n日😀é`~<>&!@#*_-|[]()\u2060\ud83d"


def shown(contents: list[Content]) -> list[str]:
    return [
        block["text"] for one in contents for block in one.blocks if block["type"] == "markdown"
    ]


def check(one: Content, limit: int) -> None:
    """What Slack and its SDK take."""
    for block in one.blocks:
        parsed = Block.parse(block)
        assert parsed is not None
        parsed.validate_json()
    assert sum(units(text) for text in shown([one])) <= limit
    assert one.text.strip()
    assert len(one.text.encode()) <= 4_000


def visible(text: str) -> str:
    return re.sub(r"[\s\u2060]", "", text)


@pytest.mark.parametrize("size", [1, 3_001, 4_001, 11_900, 12_001, 13_300, 100_000])
@pytest.mark.parametrize("first", [POST_UNITS, UPDATE_UNITS])
@pytest.mark.parametrize("letter", ["a", "word ", "line\n", "para\n\n", "日", "👩‍👩‍👧‍👦", "&"])
def test_an_answer_of_any_length_fits(size: int, first: int, letter: str) -> None:
    markdown = (letter * size)[:size]
    parts = pieces(markdown, first_units=first)
    check(parts[0], first)
    for part in parts[1:]:
        check(part, POST_UNITS)
    assert visible("".join(unnumbered(shown(parts)))) == visible(markdown)
    assert len(parts) <= 2 + 2 * units(markdown) // first


def test_what_fits_is_not_cut() -> None:
    assert len(pieces("a" * POST_UNITS)) == 1
    assert len(pieces("```\n" + "a" * (UPDATE_UNITS - 8) + "\n```", first_units=UPDATE_UNITS)) == 1


@given(st.text(alphabet=LETTERS, max_size=200), st.integers(150, 400))
@settings(deadline=None)
def test_no_visible_character_is_lost(text: str, limit: int) -> None:
    parts = pieces(text * 9, first_units=limit, units_each=limit)
    for part in parts:
        check(part, limit)
    if "```" not in text and "~~~" not in text:  # else the signs around cut code come on top
        expected = (text * 9).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        assert visible("".join(unnumbered(shown(parts)))) == visible(expected)


@pytest.mark.parametrize("empty", ["", "\n", "  \n\t "])
def test_a_blank_answer_is_no_message(empty: str) -> None:
    assert pieces(empty) == []


def test_cut_code_is_closed_and_opened_again_with_its_language() -> None:
    code = "\n".join(f"print({n})" for n in range(2_000))
    answer = f"Look:\n\n```python\n{code}\n```\n\nThat is all."
    parts = unnumbered(shown(pieces(answer, first_units=3_900)))
    assert len(parts) > 2
    for part in parts[1:]:
        assert part.startswith("```python\n")
    for part in parts:
        assert part.count("```") == 2
    inner = "\n".join(re.sub(r"```(python)?|Look:|That is all\.", "", part) for part in parts)
    assert inner.split() == code.split()


def test_code_that_holds_another_fence_is_closed_by_its_own() -> None:
    inner = "\n".join(["```", "x"] * 100)
    parts = unnumbered(shown(pieces(f"````md\n{inner}\n````", first_units=300, units_each=300)))
    assert all(part.startswith("````md\n") and part.endswith("\n````") for part in parts)


@pytest.mark.parametrize(
    "call", ["<!channel>", "<!here|here>", "<@U123>", "<!subteam^S1>", "<#C1>"]
)
def test_an_answer_calls_nobody(call: str) -> None:
    (one,) = pieces(f"hey {call}")
    assert call not in shown([one])[0]
    assert call not in one.text
    assert call not in one.plain.text
    assert visible(shown([one])[0]) == visible(f"hey {call}")


def test_html_in_an_answer_stays_as_it_is() -> None:
    assert shown(pieces("`<!DOCTYPE html>` and <a@b.example>")) == [
        "`<!DOCTYPE html>` and <a@b.example>"
    ]


def test_the_text_beside_the_blocks_is_readable() -> None:
    markdown = (
        "# Title\n\nA **bold** [link](https://a.example) and `x<y`.\n\n- one\n- two\n\n```\nz\n```"
    )
    words = "Title\nA bold link (https://a.example) and x<y.\none\ntwo\nz"
    assert plain_text(markdown) == words
    (one,) = pieces(markdown)
    assert readable(one.text, {}) == words
    assert "&lt;" in one.text


def test_tables_and_html_keep_their_words_in_the_text() -> None:
    assert plain_text("| a | b |\n|---|---|\n| 1 | 2 |").split() == ["a", "b", "1", "2"]
    assert plain_text("<b>x</b>\n\n<div>\ny\n</div>\n").split() == [
        "<b>x</b>",
        "<div>",
        "y",
        "</div>",
    ]


def test_the_plain_form_is_the_markdown_itself() -> None:
    assert content("**a** & b").plain == Content("**a** &amp; b")


@given(st.text(alphabet=LETTERS, max_size=3_000), st.integers(1, 4))
@settings(deadline=None, max_examples=30)
def test_a_preview_of_anything_fits_and_has_its_button(text: str, times: int) -> None:
    one = preview(text * times).stoppable(STOP)
    check(one, UPDATE_UNITS)
    assert one.blocks[-1]["elements"][0]["value"] == "r1"


def test_a_preview_of_nothing_is_an_ellipsis() -> None:
    assert shown([preview(" \n").stoppable(STOP)]) == [NOTHING_YET]
    assert preview("x").stoppable(None) == preview("x")


def test_a_long_label_is_cut_to_what_a_button_takes() -> None:
    check(preview("x").stoppable(StopControl("s" * 100, "r1")), UPDATE_UNITS)


def test_the_text_of_many_bytes_is_cut() -> None:
    (one,) = pieces("日&" * 3_000)
    assert len(one.text.encode()) <= TEXT_BYTES
    assert one.text.endswith("…")


buttons = st.lists(
    st.builds(Button, st.text(alphabet=LETTERS, max_size=9), st.just("go"), st.just("v")),
    max_size=3,
)


@given(st.text(alphabet=LETTERS, max_size=60), st.integers(1, 400), buttons)
@settings(deadline=None)
def test_messages_are_read_as_they_were_written(text: str, times: int, keys: list[Button]) -> None:
    made = pieces(text * times, keys, first_units=UPDATE_UNITS)
    bodies = [dump(one) for one in made]
    assert [dump(one) for one in pieces(text * times, keys, first_units=UPDATE_UNITS)] == bodies
    assert json.loads(json.dumps(bodies)) == bodies
    loaded = [load(body) for body in bodies]
    assert [dump(one) for one in loaded] == bodies
    for one, was in zip(loaded, made, strict=True):
        assert isinstance(one, Content)
        assert (one.text, shown([one])) == (was.text, shown([was]))
        check(one, POST_UNITS)


@given(st.text(alphabet=LETTERS, max_size=30), st.text(alphabet=LETTERS, max_size=30))
def test_documents_are_read_as_they_were_written(name: str, text: str) -> None:
    body = dump(OutboundDocument(name, text))
    assert load(body) == OutboundDocument(whole(name), whole(text))
    assert body.encode().decode() == body


@given(st.text(alphabet=LETTERS, max_size=2_000), st.integers(1, 3))
@settings(deadline=None, max_examples=30)
def test_a_noted_message_fits_in_an_update_and_keeps_its_note_as_plain_text(
    text: str, times: int
) -> None:
    for one in pieces(text * times, first_units=UPDATE_UNITS)[:1]:
        noted = one.noted("你可能已经看到过这条消息。" * 3)
        check(noted, UPDATE_UNITS)
        assert noted.text.startswith("你可能")
        assert noted.plain.text.startswith("你可能")
        assert shown([noted]) == shown([one])
