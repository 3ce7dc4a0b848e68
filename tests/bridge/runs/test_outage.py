"""A provider that fails for everybody: nobody hammers it, each chat is told once, and every waiting
question is answered once when it is back."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from agent.errors import ProviderDown, ProviderError, Refusal, RefusalKind
from agent.messages import JsonObject
from agent.testing import ScriptedProvider, calls, refusal
from agent.tools import ToolContext, ToolOutput, ToolSpec
from bridge.lanes import Outcome
from bridge.runs.outage import FAILURES, PAUSES_S, Outages
from bridge.runs.settling import Settling
from bridge.session import session_of
from tests.bridge.bed import bed

UNAUTHORISED = Refusal(RefusalKind.AUTH, 401)
SILENT = Refusal(RefusalKind.TRANSIENT)


class Booking:
    """A tool that changes something."""

    spec = ToolSpec("book", "Books.", {"type": "object"}, side_effects=True)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        return ToolOutput.of("booked")


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.runs.outage.PAUSES_S", (0.05,))


def refused(outages: Outages, session: str) -> bool:
    try:
        outages.admit("p", session)
    except ProviderDown:
        return True
    return False


async def test_a_refused_key_stops_every_session_at_once() -> None:
    outages = Outages(lambda _: None)
    outages.note("p", "a", UNAUTHORISED)
    assert refused(outages, "a")
    assert refused(outages, "b")
    outages.close()


async def test_a_refusal_of_one_model_is_no_outage() -> None:
    outages = Outages(lambda _: None)
    outages.note("p", "a", Refusal(RefusalKind.AUTH, 404))
    assert not refused(outages, "a")


async def test_calls_without_an_answer_open_it_after_four_in_a_row() -> None:
    outages = Outages(lambda _: None)
    for _ in range(FAILURES - 1):
        outages.note("p", "a", SILENT)
    assert not refused(outages, "a")
    outages.note("p", "a", SILENT)
    assert refused(outages, "a")
    outages.close()


async def test_one_conversation_that_always_fails_does_not_stop_the_others() -> None:
    outages = Outages(lambda _: None)
    for _ in range(FAILURES):
        outages.note("p", "a", SILENT)
    assert refused(outages, "a")
    assert not refused(outages, "b")
    outages.note("p", "b", SILENT)
    assert refused(outages, "b"), "a second one fails as well"
    assert refused(outages, "c")
    outages.close()


async def test_at_the_time_of_the_next_try_one_call_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bridge.runs.outage.PAUSES_S", (0,))
    outages = Outages(lambda _: None)
    outages.note("p", "a", UNAUTHORISED)
    assert not refused(outages, "a")
    assert refused(outages, "b"), "the others wait for it"
    outages.note("p", "a", UNAUTHORISED)
    assert not refused(outages, "b"), "the next one tries"
    outages.close()


async def test_pauses_become_longer() -> None:
    assert tuple(sorted(PAUSES_S)) == PAUSES_S
    assert timedelta(seconds=PAUSES_S[-1]) <= timedelta(hours=1)


@pytest.mark.usefixtures("short_pauses")
async def test_waiting_questions_are_answered_once_when_the_provider_is_back(
    tmp_path: Path,
) -> None:
    down = ProviderError("scripted", UNAUTHORISED)
    async with bed(tmp_path, [down, down, "one", "two"]) as it:
        await it.send("hi")
        await it.until(lambda: it.channel.finals)
        assert it.channel.finals[0].startswith("The model's provider does not accept my key")
        await it.send("hi", person="bo", chat="2")
        await it.until(lambda: "two" in it.channel.finals)
        await it.bridge.idle()
        told = [text for text in it.channel.finals if "accept my key" in text]
        assert len(told) <= 2, "each chat is told once"
        assert sorted(set(it.channel.finals) - set(told)) == ["one", "two"]
        assert await it.services.inbox.open_sessions(("fake",)) == []
        rows = await it.database.read("SELECT COUNT(*) FROM messages WHERE role = 'user'")
        assert rows[0][0] == 2, "each question is stored once"


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (UNAUTHORISED, "does not accept my key"),
        (Refusal(RefusalKind.QUOTA, 429), "credit or quota is used up"),
    ],
)
async def test_a_chat_is_told_why_its_question_waits_and_until_when(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, refusal: Refusal, words: str
) -> None:
    error = ProviderError("scripted", replace(refusal, detail="your text PRIVATE"))
    async with bed(tmp_path, [error]) as it:
        told = await it.ask("hi")
        assert words in told
        assert re.search(r"I try again at \d\d:\d\d and answer you then\. Error id: \w{8}$", told)
        (trace,) = (await it.database.read("SELECT trace FROM errors"))[0]
    assert "PRIVATE" in trace
    assert "PRIVATE" not in caplog.text
    assert "Traceback" not in caplog.text
    assert f"error {told[-8:]} in run" in caplog.text


async def test_what_was_shown_stays_and_the_answer_comes_in_a_message_of_its_own(
    tmp_path: Path,
) -> None:
    """It vanished, and the sentence about the outage stood in its place."""
    stall = asyncio.Event()
    async with bed(tmp_path, ["text", "the answer"], stall=stall) as it:
        it.provider.break_after_text = ProviderError("scripted", UNAUTHORISED)
        await it.send("hi")
        await it.provider.streaming.wait()
        (shown,) = it.channel.replies
        assert shown.journal is not None
        await shown.journal.previewed("17")
        stall.set()
        await it.until(lambda: it.channel.finals)
        await it.bridge.idle()
        assert shown.final is not None
        assert shown.final.startswith("te\n\nThe model's provider does not accept my key")
        it.bridge._outages.note("scripted", "another", None)
        await it.until(lambda: it.channel.finals[1:])
        assert it.channel.finals[1:] == ["the answer"]
        resumed = it.channel.replies[-1].resumed
        assert resumed is not None
        assert resumed.preview_id is None
        assert it.said() == [("user", "hi")]


async def test_a_question_that_waits_for_a_provider_can_be_stopped(tmp_path: Path) -> None:
    async with bed(tmp_path, [ProviderError("scripted", UNAUTHORISED), "fine"]) as it:
        await it.ask("hi")
        assert await it.ask("/cancel") == "Waiting messages that I dropped: 1."
        assert await it.services.inbox.open_sessions(("fake",)) == []
        it.bridge._outages.note("scripted", "another", None)
        assert await it.ask("and now?") == "fine"
        assert it.said() == [
            ("user", "hi"),
            ("assistant", "[Stopped by the user.]"),
            ("user", "and now?"),
        ]


async def test_a_run_that_waits_in_its_middle_is_stopped_like_any_other(tmp_path: Path) -> None:
    """It passed for a waiting message: what it had done was not told, and no marker stored."""
    steps = [calls(("a", "book", {}), text="I book."), ProviderError("scripted", UNAUTHORISED)]
    async with bed(tmp_path, steps, more_tools=[Booking()]) as it:
        await it.send("book it")
        await it.until(lambda: it.channel.finals)
        other = await it.send("and this?")
        stop = await it.send("/cancel")
        await it.until(lambda: len(it.channel.finals) == 3)
        await it.bridge.idle()
        assert sorted(it.channel.finals[1:]) == [
            "Stopped.\n\nDone before the stop: `book`.",
            "Waiting messages that I dropped: 1.",
        ]
        context = await it.services.conversations.context(1)
        texts = [stored.message.text for stored in context.messages]
        assert texts == ["book it", "I book.", "", "[Stopped by the user.]"]
        place = session_of(stop.address, "ana", "shared")
        (dropped,) = await it.services.inbox.dropped(place.key, "ana", stop.event)
        assert dropped[-1] == other.event


async def test_a_stop_that_comes_while_the_outage_is_told_ends_the_run(tmp_path: Path) -> None:
    """Nobody was told, and the next start ended it."""
    steps = [calls(("a", "book", {})), ProviderError("scripted", UNAUTHORISED)]
    async with bed(tmp_path, steps, more_tools=[Booking()]) as it:
        it.channel.hold_after = 0
        await it.send("book it")
        # The notice waits as behind a rate limit.
        await it.until(lambda: len(it.channel.replies) == 2)
        await it.send("/cancel")
        it.channel.go_on.set()
        await it.until(lambda: any("Done before the stop: `book`" in t for t in it.channel.finals))
        await it.bridge.idle()
        assert await it.services.inbox.open_sessions(("fake",)) == []


async def test_a_stop_that_comes_right_after_the_failure_is_told_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cut the sentence about the outage off, and the chat read "Stopped." alone."""
    steps = [calls(("a", "book", {})), ProviderError("scripted", UNAUTHORISED)]
    async with bed(tmp_path, steps, more_tools=[Booking()]) as it:
        settle = Settling.settle

        async def settle_late(settling: Settling, outcome: Outcome) -> None:
            await it.send("/cancel")
            await settle(settling, outcome)

        monkeypatch.setattr(Settling, "settle", settle_late)
        await it.send("book it")
        await it.bridge.idle()
        assert it.channel.finals == ["Stopped.\n\nDone before the stop: `book`."]
        assert await it.services.inbox.open_sessions(("fake",)) == []


