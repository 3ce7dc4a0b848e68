"""A reply as Telegram's messages, and as what another process reads of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels.base import Button, OutboundDocument, OutboundReply
from channels.chunking import Part, Span, units
from channels.telegram.compose import MAX_UNITS, Item, compose, dump, load
from channels.telegram.render import render
from channels.text import whole
from tests.channels.numbering import unnumbered
from tests.channels.telegram.test_render import assert_taken, markdown, visible

anything = st.text(st.sampled_from('ab \n*_`[]()😀é日\u200b\ud83d"\\'), max_size=30)
buttons = st.lists(st.builds(Button, anything, anything, anything), max_size=3).map(tuple)
document = st.builds(OutboundDocument, anything, anything)
documents = st.lists(document, max_size=2).map(tuple)
spans = st.builds(
    Span,
    st.sampled_from(["bold", "pre", "text_link"]),
    st.integers(0, 90),
    st.integers(1, 90),
    st.none() | anything,
    st.none() | anything,
)
parts = st.builds(Part, anything, st.lists(spans, max_size=3).map(tuple))
items = st.builds(Item, parts | document, buttons, st.booleans())


def whole_item(item: Item) -> Item:
    content = item.content
    if isinstance(content, OutboundDocument):
        content = OutboundDocument(whole(content.name), whole(content.text))
    else:
        own = (
            replace(s, url=s.url and whole(s.url), language=s.language and whole(s.language))
            for s in content.spans
        )
        content = Part(whole(content.text), tuple(own))
    named = (Button(whole(b.label), whole(b.action), whole(b.value)) for b in item.buttons)
    return Item(content, tuple(named), item.silent)


@given(items)
def test_an_item_is_read_as_it_was_written(item: Item) -> None:
    body = dump(item)
    assert load(body) == whole_item(item)
    assert json.loads(json.dumps(body)) == body
    assert body.encode().decode() == body


@settings(deadline=None)
@given(markdown, st.integers(1, 6), buttons, documents, st.booleans())
def test_a_reply_is_composed_the_same_each_time(
    source: str,
    times: int,
    keys: tuple[Button, ...],
    files: tuple[OutboundDocument, ...],
    silent: bool,
) -> None:
    reply = OutboundReply(source * times, files, keys, silent)
    bodies = [dump(item) for item in compose(reply)]
    assert [dump(item) for item in compose(reply)] == bodies
    assert [dump(load(body)) for body in bodies] == bodies


@settings(deadline=None)
@given(
    markdown, st.sampled_from([1, 30, 150, 600]), st.sampled_from(["", "x", " ", "\n\n", "日😀"])
)
def test_no_visible_character_is_lost_and_each_part_is_taken(
    source: str, times: int, between: str
) -> None:
    answer = (source + between) * times
    contents = [item.content for item in compose(OutboundReply(answer))]
    texts = [content for content in contents if isinstance(content, Part)]
    assert texts == contents
    assert (
        visible("".join(unnumbered([one.text for one in texts]))) == visible(render(answer).text)
        or not texts
    )
    for one in texts:
        assert units(one.text) <= MAX_UNITS
        assert len(one.spans) <= 100
        for kinds in (("code", "pre"), ("blockquote",), ("bold", "italic", "text_link")):
            chosen = tuple(span for span in one.spans if span.type in kinds)
            assert_taken(Part(one.text, chosen))


def test_the_number_stands_one_blank_line_below_and_outside_of_every_span() -> None:
    answer = "**" + "a" * 4_000 + "**\n\n\n```\n" + "b\n" * 2_000 + "```"
    first, *_, last = (item.content for item in compose(OutboundReply(answer)))
    assert isinstance(first, Part)
    assert isinstance(last, Part)
    assert first.text == "a" * 4_000 + "\n\n1/2"
    assert first.spans == (Span("bold", 0, 4_000),)
    assert "b\n\n" in last.text
    assert max(span.end for span in last.spans) <= len(last.text.rstrip("0123456789/").rstrip())


@pytest.mark.parametrize("letter", ["a", "日", "😀"])
def test_an_answer_that_fits_has_no_number_and_one_that_hardly_does_not_has_two(
    letter: str,
) -> None:
    most = MAX_UNITS // units(letter)
    (one,) = compose(OutboundReply(letter * most))
    assert one.content == Part(letter * most)
    assert len(compose(OutboundReply(letter * (most + 1)))) == 2


def test_the_last_of_all_has_the_buttons_and_each_is_as_loud_as_the_reply() -> None:
    keys = (Button("Go", "go", "1"),)
    made = compose(OutboundReply("a" * 5_000, (OutboundDocument("a.txt", "x"),), keys, silent=True))
    assert [one.buttons for one in made] == [(), (), keys]
    assert all(one.silent for one in made)


def test_a_note_stands_above_or_has_no_room() -> None:
    item = Item(Part("😀 bold", (Span("bold", 3, 4),)), (Button("Go", "go", "1"),))
    noted = item.noted("Again 😀:")
    assert noted is not None
    assert noted.content == Part("Again 😀:\n\n😀 bold", (Span("bold", 14, 4),))
    assert noted.buttons == item.buttons
    assert Item(Part("a" * 4_090)).noted("Again") is None
    assert Item(OutboundDocument("a.txt", "x")).noted("Again") is None
