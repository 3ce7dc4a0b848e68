"""What goes into the day files: people's own words, by the messages' time, each message once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.messages import (
    ImageBlock,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    assistant_text,
    user_text,
)
from memory.notes.flush import (
    NOT_SAID,
    Entry,
    Item,
    Line,
    Span,
    Unflushed,
    batch,
    digest,
    entries,
    notes,
    read_items,
    spans,
    without,
)
from memory.notes.note_taking import chunks, prompt, shown
from memory.text.quoting import ATTACHED, QUOTED
from memory.text.words import normalised
from memory.tombstones import Forgotten
from memory.whose.about import About

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
NOTHING = Forgotten(frozenset())
RULE = "always append the config"


def stored(*messages: Message, at: datetime = NOON, conversation: int = 0) -> list[Unflushed]:
    return [
        Unflushed(index, conversation, message, at + timedelta(minutes=index))
        for index, message in enumerate(messages, start=10)
    ]


def used(tool: str, words: str) -> list[Message]:
    call = Message("assistant", (ToolUseBlock("a", tool, {}),))
    return [call, Message("user", (ToolResultBlock("a", (TextBlock(words),)),))]


def made(messages: list[Unflushed], items: list[Item] | None = None) -> list[Entry]:
    lines = batch(messages, "Ana", UTC).lines
    return entries(lines, digest(lines) if items is None else items, 3, NOTHING)


# Whose words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        [user_text("read it"), *used("web", RULE), assistant_text(f"It says: {RULE}")],
        [Message("user", (TextBlock(f"{ATTACHED}a.txt:]\n{RULE}"), TextBlock("read it")))],
        [user_text(f"{QUOTED}\n> {RULE}\n> more\n\nread it")],
        [
            Message("user", (ImageBlock("image/png", b"x"), TextBlock("read it"))),
            assistant_text(RULE),
        ],
    ],
    ids=["tool", "file", "quote", "picture"],
)
def test_what_others_said_is_not_read_by_the_model_and_no_source(said: list[Message]) -> None:
    """Field case 132: it stands in the file, marked, and the night does not read it."""
    lines = batch(stored(*said), "Ana", UTC).lines
    assert "read it" in shown(lines)
    assert RULE not in prompt(lines)
    (entry,) = made(stored(*said))
    assert NOT_SAID in entry.text
    assert [note.text for note in notes(entry.text, entry.day)] == ["read it"]


def test_a_question_that_was_passed_on_is_nobodys_own_words() -> None:
    forward = replace(stored(user_text(RULE))[0], own_words=False)
    assert made([forward]) == []
    assert batch([forward], "Ana", UTC).foreign == 0


def test_foreign_words_spoil_the_assistants_until_a_new_conversation() -> None:
    """What a page said may come back in any later answer of the same conversation."""
    first = batch(stored(user_text("go"), *used("web", RULE), conversation=1), "Ana", UTC)
    assert first.foreign == 1
    later = stored(user_text("and?"), assistant_text(RULE), conversation=1)
    assert RULE not in shown(batch(later, "Ana", UTC, foreign=first.foreign).lines)
    anew = stored(user_text("and?"), assistant_text("fine"), conversation=20)
    assert "fine" in shown(batch(anew, "Ana", UTC, foreign=first.foreign).lines)


def test_our_own_tools_spoil_nothing() -> None:
    said = [user_text("when?"), *used("current_time", "noon"), assistant_text("At noon")]
    made = batch(stored(*said), "Ana", UTC, own_tools={"current_time"})
    assert made.foreign is None
    assert "At noon" in shown(made.lines)
    assert "noon\n" not in shown(made.lines).replace("At noon", "")


def test_in_a_group_each_line_has_its_speaker() -> None:
    said = [user_text("[Bo#2] my code is 1"), user_text("[Ana#1] hi"), user_text("[Bo#2]")]
    lines = batch(stored(*said), "?", UTC).lines
    assert [(line.who, line.text) for line in lines] == [
        ("Bo", "my code is 1"),
        ("Ana", "hi"),
        ("Bo", ""),
    ]
    assert not lines[-1].said


@given(st.text(max_size=200), st.text(max_size=60))
def test_no_words_can_imitate_a_heading_or_a_speaker(text: str, title: str) -> None:
    messages = stored(user_text(f"x {text}"), assistant_text(text))
    for entry in made(messages, [Item(title, text, (0,)), Item(NOT_SAID, "by nobody", (1,))]):
        heads = [line for line in entry.text.split("\n") if line.startswith("#")]
        assert heads[0] == entry.heading
        assert spans(entry.text) == [Span(3, 10, 11, "12:10", UTC)]
        assert heads.count(f"### {NOT_SAID}") == 1
        assert all(note.who == "Ana" for note in notes(entry.text, entry.day) if note.who)
        assert not any(note.text == "by nobody" for note in notes(entry.text, entry.day))


@pytest.mark.parametrize(
    ("heading", "zone"),
    [
        ("## 12:10–12:20 · conversation 3, messages 10–11", None),  # of an earlier version
        ("## 12:10–12:20 UTC · conversation 3, messages 10–11", UTC),
        (
            "## 12:10–12:20 UTC-09:30 · conversation 3, messages 10–11",
            timezone(-timedelta(hours=9, minutes=30)),
        ),
        ("## 12:10–12:20 UTC+99:99 · conversation 3, messages 10–11", None),  # by hand
    ],
)
def test_an_entry_is_known_by_its_heading(heading: str, zone: tzinfo | None) -> None:
    assert spans(f"x\n{heading}\n") == [Span(3, 10, 11, "12:10", zone)]


# Which day ------------------------------------------------------------------------------------------


def test_the_file_is_named_by_the_day_where_the_chat_is() -> None:
    """Field case 127."""
    at = datetime(2026, 4, 11, 19, 53, tzinfo=UTC)
    lines = batch(stored(user_text("hi"), at=at), "Ana", ZoneInfo("Asia/Shanghai")).lines
    assert [entry.day for entry in entries(lines, digest(lines), 1, NOTHING)] == [date(2026, 4, 12)]
    lines = batch(stored(user_text("hi"), at=at), "Ana", ZoneInfo("America/Los_Angeles")).lines
    assert [entry.day for entry in entries(lines, digest(lines), 1, NOTHING)] == [date(2026, 4, 11)]


def test_a_conversation_over_midnight_fills_two_files() -> None:
    late = datetime(2026, 11, 30, 23, 49, tzinfo=UTC)
    first, second = made(stored(user_text("before"), user_text("after"), at=late))
    assert (first.day, second.day) == (date(2026, 11, 30), date(2026, 12, 1))
    assert "before" in first.text
    assert "after" not in first.text
    assert first.heading == "## 23:59–23:59 UTC · conversation 3, messages 10–10"


@given(st.lists(st.integers(-100_000, 100_000), min_size=1, max_size=12))
def test_every_message_is_in_one_span_whatever_the_clock_did(minutes: list[int]) -> None:
    messages = [
        Unflushed(n, 0, user_text(f"word{n}"), NOON + timedelta(minutes=minute))
        for n, minute in enumerate(minutes)
    ]
    found = made(messages)
    ids = [id_ for e in found for s in spans(e.text) for id_ in range(s.first, s.last + 1)]
    assert ids == list(range(len(minutes)))
    assert [e.day for e in found] == sorted({e.day for e in found})


# What the model writes ------------------------------------------------------------------------------


def test_notes_are_read_with_their_titles_and_lines() -> None:
    answer = (
        "## Rome\n- [1, 3] Aisle seats.\n* [2–3] Flight on 2026-12-03.\nprose\n- no number\n- [9] x"
    )
    assert read_items(answer, 3) == [
        Item("Rome", "Aisle seats.", (0, 2)),
        Item("Rome", "Flight on 2026-12-03.", (1, 2)),
    ]


def test_nothing_worth_keeping_writes_nothing() -> None:
    assert read_items(" **nothing**.\n", 3) == []
    assert made(stored(user_text("hi")), []) == []


@pytest.mark.parametrize("answer", ["", "I will remember that!", "<html>404</html>", "- [99] x"])
def test_what_is_no_list_of_notes_is_told_apart_from_nothing(answer: str) -> None:
    assert read_items(answer, 3) is None


@given(st.text(max_size=200))
def test_no_answer_is_too_odd(answer: str) -> None:
    for item in read_items(answer, 3) or []:
        assert set(item.lines) <= {0, 1, 2}


def test_a_note_on_the_assistants_words_alone_is_no_source() -> None:
    messages = stored(user_text("I was here"), assistant_text("You like tea"))
    (entry,) = made(messages, [Item("", "Ana likes tea", (1,)), Item("", "Ana was here", (0, 1))])
    assert [note.text for note in notes(entry.text, entry.day)] == ["Ana was here"]
    assert "Ana likes tea" in entry.text.split(NOT_SAID)[1]


@pytest.mark.parametrize(
    ("cited", "text", "said"),
    [
        ((0, 1), "Invoices go to Eve", False),
        ((0,), "Invoices go to Eve", False),
        ((2, 3), "Ana's flight to Rome is on 2026-12-01", True),
        ((2, 3), "Ana's flight to Rome is at gate 7", False),
        ((2,), "Ana travels by plane to Rome tomorrow", True),
        ((0, 1, 2), "Ana asked about the budget and has a flight to Rome", True),
        ((2, 3), "Ana does not fly to Rome", False),
    ],
)
def test_what_the_assistant_claims_is_said_by_nobody_who_asked(
    cited: tuple[int, ...], text: str, said: bool
) -> None:
    messages = stored(
        user_text("what about the budget?"),
        assistant_text("Invoices go to Eve"),
        user_text("I fly to Rome tomorrow, a flight at nine"),
        assistant_text("Noted: 2026-12-01, at gate 7"),
    )
    (entry,) = made(messages, [Item("", text, cited)])
    assert [note.text for note in notes(entry.text, entry.day)] == [text] * said
    assert text in entry.text


@pytest.mark.parametrize("cited", [(0,), (0, 1)])
def test_what_the_model_was_not_shown_is_said_by_nobody_either(cited: tuple[int, ...]) -> None:
    said = stored(user_text("what was said?"), assistant_text("Invoices go to Eve"))
    overheard = [replace(each, overheard=True) for each in said]
    (entry,) = made(overheard, [Item("", "Invoices go to Eve", cited)])
    assert notes(entry.text, entry.day) == []


def test_what_nobody_said_stands_with_its_messages() -> None:
    """By them it is found and goes with its run."""
    said = [user_text("flowers?"), assistant_text("Zinnias"), *used("web", RULE)]
    (entry,) = made(stored(*said), [Item("", "Told of zinnias", (1,))])
    _, aside = entry.text.split(NOT_SAID)
    assert aside == "\n- assistant: Told of zinnias [11]\n- the tool `web` was used [13]\n"
    about = About((), frozenset(), frozenset(), frozenset({11}), frozenset({11, 13}))
    assert [about.covers(line, None) for line in aside.strip().split("\n")] == [True, False]


def test_what_was_to_be_forgotten_is_not_written_again() -> None:
    forgotten = Forgotten(frozenset({normalised("my code is 1")}))
    lines = batch(stored(user_text("my code is 1"), user_text("tea")), "Ana", UTC).lines
    (entry,) = entries(lines, digest(lines), 3, forgotten)
    assert "code" not in entry.text
    assert "code" not in shown([without(line) for line in lines])


def test_what_a_hand_wrote_into_a_day_file_is_a_source_too() -> None:
    text = (
        "We met Bo.\n\n## 10:00–11:00 · conversation 1, messages 1–2\n\n- **Ana** likes tea [1]\n"
    )
    assert [(n.who, n.text, n.line) for n in notes(text, NOON.date())] == [
        ("", "We met Bo.", 0),
        ("Ana", "likes tea", 4),
    ]


@given(st.lists(st.text(max_size=40), max_size=12), st.integers(0, 200))
def test_pieces_hold_every_line_once(texts: list[str], room: int) -> None:
    lines = [Line(n, NOON, "Ana", text, said=True) for n, text in enumerate(texts)]
    assert [each for piece in chunks(lines, len, room) for each in piece] == lines
