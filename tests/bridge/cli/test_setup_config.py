"""A change to a configuration is that change and nothing else, whatever the file looks like."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.cli.options import CommandFailed
from bridge.cli.setup_config import OneLine, edited, literal, new_text, reference
from bridge.yaml_source import parse

EXAMPLE = Path(__file__).parents[3] / "config.example.yaml"
SLACK = OneLine(bot_token=reference("SLACK_BOT_TOKEN"))


@pytest.mark.parametrize(
    ("before", "path", "value", "after"),
    [
        ("a:   1  # one\nb: 2\n", ("a",), "7", "a:   7  # one\nb: 2\n"),
        ("a: 'x'\nb: 2", ("b",), "7", "a: 'x'\nb: 7"),
        ("a: |\n  x\n\n# c\nb: 2\n", ("a",), "7", "a: 7\n\n# c\nb: 2\n"),
        ("a: x\n  y # c\nb: 2\n", ("a",), "7", "a: 7 # c\nb: 2\n"),
        ('{"a": 1, b: {c: 2}}', ("b", "c"), "7", '{"a": 1, b: {c: 7}}'),
    ],
)
def test_a_value_is_replaced_where_it_stands(
    before: str, path: tuple[str, ...], value: str, after: str
) -> None:
    assert edited(before, {path: value}) == after


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        ("a: 1", ("b",), "a: 1\nb: 7\n"),
        ("a: 1\r\n# c\r\n", ("b",), "a: 1\r\nb: 7\r\n# c\r\n"),
        ("a: 1\n...\n", ("b",), "a: 1\nb: 7\n...\n"),
        ("\ufeffa: 1\n", ("b",), "\ufeffa: 1\nb: 7\n"),
        ("a:\n    b: 1 # b\n    # of a\n# of c\nc: 2\n", ("a", "x"),
         "a:\n    b: 1 # b\n    x: 7\n    # of a\n# of c\nc: 2\n"),
        ("a:\n  b:\n    d: 1\n\n    #e: 2\n  #f: 3\n\n# of c\nc: 2\n", ("a", "x"),
         "a:\n  b:\n    d: 1\n\n    #e: 2\n  x: 7\n  #f: 3\n\n# of c\nc: 2\n"),
        ("a:\n  b:\n  - 1\n  - 2\nc: 2\n", ("a", "x"), "a:\n  b:\n  - 1\n  - 2\n  x: 7\nc: 2\n"),
        ("a:\n  b: |\n    1\n    # text\nc: 2\n", ("a", "x"),
         "a:\n  b: |\n    1\n    # text\n  x: 7\nc: 2\n"),
        ("a: {b: 1,} # c\n", ("a", "x"), "a: {b: 1, x: 7,} # c\n"),
        ("a: {b: 1 # c\n  }\n", ("a", "x"), "a: {b: 1, x: 7 # c\n  }\n"),
        ("a: { }\n", ("a", "x"), "a: {x: 7 }\n"),
        ("a: {b: [1, 2]}\n", ("a", "x", "y"), "a: {b: [1, 2], x: {y: 7}}\n"),
        ("a: 1\n", ("x", "y", "z"), "a: 1\nx:\n  y:\n    z: 7\n"),
    ],
)  # fmt: skip
def test_a_key_is_put_at_the_end_of_its_section(
    before: str, path: tuple[str, ...], after: str
) -> None:
    assert edited(before, {path: "7"}) == after


def test_the_reference_configuration_keeps_every_line() -> None:
    before = EXAMPLE.read_text()
    after = edited(
        before,
        {
            ("channels", "slack"): SLACK,
            ("installation", "cost_per_month_usd"): "7",
            ("models", "other"): {
                "provider": "anthropic",
                "id": literal("a${b"),
                "price": OneLine(),
            },
        },
    )
    added = [
        '  slack: {bot_token: "${SLACK_BOT_TOKEN}"}',
        "installation:",
        "  cost_per_month_usd: 7",
        "  other:",
        "    provider: anthropic",
        '    id: "a$${b"',
        "    price: {}",
    ]
    lines = after.splitlines()
    at = lines.index(added[0])
    assert lines[at - 1].startswith("    #proxy")
    assert lines[at + 1].startswith("  # The app comes from")
    for line in added:
        lines.remove(line)
    assert lines == before.splitlines()


KEYS = st.text("abcdef", min_size=1, max_size=3)
SCALARS = st.sampled_from(["no", "0123", "1e5", "'it''s'", '"${A}"', "12:30", "-5", "x y"])
SPACES = st.sampled_from(["", " # c", "\n  # deep", "\n\n# flat", "   "])

BROKEN = " # x\n      "


@st.composite
def blocks(draw: st.DrawFn, column: int = 0) -> str:
    """A section of lines, with comments where people put them."""
    text = ""
    for key in draw(st.lists(KEYS, min_size=1, max_size=3, unique=True)):
        inner = draw(st.integers(0, 3)) if column < 4 else 0
        if inner == 1:
            text += f"{' ' * column}{key}:\n{draw(blocks(column + draw(st.integers(1, 4))))}"
            continue
        value = draw(SCALARS)
        if inner == 2:
            value = f"{{u: {value},  v: {draw(SCALARS)}{draw(st.sampled_from(['', BROKEN]))}}}"
        elif inner == 3:
            value = f"\n{' ' * column}  - {value}"
        text += f"{' ' * column}{key}: {value}{draw(SPACES)}\n"
    return text


@given(blocks(), st.lists(KEYS, min_size=1, max_size=3), st.sampled_from(["7", "{}"]))
def test_a_change_loses_no_line_and_no_comment(text: str, path: list[str], value: str) -> None:
    place = parse(text.encode()).values
    for key in path[:-1]:
        place = place.get(key, {})
        if not isinstance(place, dict):
            return
    if not isinstance(place.get(path[-1], ""), str):
        return
    after = edited(text, {tuple(path): OneLine() if value == "{}" else value})
    for comment in ("# c", "# deep", "# flat", "# x"):
        assert after.count(comment) == text.count(comment)
    assert len(after.splitlines()) >= len(text.splitlines())


def test_what_cannot_be_changed_is_told() -> None:
    with pytest.raises(CommandFailed, match="by hand"):
        edited("a: 1\n", {("b",): "x: y"})


def test_a_new_configuration_says_what_it_should() -> None:
    text = new_text({"a": "1", "b": {"c": SLACK, "d": {"e": literal('"${#')}}})
    assert parse(text.encode()).values == {
        "a": "1",
        "b": {"c": {"bot_token": "${SLACK_BOT_TOKEN}"}, "d": {"e": '"$${#'}},
    }
