"""Stopping: at once, whatever hangs; each case has its sentence; nothing comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.history import violations
from agent.messages import JsonObject
from agent.testing import calls
from agent.tools import ToolContext, ToolOutput, ToolSpec
from bridge import lanes
from channels.base import Attachment
from channels.errors import NotStored
from memory.errors import StoreUnavailable
from tests.bridge.bed import bed
from tests.bridge.faulty_store import read_only


class Hanging:
    """A tool that has begun and does not end."""

    def __init__(self, name: str = "pay", *, side_effects: bool = True) -> None:
        self.spec = ToolSpec(name, "Hangs.", {"type": "object"}, side_effects=side_effects)
        self.begun = asyncio.Event()

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        self.begun.set()
        await asyncio.Event().wait()
        raise AssertionError


class Quick:
    """A tool that changes something, at once."""

    spec = ToolSpec("book", "Books.", {"type": "object"}, side_effects=True)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        return ToolOutput.of("booked")


async def test_a_stop_during_a_tool_tells_what_took_effect_and_what_is_unknown(
    tmp_path: Path,
) -> None:
    tool = Hanging()
    step = calls(("a", "book", {}), ("b", "pay", {}), ("c", "book", {}), text="I book and pay.")
    async with bed(tmp_path, [step, "fine"], more_tools=[Quick(), tool]) as it:
        await it.send("book it")
        await tool.begun.wait()
        await it.send("/cancel")
        await it.until(lambda: it.channel.finals)
        await it.bridge.idle()
        (said,) = it.channel.finals
        assert said == (
            "I book and pay.\n\nStopped.\n\nDone before the stop: `book`.\n\n"
            "It is unknown whether this took effect: `pay`."
        )
        assert await it.ask("and now?") == "fine"
        results = it.provider.requests[-1].messages[2].tool_results
        texts = [getattr(result.content[0], "text", "") for result in results]
        assert texts[0] == "booked"
        assert texts[1].startswith("Outcome unknown: stopped by the user")
        assert texts[2] == "Cancelled by user before this tool finished."
        assert it.said()[-2][1].count("[Stopped by the user.]") == 1
        assert violations(it.provider.requests[-1].messages) == []


@pytest.mark.parametrize("how", ["command", "button"])
async def test_a_stop_ends_a_download_and_the_next_message_is_answered(
    tmp_path: Path, how: str
) -> None:
    async with bed(tmp_path, ["fine"]) as it:
        it.channel.hold_files = True
        picture = Attachment("image", "p", "photo.jpg", "image/jpeg")
        await it.bridge.receive(replace(it.channel.message("look"), attachments=(picture,)))
        await it.channel.fetching.wait()
        if how == "button":
            await it.bridge.receive(it.channel.press(it.channel.replies[0]))
        else:
            await it.send("/cancel")
        await it.until(lambda: it.channel.finals)
        await it.bridge.idle()
        assert it.channel.finals == ["Stopped."]
        assert it.provider.requests == []
        assert await it.ask("and now?") == "fine"
        assert it.said()[-1] == ("user", "and now?")


async def test_a_second_stop_says_that_it_is_being_stopped(tmp_path: Path) -> None:
    async with bed(tmp_path, ["A long answer."], stall=asyncio.Event()) as it:
        it.channel.hold_after = 0
        await it.send("hi")
        await it.provider.streaming.wait()
        await it.send("/cancel")
        await it.send("/cancel")
        it.channel.go_on.set()
        await it.until(lambda: len(it.channel.finals) == 2)
        await it.bridge.idle()
        assert sorted(it.channel.finals) == ["A long\n\nStopped.", "It is being stopped already."]


async def test_a_stop_whose_answer_waits_for_the_platform_is_acknowledged_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.intake.acts.MARK_AFTER_S", 0)
    async with bed(tmp_path, ["A long answer."], stall=asyncio.Event()) as it:
        it.channel.hold_after = 0
        await it.send("hi")
        await it.provider.streaming.wait()
        stop = await it.send("/cancel")
        await it.until(lambda: (stop.message_id, True) in it.channel.marks)
        assert it.channel.finals == []
        it.channel.go_on.set()
        await it.bridge.idle()
        assert it.channel.marks[-1] == (stop.message_id, False)
        assert it.channel.finals == ["A long\n\nStopped."]


async def test_a_stop_right_after_the_answer_says_that_it_is_complete(tmp_path: Path) -> None:
    async with bed(tmp_path, ["Here."]) as it:
        await it.ask("hi")
        assert await it.ask("/cancel") == "Nothing is running; the last answer is complete."


async def test_a_stop_right_after_the_answer_does_not_depend_on_what_is_stored_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bed(tmp_path, ["Here."]) as it:
        stored, close = asyncio.Event(), it.services.inbox.close

        async def closing(ids: Sequence[int], outcome: str) -> None:
            await stored.wait()
            await close(ids, outcome)

        monkeypatch.setattr(it.services.inbox, "close", closing)
        await it.send("hi")
        await it.until(lambda: it.channel.finals)
        await it.send("/cancel")
        await it.until(lambda: len(it.channel.finals) == 2)
        assert it.channel.finals[1] == "Nothing is running; the last answer is complete."
        stored.set()
        await it.bridge.idle()


async def test_a_stop_drops_waiting_messages_with_their_number_and_a_way_back(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["A long answer.", "b", "c"], stall=asyncio.Event()) as it:
        await it.send("a")
        await it.provider.streaming.wait()
        for text in ("b", "c"):
            await it.send(text)
        await it.send("/cancel")
        await it.until(lambda: len(it.channel.finals) == 2)
        await it.bridge.idle()
        assert it.channel.finals[1] == "Waiting messages that I dropped: 2."
        notice = it.channel.replies[1]
        assert [button.label for button in notice.buttons] == ["Ask them now"]
        assert sorted(it.channel.marks[-2:]) == sorted(
            (mark, False) for mark, waits in it.channel.marks[:2] if waits
        )
        it.provider.stall = None
        await it.bridge.receive(it.channel.press(notice))
        await it.until(lambda: len(it.channel.finals) == 3)
        await it.bridge.idle()
        assert it.said()[-1] == ("user", "b\n\nc")
        assert it.channel.notices == ["Asked after all: 2."]
        await it.bridge.receive(it.channel.press(notice))
        await it.until(lambda: len(it.channel.notices) == 2)
        assert it.channel.notices[1] == "There is nothing left to ask."


async def test_somebody_elses_waiting_message_stays(tmp_path: Path) -> None:
    async with bed(tmp_path, ["A long answer.", "for bo"], stall=asyncio.Event()) as it:
        where = {"chat": "team", "private": False}
        await it.send("a", **where)  # type: ignore[arg-type]
        await it.provider.streaming.wait()
        await it.send("b", person="bo", **where)  # type: ignore[arg-type]
        it.provider.stall = None
        await it.send("/cancel", **where)  # type: ignore[arg-type]
        await it.until(lambda: len(it.channel.finals) == 2)
        await it.bridge.idle()
        assert it.channel.finals == ["A long\n\nStopped.", "for bo"]


async def test_a_stop_that_arrives_late_drops_nothing_that_was_written_after_it(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["A long answer.", "b"], stall=asyncio.Event()) as it:
        first = await it.send("a")
        await it.provider.streaming.wait()
        second = await it.send("b")
        between = first.sent_at + (second.sent_at - first.sent_at) / 2
        await it.bridge.receive(replace(it.channel.message("/cancel"), sent_at=between))
        it.provider.stall = None
        await it.until(lambda: len(it.channel.finals) == 2)
        await it.bridge.idle()
        assert it.channel.finals == ["A long\n\nStopped.", "b"]


async def test_a_message_that_is_stopped_while_its_rest_is_awaited_is_not_answered(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["never"]) as it:
        long = it.channel.message("x" * 4000)
        await it.bridge.receive(replace(long, more_expected_s=0.2))
        await it.send("/cancel")
        await it.bridge.idle()
        assert it.channel.finals == ["Waiting messages that I dropped: 1."]
        assert it.provider.requests == []
        rows = await it.database.read("SELECT outcome FROM inbox WHERE kind = 'turn'")
        assert [row[0] for row in rows] == ["cancelled"]


async def test_a_stop_that_comes_with_the_question_drops_it_or_stops_it_but_never_both(
    tmp_path: Path,
) -> None:
    for delay in range(12):
        folder = tmp_path / str(delay)
        folder.mkdir()
        async with bed(folder, ["An answer."]) as it:
            where = {"chat": "team", "private": False}
            await it.send("/ask now", **where)  # type: ignore[arg-type]
            for _ in range(delay):
                await asyncio.sleep(0)
            await it.send("/cancel", **where)  # type: ignore[arg-type]
            await it.bridge.idle()
            finals = it.channel.finals
            dropped = "Waiting messages that I dropped: 1." in finals
            answered = any("An answer" in final for final in finals)
            assert not (dropped and answered), finals
            assert finals, "never silence"


async def test_somebody_else_may_stop_only_as_an_admin_or_where_anyone_may(
    tmp_path: Path,
) -> None:
    where = {"chat": "team", "private": False}
    for person, admins, who, stops in (
        ("bo", set[str](), "asker_and_admins", False),
        ("bo", {"bo"}, "asker_and_admins", True),
        ("owner", set[str](), "asker_and_admins", True),
        ("bo", set[str](), "anyone", True),
    ):
        folder = tmp_path / f"{person}{len(admins)}{who}"
        folder.mkdir()
        stall = asyncio.Event()
        async with bed(folder, ["A long answer."], stall=stall, who_can_stop=who) as it:  # type: ignore[arg-type]
            it.channel.admins = admins
            await it.send("a", **where)  # type: ignore[arg-type]
            await it.provider.streaming.wait()
            press = it.channel.press(it.channel.replies[0], person=person)
            await it.bridge.receive(press)
            await it.until(lambda: it.channel.notices)
            assert ("Stopped." in it.channel.notices) is stops, (person, admins, who)
            stall.set()
            await it.bridge.idle()


async def test_a_stop_in_another_thread_lists_the_persons_runs_with_a_button_each(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["A long answer."] * 2, stall=asyncio.Event()) as it:
        for thread in ("1", "2"):
            message = it.channel.message("hi", chat="team", private=False)
            address = replace(message.address, thread=thread)
            await it.bridge.receive(replace(message, address=address))
        await it.until(lambda: len(it.provider.requests) == 2)
        await it.send("/cancel", chat="team", private=False)
        await it.until(lambda: it.channel.finals)
        (final,) = it.channel.finals
        assert final.startswith("Nothing is running here")
        notice = it.channel.replies[-1]
        assert len(notice.buttons) == 2
        for button in range(2):
            await it.bridge.receive(it.channel.press(notice, button=button))
        await it.bridge.idle()
        stopped = [reply.final for reply in it.channel.replies[:2]]
        assert all(text is not None and text.endswith("Stopped.") for text in stopped)


async def test_an_edit_into_a_command_is_not_carried_out_and_says_so(tmp_path: Path) -> None:
    stall = asyncio.Event()
    async with bed(tmp_path, ["An answer."], stall=stall) as it:
        await it.send("hi")
        await it.provider.streaming.wait()
        edit = replace(it.channel.message("/cancel"), command=None, edited_command=True)
        theirs = it.channel.message("/ban eve", chat="team", private=False)
        await it.bridge.receive(replace(theirs, command=None, edited_command=True))
        await it.bridge.receive(edit)
        await it.until(lambda: it.channel.finals)
        assert "edited into a command" in it.channel.finals[-1]
        stall.set()
        await it.bridge.idle()
        assert "An answer." in it.channel.finals


async def test_a_stop_in_mid_delivery_leaves_the_rest_unsent_and_the_answer_stored(
    tmp_path: Path,
) -> None:
    long = "word " * 3_000
    async with bed(tmp_path, [long]) as it:
        it.channel.hold_after = 2
        await it.send("hi")
        await it.until(lambda: it.channel.replies and len(it.channel.replies[0].parts) == 2)
        await it.send("/cancel")
        await it.until(lambda: len(it.channel.finals) == 2)
        await it.bridge.idle()
        assert it.channel.finals[1] == "Stopped after part 2 of 4."
        rows = await it.database.read("SELECT body FROM messages WHERE role = 'assistant'")
        assert long.strip() in rows[0][0]


async def test_a_stop_that_cannot_be_stored_has_acted_and_is_answered_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.intake.acts.STORE_WAIT_S", 0)
    async with bed(tmp_path, ["A long answer."], stall=asyncio.Event()) as it:
        await it.send("hi")
        await it.provider.streaming.wait()

        async def failing(*_: object) -> None:
            await asyncio.sleep(0.01)
            raise StoreUnavailable("the disk is full")

        monkeypatch.setattr(it.services.inbox, "put_stop", failing)
        with pytest.raises(NotStored):
            await it.send("/cancel")
        await it.until(lambda: it.channel.finals)
        await it.bridge.idle()
        assert it.channel.finals == ["A long\n\nStopped."]


async def test_a_stop_that_comes_again_until_it_is_stored_acts_and_is_answered_once(
    tmp_path: Path,
) -> None:
    path = tmp_path / "galata.db"
    async with bed(tmp_path, ["A long answer.", "Another."], stall=asyncio.Event()) as it:
        await it.send("hi")
        await it.provider.streaming.wait()
        stop = it.channel.message("/cancel")
        async with read_only(it.database, path):
            for _ in range(3):
                with pytest.raises(NotStored):
                    await it.bridge.receive(stop)
            await it.until(lambda: "Stopped." in it.channel.finals)
        await it.bridge.receive(stop)
        await it.until(lambda: len(it.channel.finals) == 2)
        await it.bridge.idle()
        assert sorted(it.channel.finals) == ["A long\n\nStopped.", "Stopped."]
        rows = await it.database.read("SELECT COUNT(*) FROM inbox WHERE state = 'open'")
        assert rows[0][0] == 0


async def test_what_a_stop_has_ended_does_not_come_back_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "SETTLE_GRACE_S", 0.1)
    async with bed(tmp_path, ["A long answer."], stall=asyncio.Event()) as it:
        await it.send("one")
        await it.provider.streaming.wait()
        await it.send("two")
        it.channel.hold_after = 0  # nothing of what follows gets out before the crash
        await it.send("/cancel")
        late = it.channel.message("three, after the stop")
        await it.bridge.receive(replace(late, sent_at=late.sent_at + timedelta(seconds=1)))
    async with bed(tmp_path, ["the third"]) as it:
        await it.bridge.resume()
        await it.bridge.idle()
        assert "the third" in it.channel.finals
        asked = [text for role, text in it.said() if role == "user"]
        assert asked[-1].endswith("three, after the stop")
        assert "two" not in asked


async def test_the_press_of_an_answer_that_is_over_takes_its_button_away(tmp_path: Path) -> None:
    async with bed(tmp_path, ["Here."]) as it:
        await it.ask("hi")
        await it.bridge.receive(it.channel.press(it.channel.replies[0]))
        await it.until(lambda: it.channel.notices)
        assert it.channel.notices == ["That answer is already complete."]
        assert len(it.channel.spent) == 1


async def test_a_strangers_press_is_answered_to_them_alone(tmp_path: Path) -> None:
    async with bed(tmp_path, ["A long answer."], stall=asyncio.Event()) as it:
        await it.send("hi", person="owner", chat="elsewhere", private=False)
        await it.provider.streaming.wait()
        await it.bridge.receive(it.channel.press(it.channel.replies[0], person="eve"))
        await it.until(lambda: it.channel.notices)
        assert it.channel.finals == []


@pytest.mark.parametrize("words", ["/cancel", "stop", "Stop.", "STOP!", "停止"])
async def test_a_stop_ends_a_compaction_that_waits_for_its_summary(
    tmp_path: Path, words: str
) -> None:
    answers = [f"a{i} " * 200 for i in range(4)]
    async with bed(tmp_path, [*answers, "The boat is blue.", "last"]) as it:
        for number in range(4):
            await it.ask(f"q{number}")
        it.provider.streaming.clear()
        it.provider.stall = asyncio.Event()
        before = len(it.channel.finals)
        await it.send("/compact the boat")
        await it.provider.streaming.wait()
        await it.send(words)
        await it.bridge.idle()
        assert it.channel.finals[before:] == ["Stopped."], "and the compaction says nothing"
        it.provider.stall = None
        context = await it.services.conversations.context(1)
        assert context.boundary is None
        open_rows = await it.database.read("SELECT COUNT(*) FROM inbox WHERE state = 'open'")
        assert open_rows[0][0] == 0, "no start takes it up again"
        assert await it.ask("and?") == "last"
        await it.send("/cancel")
        await it.bridge.idle()
        assert "Nothing is running" in it.channel.finals[-1]


async def test_a_compaction_is_not_stopped_by_somebody_else(tmp_path: Path) -> None:
    answers = [f"a{i} " * 200 for i in range(4)]
    async with bed(tmp_path, [*answers, "The boat is blue."]) as it:
        for number in range(4):
            await it.ask(f"q{number}")
        it.provider.streaming.clear()
        stall = it.provider.stall = asyncio.Event()
        await it.send("/compact")
        await it.provider.streaming.wait()
        await it.send("/cancel", person="2")
        stall.set()
        await it.bridge.idle()
        assert any("A summary now stands for" in said for said in it.channel.finals)


async def test_runs_in_other_threads_are_listed_with_a_stop_each_that_tells_them_apart(
    tmp_path: Path,
) -> None:
    stall = asyncio.Event()
    async with bed(tmp_path, ["One.", "Two."], stall=stall) as it:
        sent_at = datetime.now(UTC) - timedelta(seconds=5)
        sent_at -= timedelta(seconds=sent_at.second == 59)  # both within one minute
        times = [sent_at, sent_at + timedelta(seconds=1)]
        for asked, thread in zip(times, ("t1", "t2"), strict=True):
            message = it.channel.message("hi", chat="team", private=False)
            place = replace(message.address, thread=thread)
            await it.bridge.receive(replace(message, address=place, sent_at=asked))
        await it.until(lambda: len(it.provider.requests) == 2)
        await it.send("/cancel", chat="team", private=False)
        await it.until(lambda: any(len(reply.buttons) == 2 for reply in it.channel.replies))
        listed = next(reply for reply in it.channel.replies if len(reply.buttons) == 2)
        assert [button.label for button in listed.buttons] == [
            f"Stop the one of {asked:%H:%M:%S}" for asked in times
        ]
        await it.bridge.receive(it.channel.press(listed, button=1))
        await it.until(lambda: len(it.channel.finals) == 2)
        stall.set()
        await it.bridge.idle()
        assert len({"One.", "Two."} & set(it.channel.finals)) == 1, "one was stopped"
