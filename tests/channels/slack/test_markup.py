"""Slack's markup to readable text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.slack.markup import escaped, mentioned, readable, without_mention

NAMES = {"U1": "Ana", "U2": "Bo"}


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("a &lt;b&gt; &amp; c", "a <b> & c"),
        ("&amp;lt;", "&lt;"),
        ("<@U1> and <@U9|carl> and <@U8>", "@Ana and @carl and @U8"),
        ("<#C1|general> <#C2|> <#C3>", "#general #C2 #C3"),
        ("<!here> <!channel> <!subteam^S1|@team>", "@here @channel @team"),
        ("<!date^1392734382^{date}|Feb 18>", "Feb 18"),
        ("<https://a.example/x?y=1&amp;z=2>", "https://a.example/x?y=1&z=2"),
        ("<https://a.example|the page>", "the page (https://a.example)"),
        ("<http://a.example|a.example>", "http://a.example"),
        ("<mailto:a@b.example|a@b.example>", "a@b.example"),
        ("<tel:+123|+123>", "+123"),
        ("no < markup >", "no < markup >"),
        ("", ""),
    ],
)
def test_a_text_reads_as_a_person_sees_it(sent: str, read: str) -> None:
    assert readable(sent, NAMES) == read


@given(st.text())
def test_what_is_escaped_reads_as_it_was(text: str) -> None:
    assert readable(escaped(text), {}) == text


@pytest.mark.parametrize(
    ("sent", "left"),
    [
        ("<@B> hi", "hi"),
        ("<@B>: hi", "hi"),
        ("<@B>, hi", "hi"),
        ("hi <@B>", "hi"),
        ("say <@B> hi", "say hi"),
        ("<@B|galata> hi <@B>", "hi"),
        ("<@U1> hi", "<@U1> hi"),
        ("<@B>", ""),
        ("hi", "hi"),
    ],
)
def test_the_bots_name_is_taken_out_with_what_set_it_off(sent: str, left: str) -> None:
    assert without_mention(sent, "B") == left


def test_people_are_found_once_and_in_order() -> None:
    assert mentioned("<@U2> <@U1|ana> <@U2> &lt;@U3&gt;") == ("U2", "U1")
