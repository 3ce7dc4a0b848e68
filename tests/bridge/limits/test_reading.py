"""A chat's lines: what is understood, what is refused, and that nothing is guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.limits.keys import KEYS, TOPIC_KEYS
from bridge.limits.kinds import Known
from bridge.limits.lists import People
from bridge.limits.reading import MOST_BYTES, line_of, read
from bridge.limits.times import Hours
from bridge.texts import Say, Texts
from tests.bridge.limits.values import MODELS, TOOLS, layers

ENGLISH = Say(Texts.load(), "en")
KNOWN = Known(models=MODELS, tools=TOOLS)


def value(line: str) -> object:
    reading = read(line.encode(), KNOWN)
    assert not reading.faults, reading.faults
    (found,) = reading.values.values()
    return found


def fault(text: str, known: Known = KNOWN) -> str:
    reading = read(text.encode(), known)
    assert len(reading.faults) == 1, reading
    return line_of(reading.faults[0], ENGLISH)


@given(layers)
def test_what_is_written_is_read_again(values: dict[str, object]) -> None:
    shown = {key.name: key.show(values[key.name]) for key in KEYS if key.name in values}
    text = "\n".join(f"{name}: {written}" for name, written in shown.items())
    reading = read(text.encode(), KNOWN)
    assert not reading.faults
    assert reading.values == values


@given(st.binary(max_size=400) | st.text(max_size=400).map(lambda t: t.encode("utf-8", "replace")))
def test_no_text_breaks_it(raw: bytes) -> None:
    reading = read(raw, KNOWN)
    assert all(fault.message for fault in reading.faults)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cost_per_day_usd: 3", 3_000_000),
        ("Cost per day USD: 3.50", 3_500_000),
        ("cost-per-day-usd: $3", 3_000_000),
        ("cost_per_day_usd: 3 USD", 3_000_000),
        ("cost_per_day_usd：3", 3_000_000),
        ("cost_per_day_usd:\u00a03", 3_000_000),
        ("cost_per_day_usd :3", 3_000_000),
        ("cost_per_day_usd: “3”", 3_000_000),
        ("cost_per_day_usd: 0.005", 5_000),
        ("cost_per_day_usd: 0", 0),
        ("cost_per_day_usd: 1k", 1_000_000_000),
        ("```yaml\ncost_per_day_usd: 3\n```", 3_000_000),
        ("```\ncost_per_day_usd: 3```", 3_000_000),
        ("```cost_per_day_usd: 3```\n", 3_000_000),
        ("~~~\ninstructions: Be brief~~~", "Be brief"),
        ("instructions: Code stands in ```", "Code stands in ```"),
        ("instructions: |\n  Use this:\n  ```x```", "Use this:\n```x```"),
        ("```yaml\ninstructions: Use ```x```\n```", "Use ```x```"),
        ("\ufeffcost_per_day_usd: 3  # whole chat", 3_000_000),
        ("tokens_per_day: 50k", 50_000),
        ("tokens_per_day: 1.5m", 1_500_000),
        ("tokens_per_day: 500_000", 500_000),
        ("warn_at_percent: 70 %", 70),
        ("quiet_hours: 22-7:30", Hours(22 * 60, 7 * 60 + 30)),
        ("paused: on", True),
        ("paused: No", False),
        ("who_can_ask: Admins", People(admins=True)),
        ("who_can_ask: [0123, -42]", People(ids=frozenset({"0123", "-42"}))),
        ("who_can_ask: 1e5", People(ids=frozenset({"1e5"}))),
        ("blocked: 42", frozenset({"42"})),
        ("blocked: 42, 43", frozenset({"42", "43"})),
        ("blocked:\n  - 42\n  - 43", frozenset({"42", "43"})),
        ("blocked: []", frozenset()),
        ("blocked: [“42”, «43»]", frozenset({"42", "43"})),
        ("blocked:\n- “42 until 2026-11-30 18:00 UTC”", {"42 until 2026-11-30 18:00 UTC"}),
        ("who_can_ask: [‘42’]", People(ids=frozenset({"42"}))),
        ("tools_off: [“current_time”]", frozenset({"current_time"})),
        ("when limit reached: tell-once", "tell_once"),
        ("instructions: Note: be brief", "Note: be brief"),
        ("instructions: «Be brief»", "Be brief"),
        ("instructions: *Be* brief  # or not", "*Be* brief"),
        ("instructions: {name} is fine", "{name} is fine"),
        ("instructions: - as a list", "- as a list"),
        ("“tokens_per_day”: 5", 5),
        ("  # ours\n  tokens per day：5", 5),
        ("instructions: |\n  One.\n  paused：no", "One.\npaused：no"),
        ("instructions: 12:30", "12:30"),
        ("instructions: |\n  One.\n  Two: 2.", "One.\nTwo: 2."),
    ],
)
def test_what_can_mean_one_thing_is_understood(line: str, expected: object) -> None:
    assert value(line) == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tokens_per_day: 50.000", "50.000 can mean 50 or 50000"),
        ("cost_per_day_usd: 0,50", "0,50 can mean 0.50 or 50"),
        ("cost_per_day_usd: 12.345", "12.345 can mean 12.3450 or 12345"),
        ("tokens_per_day: 1,5m", "1,5m can mean 1.5m or 15m"),
        ("tokens_per_day: 1.000.000", "write it without marks between the digits: 1000000"),
        ("tokens_per_day: 1.5", "must be a whole number"),
        ("tokens_per_day: -1", "must be 0 or more"),
        ("tokens_per_day: unlimited", "must be a number"),
        ("tokens_per_day: 1e5", "must be a number"),
        ("tokens_per_day: 50%", "must be a number"),
        ("tokens_per_day:", "is empty"),
        ("tokens_per_day: ~", "is empty"),
        ("tokens_per_day: null", "is empty"),
        ('tokens_per_day: ""', "is empty"),
        ("longest_answer_characters: 10", "must be 200 to 100000"),
        ("paused: 12:30", "must be yes, no, or until"),
        ("tokens_per_dy: 1", "unknown key, did you mean tokens_per_day?"),
        ("who_can_ask: []", "must not be empty"),
        ("who_can_ask: ana", "must be members, admins"),
        ("blocked: [1087968824]", "stands for many people"),
        ("blocked: [Ana]", "must be a list of ids"),
        ("model: claude-opus", "is no model of this bot"),
        ("tools_off: [curent_time]", "did you mean current_time?"),
        ("timezone: Europe/Berln", "did you mean Europe/Berlin?"),
        ("timezone: CEST5", "is no IANA time zone"),
        ("language: {a: b}", "must be a single value"),
        ("paused: &x no", "anchors"),
        ("paused: !!bool no", "tags"),
        ("paused: no\n---\nblocked: []", "a second document"),
        ("paused: no\n  blocked: []", "must begin where the others do"),
        ("paused: no\nblocked: [1,", "a list that is never closed"),
        ("paused: no\nPaused: yes", "is there twice; first in line 1"),
        ("paused: no\npaused: yes", "is there twice; first in line 1"),
        ("\tpaused: no", "a tab is not allowed"),
        ("model: - gpt", "put a text with such signs in quotes"),
        ("model: {a} b", "put a text with such signs in quotes"),
        ("model: > a", "put a text with such signs in quotes"),
        ("model: gpt\nand more\nwords", "a line without `key: value`"),
        ("just words", "must consist of `key: value` lines"),
        ("# " + "x" * MOST_BYTES, "more than 8 KB"),
    ],
)
def test_what_cannot_is_refused_with_its_reason(text: str, told: str) -> None:
    assert told in fault(text)


def test_all_faults_come_at_once_with_their_lines() -> None:
    text = "paused: no\ncost_per_day_usd: 0,50\n\ntokens per day: many\nfoo: 1\n"
    found = [line_of(fault, ENGLISH) for fault in read(text.encode(), KNOWN).faults]
    assert [line.split(":")[0] for line in found] == [
        "line 2, cost_per_day_usd",
        "line 4, tokens_per_day",
        "line 5, foo",
    ]


def test_what_is_no_yaml_hides_no_fault_of_another_line() -> None:
    text = "paused: maybe\nmodel: a: b\n\nblocked: [41]\ntokens_per_day: many\n"
    reading = read(text.encode(), KNOWN)
    assert [(fault.line, fault.key) for fault in reading.faults] == [
        (1, "paused"),
        (2, "syntax"),
        (5, "tokens_per_day"),
    ]
    assert reading.places["blocked"] == (4, 1)


def told(text: str) -> list[tuple[int, str]]:
    return [(fault.line, fault.key) for fault in read(text.encode(), KNOWN).faults]


def test_each_key_is_read_by_itself_where_one_is_no_yaml() -> None:
    assert told("cost_per_day_usd: 3,5\n\ttokens_per_day: 3") == [
        (1, "cost_per_day_usd"),
        (2, "syntax"),
    ]
    assert told("fo: 1\nmodel: a: b\npaused: “\nblocked: [1,\ntopics: x\nTopics: all\nfo: 2") == [
        (1, "fo"),
        (2, "syntax"),
        (3, "paused"),
        (4, "syntax"),
        (5, "topics"),
        (6, "topics"),
        (7, "fo"),
    ]
    several = "instructions: |\n  One: two\n  - x\nmodel: > a\npaused: maybe"
    assert told(several) == [(4, "syntax"), (5, "paused")]


def test_a_text_with_more_keys_than_there_can_be_takes_no_longer_for_it() -> None:
    """Read by themselves, a thousand would hold up everybody for most of a second."""
    assert told("a: b: c\n" * 1_000) == [(1, "syntax")]


def test_default_removes_a_key() -> None:
    reading = read(b"tokens_per_day: Default\npaused: yes", KNOWN)
    assert reading.removed == ("tokens_per_day",)
    assert reading.values == {"paused": True}


def test_a_cost_needs_prices_and_the_missing_one_is_named() -> None:
    told = fault("cost_per_day_usd: 3", Known(unpriced=("local",)))
    assert "models.local.price" in told
    assert not read(b"tokens_per_day: 3k", Known(unpriced=("local",))).faults


def test_a_topic_has_keys_of_its_own_only() -> None:
    (found,) = read(b"tokens_per_day: 3k", KNOWN, TOPIC_KEYS).faults
    assert "cannot be set here" in found.message


def test_comments_alone_are_no_limits() -> None:
    assert read(b"# nothing yet\n\n", KNOWN) == read(b"", KNOWN)
