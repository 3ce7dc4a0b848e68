"""Laws of rendering: no visible character of an answer is lost, no span breaks Telegram's rules."""

from __future__ import annotations

from collections.abc import Iterator

import pyromark
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from telegramify_markdown.converter import STANDARD_OPTIONS

from channels.chunking import Part, Span, split, units
from channels.telegram.escape import literal
from channels.telegram.render import render
from channels.text import is_visible
from tests.servers.telegram_text import checked

MARKS = [
    *"<>$|~*_`#[]()!\\-+.:&;/\"'=^ \n\t\r",
    *[
        "\n\n",
        "```",
        "```py\n",
        "    ",
        "> ",
        "- ",
        "1. ",
        "- [ ] ",
        "||",
        "|-|-|\n",
        "|a|b|\n",
        "$$",
    ],
    *["<b>", "</b>", "<div>\n", "<!-- ", " -->", "<a href='x'>", "<script>", "[a]: /b\n", "[a]"],
    *[
        "[x](http://a.b)",
        "[x](/y)",
        "![i](u)",
        "<http://a.b/||c||>",
        "**",
        "~~",
        "&lt;",
        "&amp",
        "😀",
    ],
    *["word", "a", "b1", "C:\\x", "tg://user?id=1", "\u0000", "\ud83d", "é", "中文", "\u200b"],
]
markdown = st.lists(st.sampled_from(MARKS), max_size=40).map("".join)
plain = st.lists(st.sampled_from([*"<>$|ab1 .,!?/=", "a<b", "c>d", "||"]), max_size=40)


def visible(text: str) -> str:
    return "".join(text.split())


def is_part_of(wanted: str, text: str) -> bool:
    """Whether the characters of `wanted` all occur in `text`, in this order."""
    characters = iter(text)
    return all(character in characters for character in wanted)


def contents(source: str, options: pyromark.Options) -> Iterator[str]:
    """What a Markdown document says, raw HTML and mathematics taken as text."""
    for event, _ in pyromark.events_with_range(source, options=options):
        match event:
            case {"Text": str(text)} | {"Code": str(text)}:
                yield text
            case {"Html": str(text)} | {"InlineHtml": str(text)}:
                raise AssertionError(f"HTML is left: {text!r}")
            case {"InlineMath": str(text)} | {"DisplayMath": str(text)}:
                raise AssertionError(f"mathematics is left: {text!r}")
            case _:
                pass


def clean(source: str) -> str:
    """As text can be sent: line ends of one kind, nothing invisible, no halves of characters."""
    text = source.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@given(markdown)
@example("<div>\n" * 30)
@example("|a|b|\n|-|-|\n|1|2|x|y|\n")
@example("[a]: /b\n[a]: /c\n\n[a]")
def test_everything_that_the_markdown_says_is_in_the_message(source: str) -> None:
    assume(is_visible(clean(source)))
    said = "".join(contents(literal(clean(source)), STANDARD_OPTIONS))
    assert is_part_of(visible(said), visible(render(source).text))


@given(markdown)
def test_escaping_adds_backslashes_and_spaces_only(source: str) -> None:
    text = clean(source)
    assert is_part_of(text, literal(text))
    added = len(literal(text)) - len(text)
    assert literal(text).count("\\") + literal(text).count(" ") == (
        text.count("\\") + text.count(" ") + added
    )


@given(plain.map("".join))
def test_comparisons_prices_and_tags_keep_every_character(line: str) -> None:
    assert visible(render(f"x {line}").text) == visible(f"x {line}")


@given(markdown | st.text(st.sampled_from("\u200b\u2063\ufeff\u2800\x00\x07\x85 \n*_`[]()")))
def test_only_white_space_gives_a_message_that_nobody_sees(source: str) -> None:
    assert is_visible(render(source).text) == bool(source.strip())


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("\u200b", "U+200B"),
        (" \u2063\n\u2063 ", "U+2063 U+2063"),
        ("\x00", "U+0000"),
        ("**\u200b**", "**\u200b**"),
        ("[\u2063](/a)", "[\u2063](/a)"),
        ("\ufe0f" * 21, "U+FE0F " * 20 + "…"),
        ("\u200bseen", "\u200bseen"),
    ],
)
def test_what_nobody_would_see_is_spelled_out(source: str, shown: str) -> None:
    assert render(source).text == shown


