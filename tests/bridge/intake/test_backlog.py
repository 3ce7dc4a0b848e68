"""After a long outage: private chats get all answers, groups each person's newest, none in silence."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.inbound import entry
from bridge.intake.backlog import LONG, Missed, is_old, sort_out
from bridge.intake.chat_rules import ChatRules
from bridge.runs.stopping import key_of
from channels.base import Address, InboundMessage, Sender
from channels.errors import ChannelUnavailable, Uncertain
from memory.backlog import BacklogStore, MissedRow
from tests.bridge.bed import Bed, bed

TEAM: dict[str, object] = {"chat": "team", "private": False}
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def missed(
    number: int,
    minutes: float,
    person: str = "ana",
    *,
    private: bool = False,
    run: str | None = None,
) -> Missed:
    message = InboundMessage(
        Address("fake", "bot", "team", None, private),
        f"m:{number}",
        str(number),
        Sender(person, person.title()),
        NOW - timedelta(minutes=minutes),
        f"q{number}",
    )
    return Missed(MissedRow(number, "fake:bot:team", 1, "", run), message)


def numbers(found: Sequence[Missed]) -> list[int]:
    return [one.row.id for one in found]


def test_in_a_group_each_persons_newest_question_stays() -> None:
    waiting = [missed(1, 90), missed(2, 80, "bo"), missed(3, 70), missed(4, 60)]
    found = sort_out(waiting, NOW)
    assert numbers(found.old) == [1, 2, 3, 4]
    assert numbers(found.aside) == [1, 3]


def test_a_question_that_came_after_the_outage_makes_older_ones_of_that_person_wait() -> None:
    found = sort_out([missed(1, 90), missed(2, 5), missed(3, 4)], NOW)
    assert numbers(found.aside) == [1]


def test_a_private_chat_and_a_short_outage_set_nothing_aside() -> None:
    assert sort_out([missed(1, 90, private=True), missed(2, 80, private=True)], NOW).aside == ()
    found = sort_out([missed(1, 29), missed(2, 28)], NOW)
    assert (found.old, found.aside) == ((), ())


def test_what_a_run_has_begun_and_the_begin_of_a_cut_text_are_not_set_aside() -> None:
    begun = missed(1, 90, run="r1")
    cut = missed(2, 80)
    cut = replace(cut, message=replace(cut.message, more_expected_s=2.0))
    rest = missed(3, 80 - 1 / 60)
    assert sort_out([begun, cut, rest], NOW).aside == ()
    assert numbers(sort_out([begun, cut, missed(3, 70)], NOW).aside) == [2]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 120),
            st.sampled_from(["ana", "bo", "cleo"]),
            st.sampled_from([None, None, "r1"]),
        ),
        max_size=12,
    )
)
def test_nobody_is_left_without_an_answer_and_nothing_new_or_begun_waits(
    asked: list[tuple[int, str, str | None]],
) -> None:
    by_time = sorted(asked, key=lambda one: -one[0])
    waiting = [missed(i, minutes, who, run=run) for i, (minutes, who, run) in enumerate(by_time)]
    aside = sort_out(waiting, NOW).aside
    answered = [one for one in waiting if one not in aside]
    assert {one.message.sender.id for one in waiting} == {one.message.sender.id for one in answered}
    for person in ("ana", "bo", "cleo"):
        own = [one for one in waiting if one.message.sender.id == person]
        assert not own or own[-1] in answered
    assert all(is_old(one.message, NOW) and one.row.run_id is None for one in aside)


# In the bridge ------------------------------------------------------------------------------------


async def ask_late(bed: Bed, text: str, person: str, minutes: float, **where: object) -> None:
    plain = bed.channel.message(text, person=person, **where)  # type: ignore[arg-type]
    late = replace(plain, sent_at=datetime.now(UTC) - timedelta(minutes=minutes))
    await bed.bridge.receive(late)


async def test_a_group_gets_one_notice_with_a_button_that_asks_the_rest(tmp_path: Path) -> None:
    async with bed(tmp_path, ["A", "B", "C", "D"], scope="one_per_person") as made:
        for minutes, person, text in (
            (90, "ana", "1"),
            (80, "bo", "2"),
            (70, "ana", "3"),
            (60, "ana", "4"),
        ):
            await ask_late(made, text, person, minutes, **TEAM)
        await made.until(lambda: len(made.channel.finals) == 3)
        await made.bridge.idle()
        notice = made.channel.replies[0]
        assert notice.final is not None
        assert "set aside: 2" in notice.final
        asked = [request.messages[-1].text for request in made.provider.requests]
        assert sorted(asked) == ["[Ana#1] 4", "[Bo#1] 2"]
        await made.bridge.receive(made.channel.press(notice, person="bo"))
        await made.until(lambda: len(made.channel.finals) == 4)
        await made.bridge.idle()
        assert made.said()[-1] == ("user", "[Ana#1] 1\n\n3")
        await made.bridge.receive(made.channel.press(notice, person="bo"))
        await made.bridge.idle()
        assert made.channel.notices == ["Asked after all: 2.", "There is nothing left to ask."]


async def test_a_private_chat_gets_one_notice_and_all_answers_in_order(tmp_path: Path) -> None:
    async with bed(tmp_path, ["A", "B"]) as made:
        await ask_late(made, "first", "ana", 120)
        await ask_late(made, "second", "ana", 60)
        await made.until(lambda: len(made.channel.finals) == 2)
        await made.bridge.idle()
        assert made.channel.finals[0].startswith("I could not answer for a while.")
        assert made.said()[-1] == ("user", "first\n\nsecond")
        await ask_late(made, "third", "ana", 45)
        await made.until(lambda: len(made.channel.finals) == 3)
        await made.bridge.idle()
        assert made.channel.finals[-1] == "B", "one notice is enough"


async def test_questions_found_at_a_start_are_sorted_out_too(tmp_path: Path) -> None:
    async with bed(tmp_path) as made:
        for minutes, text in ((90, "old"), (60, "new")):
            plain = made.channel.message(text, person="ana", **TEAM)  # type: ignore[arg-type]
            late = replace(plain, sent_at=datetime.now(UTC) - timedelta(minutes=minutes))
            place = ChatRules(made.services.policies).place(late, made.bridge.talks)
            await made.services.inbox.put(entry(late, place, "turn"))
            await made.services.inbox.mark(key_of(late), True)  # it had to wait before, too
        await made.bridge.resume()
        await made.until(lambda: len(made.channel.finals) == 2)
        await made.bridge.idle()
        assert "set aside: 1" in made.channel.finals[0]
        assert made.said()[-1] == ("user", "[Ana#1] new")
        await made.until(lambda: len(made.channel.marks) == 2)
        assert [waits for _, waits in made.channel.marks] == [False, False]


async def test_what_is_set_aside_is_told_however_often_that_fails(tmp_path: Path) -> None:
    async with bed(tmp_path, ["A"]) as made:
        made.channel.failures += [ChannelUnavailable("not now")] * 3
        await ask_late(made, "old", "ana", 90, **TEAM)
        await ask_late(made, "new", "ana", 60, **TEAM)
        await made.until(lambda: len(made.channel.finals) == 2)
        await made.bridge.idle()
        assert "set aside: 1" in made.channel.finals[0]
        assert made.said()[-1] == ("user", "[Ana#1] new")


async def test_a_notice_that_may_have_arrived_stands_for_what_was_done(tmp_path: Path) -> None:
    async with bed(tmp_path, ["A", "B"]) as made:
        made.channel.failures.append(Uncertain("cut"))
        await ask_late(made, "old", "ana", 90, **TEAM)
        await ask_late(made, "new", "ana", 60, **TEAM)
        await made.until(lambda: "A" in made.channel.finals)
        await made.bridge.idle()
        assert made.said()[-1] == ("user", "[Ana#1] new")
        rows = await made.database.read("SELECT COUNT(*) FROM inbox WHERE outcome = 'set_aside'")
        assert rows[0][0] == 1


async def test_what_comes_while_older_ones_are_sorted_out_is_counted_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both counted the first: the store was held, and a second look had begun meanwhile."""
    async with bed(tmp_path, ["A"]) as made:
        begun, held = asyncio.Event(), asyncio.Event()
        set_aside = BacklogStore.set_aside

        async def slow(*given: Any) -> int:
            begun.set()
            await held.wait()
            return await set_aside(*given)

        monkeypatch.setattr(BacklogStore, "set_aside", slow)
        await ask_late(made, "1", "ana", 90, **TEAM)
        await ask_late(made, "2", "ana", 80, **TEAM)
        await begun.wait()
        await ask_late(made, "3", "ana", 70, **TEAM)
        await asyncio.sleep(3 * made.bridge._backlog._timing.quiet_s)  # a second look would begin
        held.set()
        await made.until(lambda: "A" in made.channel.finals)
        await made.bridge.idle()
        told = [text.split("set aside: ")[1] for text in made.channel.finals if "aside" in text]
        assert told == ["1.", "1."]
        assert made.said() == [("user", "[Ana#1] 3")]


