"""The same command by the same person within 30 seconds is answered once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from bridge.intake.repeats import Repeats
from channels.base import Sender
from channels.testing import FakeChannel
from tests.bridge.bed import bed


def test_what_is_a_repeat() -> None:
    channel, repeats = FakeChannel(), Repeats()
    first = channel.message("/limits text")
    later = replace(channel.message("/limits text"), sent_at=first.sent_at + timedelta(seconds=29))
    assert not repeats.is_one(first)
    assert not repeats.is_one(first), "the same message once more"
    assert repeats.is_one(later)
    assert not repeats.is_one(
        replace(later, event="x", sent_at=first.sent_at + timedelta(seconds=30))
    )
    assert not repeats.is_one(channel.message("/limits text", person="bo"))
    for text in ("/limits", "/limits text", "A question", "/limits text", "/undo", "/undo"):
        assert not repeats.is_one(channel.message(text)), "something came in between"


def test_the_same_words_about_another_message_person_or_topic_are_another_command() -> None:
    repeats, channel = Repeats(), FakeChannel()
    block = channel.message("/block", private=False)
    others = [
        replace(block, event="a", reply_to_id="42", reply_to_person=Sender("ana", "Ana")),
        replace(block, event="b", reply_to_id="45", reply_to_person=Sender("bo", "Bo")),
        replace(block, event="c", reply_to_person=Sender("cy", "Cy")),
        replace(block, event="d", address=replace(block.address, thread="7")),
    ]
    assert not any(repeats.is_one(one) for one in (block, *others))
    assert repeats.is_one(replace(others[-1], event="e"))


def test_a_run_that_has_begun_or_ended_comes_in_between() -> None:
    repeats, channel = Repeats(), FakeChannel()
    said = [repeats.is_one(channel.message("/new"), run) for run in ("r1", "r1", "", "", "r2")]
    assert said == [False, True, False, True, False]


def test_whatever_anybody_sends_there_comes_in_between() -> None:
    repeats, channel = Repeats(), FakeChannel()

    def said(text: str, person: str, chat: str = "crew") -> bool:
        return repeats.is_one(channel.message(text, person=person, chat=chat, private=False))

    assert not said("/memory off", "ana")
    assert not said("/memory on", "bo")
    assert not said("/memory off", "ana")
    assert not said("a question", "bo")
    assert not said("/memory off", "ana")
    assert not said("/memory on", "bo", chat="team")
    assert said("/memory off", "ana"), "elsewhere is not in between"


async def test_what_another_one_has_changed_meanwhile_is_shown(tmp_path: Path) -> None:
    asked = (("/memory", "bo"), ("/remember the boat is Nixie", "ana"), ("/memory", "bo"))
    async with bed(tmp_path) as it:
        for text, person in asked:
            await it.send(text, person=person, chat="team", private=False)
            await it.bridge.idle()
        assert len(it.channel.finals) == len(asked)
        assert "Nixie" in it.channel.finals[-1]


async def test_what_a_stop_made_possible_is_done(tmp_path: Path) -> None:
    stall = asyncio.Event()
    async with bed(tmp_path, ["One.", "Two."], stall=stall) as it:
        await it.send("hi")
        await it.until(lambda: it.provider.requests)
        await it.send("/new")
        await it.until(lambda: it.channel.finals)
        await it.send("/cancel")
        await it.bridge.idle()
        stall.set()
        told = len(it.channel.finals)
        await it.send("/new")
        await it.bridge.idle()
        assert len(it.channel.finals) == told + 1
        await it.ask("and now?")
        assert [text for _, text in it.said()] == ["and now?"]


async def test_it_is_answered_once_and_a_stop_always(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        for text in ("/whoami", "/whoami", "/cancel", "/cancel"):
            await it.send(text)
            await it.bridge.idle()
        assert len(it.channel.finals) == 3
