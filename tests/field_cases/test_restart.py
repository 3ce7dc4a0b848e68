"""Field cases (e), (f) and (g) about what a stop, a crash or an outage leaves behind: every question is
answered, and nothing is done, stored or sent twice.

`tests/crash` kills a real process at each of these instants and at random; here the cases stand one by
one. Asserted elsewhere already:

    93   test_intake_slack.py: an event that comes four times, also after a restart
    122  test_chats.py: what was written while the bot was down, and a long outage
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from channels.telegram import reply as telegram_reply
from memory.clock import stamp
from tests.field_cases.world import DATABASE, TelegramWorld, on_telegram
from tests.servers.llm import Text

pytestmark = pytest.mark.usefixtures("brisk")


async def turn(it: TelegramWorld, question: str, answer: str) -> None:
    """A question and its answer, which is the newest message then."""
    it.llm.answer(answer)
    it.chat.send(question)
    shown = await it.chat.wait_for_text(answer)
    await it.server.wait_for(lambda: not shown.buttons)


async def history(it: TelegramWorld) -> list[str]:
    """Whose messages are stored, in order; a run cannot have the same place twice."""
    keys = await it.rows("SELECT run_id, ordinal FROM messages")
    assert len(set(keys)) == len(keys)
    return [role for (role,) in await it.rows("SELECT role FROM messages ORDER BY id")]


async def test_after_a_crash_in_mid_run_every_later_turn_is_stored_and_sent_once(
    tmp_path: Path,
) -> None:
    """Case 114: killed in mid-run, started again, then three turns."""
    async with on_telegram(tmp_path) as it:
        reply = it.llm.answer("An answer that is cut.").stall_after(1)
        it.chat.send("first")
        await reply.reached.wait()
        await it.chat.wait_for_button("Stop")
        await it.die()
        it.llm.answer("The whole answer.")
        await it.app.start()
        await it.chat.wait_for_text("The whole answer.")
        for number in range(3):
            await turn(it, f"question {number}", f"answer {number}")
        await it.restart()
        texts = ["The whole answer.", "answer 0", "answer 1", "answer 2"]
        assert it.chat.texts == texts
        assert not any(message.buttons for message in it.chat.bot_messages)
        assert await history(it) == ["user", "assistant"] * 4
        assert it.asked() == ["first", "first", "question 0", "question 1", "question 2"]


@pytest.mark.parametrize("previewed", [True, False])
async def test_an_answer_whose_delivery_was_cut_by_a_crash_is_edited_or_marked(
    tmp_path: Path, previewed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 120: killed between "sent" and "known to be sent"; the update comes again too."""
    async with on_telegram(tmp_path) as it:
        if previewed:  # which shows its first words only
            monkeypatch.setattr(telegram_reply, "_PRIVATE_INTERVAL_S", 60.0)
        else:
            it.server.fail_next("sendMessage", text="…", drop=True)
        method = "editMessageText" if previewed else "sendMessage"
        cut = it.server.fail_next(method, text="The answer.", stall=True, acted=True)
        reply = it.llm.answer(Text(("The ", "answer."))).stall_after(1)
        question = it.chat.send("first")
        await reply.reached.wait()
        if previewed:
            await it.chat.wait_for_button("Stop")
        reply.release()
        await it.server.wait_for(lambda: cut.used)
        await it.die()
        it.server.redeliver(question)
        await it.app.start()
        await turn(it, "second", "Another.")
        *first, last = it.chat.texts
        assert last == "Another."
        assert first[0] == "The answer."
        assert len(first) == (1 if previewed else 2), "a new message may come twice, with a note"
        assert all(text.endswith("The answer.") and text != "The answer." for text in first[1:])
        assert await history(it) == ["user", "assistant"] * 2
        assert len(it.llm.requests) == 2


async def test_a_message_that_never_left_is_sent_by_one(tmp_path: Path) -> None:
    """Case 116: Telegram is out of reach when the answer is ready; what is tried again and what is
    stored are the same thing."""
    async with on_telegram(tmp_path) as it:
        reply = it.llm.answer("The answer.").stall_after(0)
        it.chat.send("first")
        await reply.reached.wait()
        await it.server.stop()
        reply.release()
        while not await it.rows("SELECT 1 FROM outbox WHERE state = 'open'"):
            pass
        await it.server.start()
        await it.chat.wait_for_text("The answer.")
        await it.restart()
        await turn(it, "second", "Another.")
        assert it.chat.texts == ["The answer.", "Another."]