async def test_a_question_that_is_asked_after_all_comes_behind_what_was_said_since(
    tmp_path: Path,
) -> None:
    down = ProviderError("scripted", UNAUTHORISED)
    async with bed(tmp_path, [down, "two", "one", "three"]) as it:
        await it.send("q1")
        await it.until(lambda: it.channel.finals)
        await it.bridge.idle()
        await it.ask("/cancel")
        dropped = it.channel.replies[-1]
        it.bridge._outages.note("scripted", "another", None)
        assert await it.ask("q2") == "two"
        await it.bridge.receive(it.channel.press(dropped))
        await it.until(lambda: "one" in it.channel.finals)
        assert it.said() == [("user", "q2"), ("assistant", "two"), ("user", "q1")]
        await it.ask("q3")
        assert it.said()[2:] == [("user", "q1"), ("assistant", "one"), ("user", "q3")]


async def test_the_status_says_what_waits_and_until_when(tmp_path: Path) -> None:
    async with bed(tmp_path, [ProviderError("scripted", UNAUTHORISED)]) as it:
        told = await it.ask("hi")
        await it.send("and this")
        until = re.search(r"again at (\d\d:\d\d)", told)
        assert until is not None
        status = await it.ask("/status")
        assert "Running: no, waiting: 2" in status
        assert f"the next try, at {until[1]}" in status


