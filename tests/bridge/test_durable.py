"""What a killed process leaves is gone on with: no answer is lost, none comes twice unsaid, no tool
runs twice. The store is copied at an instant, and another process starts on the copy."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from agent.history import violations
from agent.messages import user_text
from agent.testing import calls
from agent.tools import ToolContext, ToolOutput, ToolSpec
from bridge import lanes
from bridge.inbound import entry
from bridge.runs.loading import load
from bridge.session import chat_key
from channels.base import Attachment
from channels.errors import ReplyRefused, Uncertain
from channels.testing import PART_CHARACTERS, FakeChannel
from memory.conversations import SessionPlace
from memory.errors import StoreUnavailable
from tests.bridge.bed import Bed, bed

FOUR_PARTS = "".join(letter * PART_CHARACTERS for letter in "abcd")
PLACE = SessionPlace("fake:bot:1", "fake", "bot", "1", None)
NOTE = "may have come before"


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """What hangs in a process that counts as killed is not waited for when the test ends it."""
    monkeypatch.setattr(lanes, "SETTLE_GRACE_S", 0.1)


def killed(it: Bed, folder: Path, name: str = "after") -> Path:
    """The folder of a process that starts after this one was killed now."""
    after = folder / name
    after.mkdir()
    with (
        closing(sqlite3.connect(folder / "galata.db")) as now,
        closing(sqlite3.connect(after / "galata.db")) as then,
    ):
        now.backup(then)
    return after


async def started(it: Bed) -> None:
    await it.bridge.resume()
    await it.bridge.idle()


async def stored(it: Bed, sql: str, *row: object) -> None:
    """Until the query gives this row, or without one any row."""
    async with asyncio.timeout(10):
        while not (found := await rows(it, sql)) or (row and row not in found):  # noqa: ASYNC110 - a store has no event
            await asyncio.sleep(0.001)


async def rows(it: Bed, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in await it.database.read(sql)]


class Pay:
    """A tool with an effect; `hold` keeps it under way."""

    spec = ToolSpec(
        "pay", "Pays.", {"type": "object", "properties": {}}, parallel=False, side_effects=True
    )

    def __init__(self, hold: asyncio.Event | None = None) -> None:
        self.paid = 0
        self.begun = asyncio.Event()
        self._hold = hold

    async def run(self, arguments: object, context: ToolContext) -> ToolOutput:
        self.paid += 1
        self.begun.set()
        if self._hold is not None:
            await self._hold.wait()
        return ToolOutput.of("paid")


async def test_an_answer_that_was_stored_is_delivered_without_asking_again(tmp_path: Path) -> None:
    async with bed(tmp_path, [FOUR_PARTS]) as it:
        it.channel.hold_after = 0
        await it.send("tell me")
        await it.until(lambda: it.channel.replies and it.channel.replies[0].preview)
        await stored(it, "SELECT 1 FROM outbox")
        after = killed(it, tmp_path)
    async with bed(after) as it:
        await started(it)
        assert it.channel.finals == [FOUR_PARTS]
        assert it.provider.requests == []
        assert await rows(it, "SELECT state, outcome FROM outbox") == [("done", "delivered")]
        await started(it)
        assert len(it.channel.replies) == 1


@pytest.mark.parametrize("reading", ["open_acts", "marked", "open_sessions", "open_turns"])
async def test_a_start_whose_store_cannot_be_read_begins_nothing_and_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reading: str
) -> None:
    async with bed(tmp_path, ["An answer.", "Another."]) as it:
        it.channel.hold_after = 0
        await it.send("tell me")
        await stored(it, "SELECT 1 FROM outbox")
        await it.send("and now?")
        after = killed(it, tmp_path)
    async with bed(after, ["Another."]) as it:
        with monkeypatch.context() as broken:

            async def fail(*_: object) -> None:
                raise StoreUnavailable("locked")

            broken.setattr(it.services.inbox, reading, fail)
            with pytest.raises(StoreUnavailable):
                await it.bridge.resume()
        assert it.channel.replies == []
        await started(it)
        assert it.channel.finals == ["An answer.", "Another."]


async def test_a_stored_reply_shows_nothing_while_it_waits_for_another(tmp_path: Path) -> None:
    async with bed(tmp_path, ["An answer."]) as it:
        it.channel.hold_after = 0
        await it.send("tell me")
        await stored(it, "SELECT 1 FROM outbox")
        await it.send("/new")
        await stored(it, "SELECT COUNT(*) FROM outbox", 2)
        after = killed(it, tmp_path)
    async with bed(after) as it:
        it.channel.hold_after = 0
        await it.bridge.resume()
        await it.until(lambda: it.channel.replies)
        await rows(it, "SELECT 1")
        assert len(it.channel.replies) == 1
        it.channel.go_on.set()
        await it.bridge.idle()
        assert len(it.channel.replies) == 2
        assert it.channel.finals[0] == "An answer."


async def test_a_part_that_was_under_way_comes_once_more_with_a_note_and_no_third_time(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, [FOUR_PARTS]) as it:
        it.channel.stall_after = 2
        await it.send("tell me")
        await stored(it, "SELECT state FROM outbox_parts WHERE number = 2", "sending")
        first = killed(it, tmp_path)
        it.channel.go_on.set()
    async with bed(first) as it:
        it.channel.stall_after = 3
        resuming = asyncio.create_task(started(it))
        await it.until(lambda: it.channel.replies and it.channel.replies[0].parts)
        (again,) = it.channel.replies[0].parts
        assert NOTE in again
        assert again.endswith("c" * PART_CHARACTERS)
        await stored(it, "SELECT state FROM outbox_parts WHERE number = 3", "sending")
        second = killed(it, first)
        it.channel.go_on.set()
        await resuming
    async with bed(second) as it:
        await started(it)
        (rest,) = it.channel.replies[0].parts
        assert rest.endswith("d" * PART_CHARACTERS)
        assert NOTE in rest


async def test_a_reply_is_done_with_when_its_stop_button_is_gone(tmp_path: Path) -> None:
    states = "SELECT o.state, p.state FROM outbox o JOIN outbox_parts p ON p.reply_id = o.id"
    async with bed(tmp_path, ["An answer."]) as it:
        it.channel.untidy = True
        await it.send("tell me")
        await it.until(lambda: it.channel.finals)
        await stored(it, states, "open", "sent")
        after = killed(it, tmp_path)
        it.channel.go_on.set()
        await stored(it, states, "done", "sent")
    async with bed(after) as it:
        await started(it)
        assert await rows(it, states) == [("done", "sent")]
        assert [reply.parts for reply in it.channel.replies] == [[]]


async def test_a_part_that_was_sent_twice_is_not_sent_a_third_time(tmp_path: Path) -> None:
    async with bed(tmp_path, ["One part."]) as it:
        it.channel.stall_after = 0
        await it.send("tell me")
        await stored(it, "SELECT state FROM outbox_parts", "sending")
        first = killed(it, tmp_path)
        it.channel.go_on.set()
    async with bed(first) as it:
        it.channel.stall_after = 0
        await it.bridge.resume()
        await stored(it, "SELECT state FROM outbox_parts", "resending")
        second = killed(it, first)
        it.channel.go_on.set()
    async with bed(second) as it:
        await started(it)
        assert it.channel.replies[0].parts == []
        assert await rows(it, "SELECT state FROM outbox") == [("done",)]


async def test_what_a_stop_left_unsent_stays_unsent_after_a_crash(tmp_path: Path) -> None:
    async with bed(tmp_path, [FOUR_PARTS]) as it:
        it.channel.hold_after = 2
        await it.send("tell me")
        await it.until(lambda: it.channel.replies and len(it.channel.replies[0].parts) == 2)
        await it.send("/cancel")
        await stored(it, "SELECT 1 FROM outbox WHERE halted = 1")
        after = killed(it, tmp_path)
    async with bed(after) as it:
        await started(it)
        assert all("c" * PART_CHARACTERS not in text for text in it.channel.finals)
        assert await rows(it, "SELECT state FROM outbox WHERE key LIKE 'r%'") == [("done",)]


async def test_a_run_that_was_stopped_and_not_settled_is_ended_in_the_chat(tmp_path: Path) -> None:
    async with bed(tmp_path, ["A long answer."], stall=asyncio.Event()) as it:
        question = await it.send("tell me")
        await it.provider.streaming.wait()
        (run,) = (row[0] for row in await rows(it, "SELECT run_id FROM runs"))
        stop = it.channel.message("/cancel")
        key = ("fake", "bot", "1", question.event)
        await it.services.inbox.put_stop(entry(stop, PLACE, "act"), [key], (), str(run))
        after = killed(it, tmp_path)
    async with bed(after) as it:
        await started(it)
        assert it.channel.finals == ["Stopped."], "and not that nothing was running"
        assert it.provider.requests == []
        assert await rows(it, "SELECT state, outcome FROM runs") == [("settled", "cancelled")]
        assert await rows(it, "SELECT 1 FROM inbox WHERE state = 'open'") == []


async def test_a_stop_of_a_command_at_work_is_told_though_the_process_died(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        compact, stop = it.channel.message("/compact"), it.channel.message("/cancel")
        await it.services.inbox.put(entry(compact, PLACE, "act"))
        key = ("fake", "bot", "1", compact.event)
        await it.services.inbox.put_stop(entry(stop, PLACE, "act"), [key], ())
        after = killed(it, tmp_path)
    async with bed(after) as it:
        await started(it)
        assert it.channel.finals == ["Stopped."]


@pytest.mark.parametrize("stop", ["/cancel", "stop"])
async def test_what_a_stop_dropped_is_told_though_the_process_died_before(
    tmp_path: Path, stop: str
) -> None:
    async with bed(tmp_path, ["one"], stall=asyncio.Event()) as it:
        await it.send("first")
        await it.provider.streaming.wait()
        await it.send("second")
        await it.until(lambda: it.channel.marks)
        it.channel.hold_after = 0
        await it.database.write(
            lambda connection: connection.execute(
                "CREATE TRIGGER dies BEFORE UPDATE ON inbox WHEN NEW.kind = 'act' AND"
                " NEW.state = 'done' BEGIN SELECT RAISE(ABORT, 'it dies here'); END"
            )
        )
        await it.send(stop)
        await stored(it, "SELECT 1 FROM inbox WHERE kind = 'act'")
        after = killed(it, tmp_path)
    with closing(sqlite3.connect(after / "galata.db")) as database:
        database.execute("DROP TRIGGER dies")
    async with bed(after, ["two"]) as it:
        await started(it)
        told = next(reply for reply in it.channel.replies if "dropped: 1" in (reply.final or ""))
        await it.bridge.receive(it.channel.press(told))
        await it.bridge.idle()
        assert "two" in it.channel.finals
        assert await rows(it, "SELECT 1 FROM inbox WHERE state = 'open'") == []


async def test_a_tool_that_ran_before_a_crash_does_not_run_again(tmp_path: Path) -> None:
    pay = Pay()
    async with bed(tmp_path, [calls(("p", "pay", {})), "Paid."], more_tools=[pay]) as it:
        it.channel.hold_after = 0
        await it.send("pay")
        await stored(it, "SELECT COUNT(*) FROM messages WHERE ordinal = 2", 1)
        after = killed(it, tmp_path)
    again = Pay()
    async with bed(after, ["Paid."], more_tools=[again]) as it:
        await started(it)
        assert (pay.paid, again.paid) == (1, 0)
        assert it.channel.finals == ["Paid."]
        history = [m for _, m in it.said()]
        assert history.count("pay") == 1


async def test_a_tool_that_was_running_at_a_crash_is_told_as_unknown_to_both(
    tmp_path: Path,
) -> None:
    pay = Pay(asyncio.Event())
    async with bed(tmp_path, [calls(("p", "pay", {}))], more_tools=[pay]) as it:
        await it.send("pay")
        await pay.begun.wait()
        after = killed(it, tmp_path)
    again = Pay()
    async with bed(after, ["I do not know whether it was paid."], more_tools=[again]) as it:
        await started(it)
        assert again.paid == 0
        (final,) = it.channel.finals
        assert "unknown whether this took effect: `pay`" in final
        result = it.provider.requests[0].messages[-1].tool_results[0]
        assert "unknown" in str(result.content).lower() or result.is_error
        session = await it.services.conversations.open(PLACE)
        loaded = load(await it.services.conversations.context(session), None)
        assert violations([*loaded.working.messages(), user_text("and?")]) == []


async def test_a_question_is_taken_up_twice_and_then_its_person_is_told(tmp_path: Path) -> None:
    folder = tmp_path
    for taken in range(3):
        async with bed(folder, ["Never."], stall=asyncio.Event()) as it:
            if taken == 0:
                await it.send("what kills you?")
            else:
                await it.bridge.resume()
            await it.provider.streaming.wait()
            folder = killed(it, folder)
    async with bed(folder, ["fine"]) as it:
        await started(it)
        (told,) = it.channel.finals
        assert "interrupted each time" in told
        assert it.provider.requests == []
        assert await it.ask("and now?") == "fine"


async def test_a_graceful_stop_is_no_crash(tmp_path: Path) -> None:
    for taken in range(4):
        async with bed(tmp_path, ["Never."], stall=asyncio.Event()) as it:
            if taken == 0:
                await it.send("long")
            else:
                await it.bridge.resume()
            await it.provider.streaming.wait()
    async with bed(tmp_path, ["At last."]) as it:
        await started(it)
        assert it.channel.finals == ["At last."]


async def test_a_taken_over_answer_goes_on_in_the_same_message(tmp_path: Path) -> None:
    async with bed(tmp_path, ["Half of it, more."], stall=asyncio.Event()) as it:
        await it.send("tell me")
        await it.provider.streaming.wait()
        (run,) = (str(row[0]) for row in await rows(it, "SELECT run_id FROM runs"))
        await it.services.runs.previewed(run, "message 17")
        after = killed(it, tmp_path)
    async with bed(after, ["All of it."]) as it:
        await started(it)
        (reply,) = it.channel.replies
        assert reply.resumed is not None
        assert reply.resumed.preview_id == "message 17"
        assert reply.stop is not None
        assert reply.stop.request_id == run
        assert reply.final == "All of it."


async def test_a_stop_before_it_is_taken_over_ends_what_an_answer_has_shown(tmp_path: Path) -> None:
    """After an outage a chat is held for a while. The message kept its Stop button for good."""
    async with bed(tmp_path, ["Half of it, more."], stall=asyncio.Event()) as it:
        await it.send("tell me")
        await it.provider.streaming.wait()
        (run,) = (str(row[0]) for row in await rows(it, "SELECT run_id FROM runs"))
        await it.services.runs.previewed(run, "message 17")
        after = killed(it, tmp_path)
    async with bed(after, ["fine"]) as it:
        it.bridge._backlog._holds.hold(chat_key("fake", "bot", "1"))
        await it.bridge.resume()
        await it.send("/cancel")
        await it.until(lambda: it.channel.finals)
        await stored(it, "SELECT 1 FROM runs WHERE state = 'settled'")
        (reply,) = [reply for reply in it.channel.replies if reply.final]
        assert reply.final == "Stopped."
        assert reply.resumed is not None
        assert reply.resumed.preview_id == "message 17"
        it.bridge._backlog._holds.release(chat_key("fake", "bot", "1"))
        assert await it.ask("and now?") == "fine"
        assert it.said()[1] == ("assistant", "[Stopped by the user.]")


async def test_a_preview_that_is_found_after_the_run_was_settled_is_gone_on_with(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["An answer."]) as it:
        it.channel.hold_after = 0
        await it.send("tell me")
        await stored(it, "SELECT 1 FROM outbox")
        (run,) = (str(row[0]) for row in await rows(it, "SELECT run_id FROM runs"))
        await it.services.runs.previewed(run, "message 17")
        after = killed(it, tmp_path)
    async with bed(after) as it:
        await started(it)
        (reply,) = it.channel.replies
        assert reply.resumed is not None
        assert reply.resumed.preview_id == "message 17"


async def test_what_was_shown_before_a_run_began_is_found_after_a_crash(tmp_path: Path) -> None:
    group = {"chat": "team", "private": False}
    async with bed(tmp_path, ["For Bo."], scope="one_per_person") as it:
        it.channel.hold_after = 0
        await it.send("first", person="bo", **group)  # type: ignore[arg-type]
        await stored(it, "SELECT 1 FROM outbox")
        await it.send("second", person="ana", **group)  # type: ignore[arg-type]
        await it.until(lambda: len(it.channel.replies) == 2)
        journal = it.channel.replies[1].journal
        assert journal is not None
        await journal.showing()
        await journal.previewed("message 17")
        after = killed(it, tmp_path)
    async with bed(after, ["For Ana."], scope="one_per_person") as it:
        await started(it)
        reply = next(reply for reply in it.channel.replies if reply.final == "For Ana.")
        assert reply.resumed is not None
        assert reply.resumed.preview_id == "message 17"
        assert await rows(it, "SELECT DISTINCT state, takeovers FROM runs") == [("settled", 0)]
        assert it.said() == [("user", "[Ana#1] second")]


async def test_a_retry_that_was_shown_and_had_not_begun_asks_again_what_it_was_to(
    tmp_path: Path,
) -> None:
    group = {"chat": "team", "private": False}
    async with bed(tmp_path, ["One.", "For Bo."], scope="one_per_person") as it:
        assert await it.ask("how much?", person="ana", **group) == "One."
        it.channel.hold_after = 0
        await it.send("first", person="bo", **group)  # type: ignore[arg-type]
        await stored(it, "SELECT 1 FROM outbox WHERE state = 'open'")
        await it.send("/retry", person="ana", **group)  # type: ignore[arg-type]
        await it.until(lambda: len(it.channel.replies) == 3)
        journal = it.channel.replies[2].journal
        assert journal is not None
        await journal.showing()
        after = killed(it, tmp_path)
    async with bed(after, ["Two."], scope="one_per_person") as it:
        await started(it)
        assert "Two." in it.channel.finals
        assert it.said() == [("user", "[Ana#1] how much?")]


async def test_a_mark_of_waiting_that_a_crash_has_left_goes_at_the_next_start(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["one", "two"], stall=asyncio.Event()) as it:
        await it.send("first")
        await it.provider.streaming.wait()
        second = await it.send("second")
        third = await it.send("third", person="bo")
        await it.until(lambda: len(it.channel.marks) == 2)
        for row in await it.services.inbox.open_turns("fake:bot:1"):
            if row.person == "bo":
                await it.services.inbox.close([row.id], "cancelled")
        after = killed(it, tmp_path)
    async with bed(after, ["one", "two"]) as it:
        await started(it)
        marks = [(message.message_id, False) for message in (second, third)]
        assert sorted(it.channel.marks) == sorted(marks)
        await started(it)
        assert len(it.channel.marks) == 2


async def test_the_answer_to_a_command_survives_a_crash_and_comes_once(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        it.channel.hold_after = 0
        await it.send("/new")
        await stored(it, "SELECT 1 FROM outbox")
        after = killed(it, tmp_path)
    async with bed(after) as it:
        await started(it)
        assert len(it.channel.finals) == 1
        assert "new conversation" in it.channel.finals[0]
        assert await rows(it, "SELECT COUNT(*) FROM boundaries") == [(1,)]


async def test_the_last_answer_is_sent_again_from_storage(tmp_path: Path) -> None:
    async with bed(tmp_path, [FOUR_PARTS]) as it:
        assert "no answer yet" in await it.ask("/resend")
        assert await it.ask("tell me") == FOUR_PARTS
        assert "model" in (await it.ask("/status")).lower()
        assert await it.ask("/resend") == FOUR_PARTS
        assert len(it.provider.requests) == 1


async def test_what_may_not_have_arrived_is_told_and_can_be_had_again(tmp_path: Path) -> None:
    async with bed(tmp_path, ["An answer."]) as it:
        it.channel.failures = [Uncertain("cut")]
        await it.send("hi")
        await it.until(lambda: any("/resend" in text for text in it.channel.finals))
        await it.bridge.idle()
        assert "An answer." not in it.channel.finals
        assert await it.ask("/resend") == "An answer."


async def test_what_a_command_answered_is_no_promise_of_resend(tmp_path: Path) -> None:
    async with bed(tmp_path, ["An answer."]) as it:
        assert await it.ask("hi") == "An answer."
        it.channel.failures = [Uncertain("cut")]
        await it.send("/help")
        await it.until(lambda: any("send the command again" in text for text in it.channel.finals))
        assert not any("/resend" in text for text in it.channel.finals)


async def test_a_refused_answer_is_told_with_an_error_id(tmp_path: Path) -> None:
    async with bed(tmp_path, ["An answer."]) as it:
        it.channel.failures = [ReplyRefused("no")]
        await it.send("hi")
        await it.until(lambda: any("Error id" in text for text in it.channel.finals))


async def test_a_question_that_kills_while_its_files_are_read_is_given_up_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, reading = tmp_path, asyncio.Event()

    async def deadly(*_: object) -> bytes:
        reading.set()
        await asyncio.Event().wait()
        return b""

    monkeypatch.setattr(FakeChannel, "fetch", deadly)
    for taken in range(3):
        async with bed(folder, ["Never."]) as it:
            reading.clear()
            if taken == 0:
                photo = Attachment("image", "p", "photo.jpg", "image/jpeg")
                asked = replace(it.channel.message("look"), attachments=(photo,))
                await it.bridge.receive(asked)
            else:
                await it.bridge.resume()
            await reading.wait()
            folder = killed(it, folder)
    async with bed(folder) as it:
        await started(it)
        assert "interrupted each time" in it.channel.finals[0]


async def test_one_message_that_cannot_be_read_keeps_no_other_from_its_answer(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["Never."], stall=asyncio.Event()) as it:
        await it.send("one", chat="1")
        await it.send("two", chat="2")
        await it.provider.streaming.wait()
        after = killed(it, tmp_path)
    with closing(sqlite3.connect(after / "galata.db")) as database:
        database.execute("UPDATE inbox SET body = '{}' WHERE chat = '1'")
        database.execute("INSERT INTO sessions VALUES (99, 'x', 'fake', 'bot', '9', NULL, '')")
        database.commit()
    async with bed(after, ["Two."]) as it:
        await started(it)
        assert it.channel.finals == ["Two."]


async def test_what_waited_with_the_platform_is_taken_however_much_it_is(tmp_path: Path) -> None:
    async with bed(tmp_path, ["one", "all"], stall=asyncio.Event()) as it:
        await it.send("a long one")
        await it.provider.streaming.wait()
        for number in range(6):  # three may wait
            late = it.channel.message(f"late {number}")
            await it.bridge.receive(replace(late, sent_at=late.sent_at - timedelta(minutes=2)))
        assert await rows(it, "SELECT COUNT(*) FROM inbox WHERE kind = 'turn'") == [(7,)]
        assert not any("waiting here" in text for text in it.channel.finals)