@pytest.mark.parametrize("age", [timedelta(minutes=10), timedelta(hours=3)], ids=str)
async def test_a_message_that_was_received_long_ago_is_answered_at_the_start(
    tmp_path: Path, age: timedelta
) -> None:
    """Case 117: neither side would ever know; what is old is said to be late."""
    async with on_telegram(tmp_path) as it:
        it.llm.answer("Too late.").hang()
        it.chat.send("first")
        await it.llm.wait_for(lambda: len(it.llm.requests) > 0)
        await it.die()
        then = datetime.now(UTC) - age
        with sqlite3.connect(it.app.data / DATABASE) as connection:
            connection.execute("UPDATE inbox SET received_at = ?", (stamp(then),))
        connection.close()
        it.llm.answer("Here it is.")
        await it.app.start()
        await it.chat.wait_for_text("Here it is.")
        await turn(it, "second", "Another.")
        assert it.asked() == ["first", "first", "second"]
        assert await it.rows("SELECT 1 FROM inbox WHERE state = 'open'") == []


async def test_a_finished_question_that_comes_again_after_a_restart_is_ignored(
    tmp_path: Path,
) -> None:
    """Case 121: the last getUpdates of a stop was lost; 108 restarts answer nothing 108 times."""
    async with on_telegram(tmp_path) as it:
        it.llm.answer("Once.")
        question = it.chat.send("first")
        await it.chat.wait_for_text("Once.")
        for _ in range(3):
            await it.app.stop()
            it.server.redeliver(question)
            await it.app.start()
            await it.server.wait_until_confirmed()
        await turn(it, "second", "Another.")
        assert it.chat.texts == ["Once.", "Another."]
        assert it.asked() == ["first", "second"]


async def test_a_question_that_was_cut_and_comes_again_is_answered_once(tmp_path: Path) -> None:
    """Case 121: it is taken up from the store, and the update that comes again is known."""
    async with on_telegram(tmp_path) as it:
        reply = it.llm.answer("Cut.").stall_after(0)
        question = it.chat.send("first")
        await reply.reached.wait()
        await it.die()
        it.server.redeliver(question)
        it.llm.answer("Once.")
        await it.app.start()
        await it.chat.wait_for_text("Once.")
        await it.server.wait_until_confirmed()
        await turn(it, "second", "Another.")
        assert [text for text in it.chat.texts if text != "…"] == ["Once.", "Another."]
        assert await history(it) == ["user", "assistant"] * 2


async def test_a_cancel_that_comes_again_stops_nothing_that_is_newer(tmp_path: Path) -> None:
    """Case 121: commands have effects; times in Telegram are whole seconds, so that the question which
    it would hit may have the same."""
    async with on_telegram(tmp_path) as it:
        reply = it.llm.answer("A long answer.").stall_after(1)
        it.chat.send("first")
        await reply.reached.wait()
        cancel = it.chat.send("/cancel")
        await it.chat.wait_for_text("Stopped.")
        await it.server.wait_until_confirmed()
        reply = it.llm.answer(Text(("Another ", "answer."))).stall_after(1)
        it.chat.send("second", date=cancel.data["date"])
        await reply.reached.wait()
        it.server.redeliver(cancel)
        await it.server.wait_until_confirmed()
        reply.release()
        await it.chat.wait_for_text("Another answer.")


async def test_a_new_that_comes_again_after_a_restart_empties_nothing(tmp_path: Path) -> None:
    """Case 121: `/new`, an answer, a restart, `/new` again."""
    async with on_telegram(tmp_path) as it:
        again = it.chat.send("/new")
        await it.chat.wait_for_message()
        await turn(it, "My cat is called Pablo.", "Noted.")
        await it.app.stop()
        it.server.redeliver(again)
        await it.app.start()
        await it.server.wait_until_confirmed()
        await turn(it, "What is it called?", "Pablo.")
        assert "My cat is called Pablo." in str(it.llm.requests[-1].messages)
        assert len(it.chat.bot_messages) == 3