async def test_nothing_takes_a_question_away_that_waits_for_its_provider(tmp_path: Path) -> None:
    async with bed(tmp_path, [ProviderError("scripted", UNAUTHORISED), "fine"]) as it:
        await it.ask("hi")
        for command in ("/undo", "/new", "/compact"):
            assert "Stop the running answer first" in await it.ask(command)


async def test_a_message_that_comes_during_an_outage_is_acknowledged(tmp_path: Path) -> None:
    async with bed(tmp_path, [ProviderError("scripted", UNAUTHORISED)]) as it:
        await it.ask("hi")
        message = await it.send("and this?")
        await it.until(lambda: (message.message_id, True) in it.channel.marks)


async def test_a_question_that_comes_after_a_try_that_was_broken_off_gets_its_own_try(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bridge.runs.outage.PAUSES_S", (0,))
    monkeypatch.setattr("bridge.runs.outage.PROBE_S", 0.01)
    woken = asyncio.Event()
    outages = Outages(lambda _: woken.set())
    outages.note("p", "a", UNAUTHORISED)
    await asyncio.sleep(0.06)  # the timer finds nobody
    outages.admit("p", "a")  # tries, and is stopped before it knows
    with pytest.raises(ProviderDown) as down:
        outages.admit("p", "b")
    assert outages.postpone("b", down.value)
    await asyncio.wait_for(woken.wait(), 10)
    outages.close()


@pytest.mark.usefixtures("short_pauses")
async def test_a_question_that_a_provider_never_answers_is_told_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.runs.outage.MOST_POSTPONED", 2)
    async with bed(tmp_path, [refusal(RefusalKind.TRANSIENT)] * 40) as it:
        await it.send("hi")
        await it.until(lambda: any("try again." in text for text in it.channel.finals))
        await it.bridge.idle()
        assert await it.services.inbox.open_sessions(("fake",)) == []
        assert len(it.channel.finals) == 2


async def test_an_outage_in_the_middle_of_a_stop_is_a_stop(tmp_path: Path) -> None:
    stall = asyncio.Event()
    async with bed(tmp_path, ["text"], stall=stall) as it:
        it.provider.break_after_text = ProviderError("scripted", UNAUTHORISED)
        await it.send("hi")
        await it.provider.streaming.wait()
        await it.send("/cancel")
        stall.set()
        await it.bridge.idle()
        assert it.channel.finals == ["te\n\nStopped."]


async def test_a_fallback_answers_while_the_first_provider_is_down(tmp_path: Path) -> None:
    other = ScriptedProvider(["from the other"] * 2)
    other.name = "other"
    down = ProviderError("scripted", UNAUTHORISED)
    async with bed(tmp_path, [down], fallbacks=[other]) as it:
        assert await it.ask("hi") == "from the other"
        assert await it.ask("again") == "from the other"
        assert len(it.provider.requests) == 1, "it is not asked while it is down"


async def test_a_fallback_answers_also_when_the_next_try_comes_to_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.runs.outage.PAUSES_S", (0.0, 1000.0))
    monkeypatch.setattr("agent.retry.WAITS_S", dict.fromkeys(RefusalKind, (0.0, 0.0, 0.0)))
    other = ScriptedProvider(["one", "two", "three"])
    other.name = "other"
    silent = ProviderError("scripted", Refusal(RefusalKind.TRANSIENT, 503))
    async with bed(tmp_path, [silent] * (FAILURES + 1), fallbacks=[other]) as it:
        assert [await it.ask(text) for text in ("hi", "again", "more")] == ["one", "two", "three"]
        assert len(it.provider.requests) == FAILURES + 1, "the second question was the next try"


async def test_an_unclear_refusal_does_not_end_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.runs.outage.PAUSES_S", (0,))
    outages = Outages(lambda _: None)
    outages.note("p", "a", UNAUTHORISED)
    outages.admit("p", "a")
    outages.note("p", "a", Refusal(RefusalKind.UNKNOWN, 502))
    assert refused(outages, "b"), "the others still wait for the next try"
    outages.note("p", "a", Refusal(RefusalKind.OVERFLOW, 400))
    assert not refused(outages, "b"), "who reads a request to its end is back"
    outages.close()


async def test_a_stopped_question_does_not_cost_the_others_a_try(tmp_path: Path) -> None:
    async with bed(tmp_path, [ProviderError("scripted", UNAUTHORISED)]) as it:
        await it.ask("hi")
        await it.ask("hi", person="bo", chat="2")
        await it.ask("/cancel")
        waiting = it.bridge._outages._waiting
        assert [key.split(":")[2] for key in waiting] == ["2"]