def test_quotes_may_hold_code_but_nothing_else_is_nested_against_the_rules() -> None:
    assert kinds("> a `b`\n") == [("blockquote", "a b"), ("code", "b")]
    assert kinds("**a `b` c**") == [("bold", "a "), ("code", "b"), ("bold", " c")]
    assert kinds("[a `b`](https://c.d)") == [("text_link", "a b")]
    assert kinds("> a\n> > b\n") == [("blockquote", "a\nb")]
    assert kinds("# a **b**") == [("bold", "a b"), ("underline", "a b")]


@given(markdown, st.integers(2, 30))
def test_every_part_is_taken_by_telegram(source: str, limit: int) -> None:
    rendered = render(source)
    for part in split(rendered.text, rendered.spans, limit_units=limit):
        spans = [span for span in part.spans if span.type not in ("blockquote", "code", "pre")]
        assert_taken(Part(part.text, tuple(spans)))
        flat = [span for span in part.spans if span.type in ("code", "pre")]
        assert_taken(Part(part.text, tuple(flat)))
        quotes = [span for span in part.spans if span.type == "blockquote"]
        assert_taken(Part(part.text, tuple(quotes)))


def assert_taken(part: Part) -> None:
    """Raises what the local Bot API server says against it."""
    checked(part.text, [entity(span) for span in part.spans], too_long="too long", empty=None)


def entity(span: Span) -> dict[str, object]:
    fields = {"type": span.type, "offset": span.offset, "length": span.length}
    return fields | ({"url": span.url} if span.url else {})


def kinds(source: str) -> list[tuple[str, str]]:
    part = render(source)
    raw = part.text.encode("utf-16-le")
    return [(s.type, raw[2 * s.offset : 2 * s.end].decode("utf-16-le")) for s in part.spans]


@pytest.mark.parametrize(
    "source",
    [
        "a_b*c",
        "<script>",
        "a<b and c>d",
        "**bold",
        "1 < 2 && 3",
        "if a || b || c",
        "between $5 and $6",
        "<div>\nhello\n</div>",
        "List<String> x",
        "x <!-- a remark -->",
        "about ~5 or ~6",
        "[1]: https://a.b",
        "[1]: https://a.b\n[1]: https://c.d",
        "!" * 4096,
    ],
)
def test_what_is_no_markdown_is_shown_as_written(source: str) -> None:
    assert render(source) == Part(source)


def test_code_keeps_its_language_and_its_signs() -> None:
    part = render("```py\nif a<b or $x || y:\n  print(1)")
    assert part.text == "if a<b or $x || y:\n  print(1)"
    assert part.spans == (Span("pre", 0, units(part.text), language="py"),)
    assert kinds("`a<b> $1 || 2`") == [("code", "a<b> $1 || 2")]


def test_a_link_that_telegram_refuses_is_written_out() -> None:
    part = render("**see [the page](http://localhost:1/x)** and [b](https://c.d/$e)")
    assert part.text == "see the page (http://localhost:1/x) and b"
    assert part.spans == (
        Span("bold", 0, len("see the page")),
        Span("text_link", len("see the page (http://localhost:1/x) and "), 1, "https://c.d/$e"),
    )


def test_a_link_definition_that_is_used_is_no_text() -> None:
    part = render("see [b][1]\n\n[1]: https://c.d")
    assert part.text == "see b"
    assert part.spans[0].url == "https://c.d"


def test_cells_without_a_column_are_kept() -> None:
    part = render("|a|b|\n|-|-|\n|1|2|3|\n|x || y|z|\n")
    assert "2|3" in part.text
    assert "y|z" in visible(part.text)


def test_halves_of_characters_are_joined_or_replaced() -> None:
    assert render("\ud83d\ude00 \ud83d").text == "😀 \ufffd"


def test_an_answer_of_an_empty_link_is_shown_as_written() -> None:
    assert render("[](https://a.b)").text == "[](https://a.b)"