async def test_after_a_crash_the_notice_is_not_said_anew(tmp_path: Path) -> None:
    async with bed(tmp_path, ["A"]) as made:
        made.channel.hold_after = 0
        for minutes, text in ((90, "old"), (60, "new")):
            await ask_late(made, text, "ana", minutes, **TEAM)
        await made.until(lambda: made.channel.replies)
    async with bed(tmp_path, ["A"]) as made:
        await made.bridge.resume()
        await made.until(lambda: "A" in made.channel.finals)
        await made.bridge.idle()
        assert [final for final in made.channel.finals if "set aside" in final][1:] == []
        assert made.said()[-1] == ("user", "[Ana#1] new")


async def test_what_is_no_longer_the_newest_after_a_crash_is_told_too(tmp_path: Path) -> None:
    """Its notice had the name of the first, and so was not stored (found by make crash)."""
    async with bed(tmp_path, ["A"]) as made:
        made.channel.hold_after = 0
        for minutes, text, person in ((90, "1", "ana"), (80, "2", "ana"), (70, "3", "ben")):
            await ask_late(made, text, person, minutes, **TEAM)
        await made.until(lambda: made.channel.replies)
    async with bed(tmp_path, ["A", "B"]) as made:
        await ask_late(made, "4", "ben", 0, **TEAM)
        await made.bridge.resume()
        await made.until(lambda: len(made.provider.requests) >= 2)
        await made.bridge.idle()
        rows = await made.database.read("SELECT COUNT(*) FROM inbox WHERE outcome = 'set_aside'")
        texts = await made.database.read("SELECT body FROM outbox_parts")
        told = [text for (text,) in texts if "set aside: 1" in text]
        assert (rows[0][0], len(told)) == (2, 2)


async def test_a_new_question_is_answered_without_a_word(tmp_path: Path) -> None:
    async with bed(tmp_path, ["A"]) as made:
        await ask_late(made, "hi", "ana", LONG.total_seconds() / 60 - 1)
        await made.until(lambda: made.channel.finals)
        assert made.channel.finals == ["A"]


async def test_commands_that_change_the_conversation_do_not_overtake_what_was_asked_before(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["A", "B"]) as made:
        await made.send("first")
        await made.until(lambda: made.channel.finals == ["A"])
        await made.bridge.idle()
        await ask_late(made, "during the outage", "ana", 90)
        for command in ("/undo", "/new", "/compact"):
            await made.send(command)
        await made.until(lambda: made.channel.finals[-1] == "B")
        await made.bridge.idle()
        refused = [final for final in made.channel.finals if "Stop the running answer" in final]
        assert len(refused) == 3
        assert [text for _, text in made.said()] == ["first", "A", "during the outage"]
