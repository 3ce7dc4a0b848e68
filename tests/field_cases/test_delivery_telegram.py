"""Field cases (e) about what goes out in Telegram: each part of an answer once, in order, in the right
place, whatever Telegram answers.

Asserted elsewhere already:

    75, 83  test_chats.py: a group that moves, a blocked or removed bot
"""

from __future__ import annotations

from pathlib import Path

import pytest

from channels.telegram.compose import MAX_UNITS
from tests.channels.numbering import unnumbered
from tests.field_cases.world import TelegramWorld, on_telegram
from tests.servers.llm import Text
from tests.servers.telegram import Message

pytestmark = pytest.mark.usefixtures("brisk")

LONG = "".join(letter * 3_000 for letter in "abc")
"""Three messages."""
UNSURE = "may not have arrived"
NOT_MODIFIED = (
    "Bad Request: message is not modified: specified new message content and reply markup"
)
LOST = {"dropped": {"drop": True}, "reset": {"reset": True}, "bad gateway": {"status": 502}}


def without_preview(it: TelegramWorld) -> None:
    """The next answer comes without a message before it, so that it is a new one."""
    it.server.fail_next("sendMessage", text="…", drop=True)


async def ask(it: TelegramWorld, answer: str, shows: str | None = None) -> Message:
    """The message of the answer to a question."""
    it.llm.answer(answer)
    it.chat.send("hi")
    return await it.chat.wait_for_text(answer if shows is None else shows)


def topics(it: TelegramWorld) -> set[object]:
    """Where the bot has sent to."""
    return {call.params.get("message_thread_id") for call in it.server.calls_to("sendMessage")}


@pytest.mark.parametrize("how", LOST.values(), ids=LOST.keys())
async def test_a_message_that_may_have_arrived_is_not_sent_again(
    tmp_path: Path, how: dict[str, object]
) -> None:
    """Case 62: delivered, and Telegram's answer was lost: one layer tries again, and not this; no
    plain text either; nor does a restart send it again."""
    async with on_telegram(tmp_path) as it:
        without_preview(it)
        it.server.fail_next("sendMessage", text="An answer.", acted=True, **how)  # type: ignore[arg-type]
        await ask(it, "An answer.")
        await it.restart()
        await ask(it, "Another.")
        assert [text for text in it.chat.texts if UNSURE not in text] == ["An answer.", "Another."]
        assert sum(UNSURE in text for text in it.chat.texts) == 1


async def test_parts_behind_one_that_may_have_arrived_still_come(tmp_path: Path) -> None:
    """Case 63: part 2 timed out: it is not sent again, all later ones are."""
    async with on_telegram(tmp_path) as it:
        it.server.fail_next("sendMessage", text="bbb", acted=True, drop=True)
        await ask(it, LONG, "ccc")
        await it.restart()
        await ask(it, "Next.")
        *parts, _ = (text for text in it.chat.texts if UNSURE not in text)
        assert "".join(unnumbered(parts)) == LONG


async def test_a_flood_at_the_final_edit_leaves_one_message(tmp_path: Path) -> None:
    """Case 65: one owner of the final delivery."""
    async with on_telegram(tmp_path) as it:
        reply = it.llm.answer("The whole answer.").stall_after(1)
        it.chat.send("hi")
        await reply.reached.wait()
        await it.chat.wait_for_button("Stop")
        it.server.flood(it.chat, retry_after=34, count=2, method="editMessageText")
        reply.release()
        await it.chat.wait_for_text("The whole answer.")
        await ask(it, "Next.")
        assert it.chat.texts == ["The whole answer.", "Next."]


async def test_a_flood_on_previews_skips_frames_and_makes_no_new_message(tmp_path: Path) -> None:
    """Case 66: 20 frames, a flood at the fifth."""
    words = [f"word{number:02} " for number in range(20)]
    async with on_telegram(tmp_path) as it:
        reply = it.llm.answer(Text(tuple(words)))
        for chunk in range(1, 20):
            reply.stall_after(chunk)
        it.chat.send("hi")
        for number, word in enumerate(words[:19]):
            if number == 4:
                it.server.flood(it.chat, retry_after=14, count=3, method="editMessageText")
            await it.chat.wait_for_text(word.strip())
            reply.release()
        shown = await it.chat.wait_for_text("word19")
        assert it.chat.texts == ["".join(words).strip()]
        assert len(it.server.calls_to("sendMessage")) == 1
        assert len(shown.history) > 10


ODD = {
    "a_b*c": "a_b*c",
    "<script>": "<script>",
    "Name <x@y.z>": "Name x@y.z",  # Markdown's form of a link
    "**bold": "**bold",
    "```py\nprint(1)": "print(1)",
    "[x](http://a_b)": "x (http://a_b)",  # which Telegram takes for no address
    "1 < 2 && 3": "1 < 2 && 3",
    "<b>Chad</a>": "<b>Chad</a>",
}


@pytest.mark.parametrize("refused", [False, True])
async def test_what_looks_like_markup_arrives_and_a_refused_text_once_as_plain_text(
    tmp_path: Path, refused: bool
) -> None:
    """Case 67: nothing has to be escaped; refused all the same, the same text comes once without its
    formatting."""
    async with on_telegram(tmp_path) as it:
        for number, (text, shown) in enumerate(ODD.items()):
            if refused:
                description = "Bad Request: can't parse entities: Can't find end of the entity"
                without_preview(it)
                it.server.fail_next("sendMessage", text=shown, status=400, description=description)
            it.llm.answer(text)
            it.chat.send("hi")
            await it.chat.wait_for_count(number + 1)
            await it.chat.wait_for_text(shown)
        assert [message.text for message in it.chat.bot_messages] == list(ODD.values())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("!" * MAX_UNITS, id="escaped in MarkdownV2"),
        pytest.param("<" * MAX_UNITS, id="escaped in HTML"),
        pytest.param("😀" * 5_000, id="two units each"),
        pytest.param("a" * (MAX_UNITS - 1) + "😀b", id="a pair at the border"),
        pytest.param("a" * (MAX_UNITS - 8) + "👨‍👩‍👧‍👦" * 3, id="a family at the border"),
        pytest.param("x" * 9_000, id="no line break"),
    ],
)
async def test_an_answer_of_any_length_comes_whole_and_only_its_first_part_replies(
    tmp_path: Path, text: str
) -> None:
    """Cases 68, 69, 71: measured in UTF-16 units of what is shown; nothing is torn."""
    async with on_telegram(tmp_path) as it:
        question = it.group.send("/ask hi")
        it.llm.answer(text)
        await it.group.wait_for_text(text[-1])
        await it.server.wait_for(lambda: not any(m.buttons for m in it.group.bot_messages))
        parts = unnumbered(it.group.texts)
        assert "".join(parts) == text
        assert not any(part.startswith("\u200d") for part in parts)
        first, *others = it.group.bot_messages
        assert first.reply_to == question.id
        assert [message.reply_to for message in others] == [None] * len(others)


async def test_a_reply_in_the_general_topic_is_answered_there(tmp_path: Path) -> None:
    """Case 72: it carries a thread id that cannot be sent to; the conversation is the same one."""
    async with on_telegram(tmp_path, forum=True) as it:
        it.llm.answer("One.")
        asked = it.group.send("/ask one")
        await it.group.wait_for_text("One.")
        it.llm.answer("Two.")
        again = it.group.send("/ask two", reply_to=asked)
        assert again.data["message_thread_id"] == asked.id
        await it.group.wait_for_text("Two.")
        assert topics(it) == {None}
        assert "one" in str(it.llm.requests[-1].messages)
        assert [row[0] for row in await it.rows("SELECT thread FROM sessions")] == [None]


async def test_a_topic_without_a_place_is_left_out_in_the_same_chat(tmp_path: Path) -> None:
    """Case 73: General by its number 1, and a topic that is gone: never another chat."""
    async with on_telegram(tmp_path, forum=True) as it:
        it.llm.answer("One.")
        it.group.send("/ask one", message_thread_id=1, is_topic_message=True)
        await it.group.wait_for_text("One.")
        topic = it.group.open_topic("Plans")
        assert topics(it) == {None}
        reply = it.llm.answer("Two.").stall_after(0)
        it.group.send("/ask two", topic=topic)
        await reply.reached.wait()
        it.group.delete_topic(topic)
        reply.release()
        await it.group.wait_for_text("Two.")
        assert it.group.texts == ["One.", "Two."]
        assert it.group.last is not None
        assert it.group.last.thread is None
        assert it.chat.texts == []


@pytest.mark.parametrize("how", ["deleted", "not editable"])
async def test_an_answer_whose_preview_cannot_be_edited_is_a_new_message(
    tmp_path: Path, how: str
) -> None:
    """Case 79."""
    async with on_telegram(tmp_path) as it:
        reply = it.llm.answer("The whole answer.").stall_after(1)
        it.chat.send("hi")
        await reply.reached.wait()
        preview = await it.chat.wait_for_button("Stop")
        preview.editable = False
        if how == "deleted":
            it.chat.delete(preview)
        reply.release()
        answer = await it.chat.wait_for_text("The whole answer.")
        assert answer is not preview
        assert it.chat.bot_messages == [answer], "no dead button is left"


async def test_text_that_changes_nothing_visible_does_not_end_the_stream(tmp_path: Path) -> None:
    """Case 88: a line break renders to the same message; a refusal for that is success."""
    async with on_telegram(tmp_path) as it:
        reply = it.llm.answer(Text(("Analysis", "\n", "\n", "rest"))).stall_after(3)
        it.chat.send("hi")
        await reply.reached.wait()
        shown = await it.chat.wait_for_text("Analysis")
        it.server.fail_next("editMessageText", status=400, description=NOT_MODIFIED, acted=True)
        reply.release()
        await it.chat.wait_for_text("Analysis\n\nrest")
        await ask(it, "Next.")
        assert it.chat.texts == ["Analysis\n\nrest", "Next."]
        assert shown.buttons == []
