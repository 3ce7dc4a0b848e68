"""Field cases (f) about what goes out in Slack: one owner for each answer, within the limits of Slack,
and it arrives whatever Slack answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from channels.slack.render import UPDATE_UNITS
from tests.channels.numbering import unnumbered
from tests.field_cases.world import SlackWorld, on_slack
from tests.servers.llm import Text
from tests.servers.slack import Message

pytestmark = pytest.mark.usefixtures("brisk")


async def preview(it: SlackWorld) -> Message:
    """The message with the Stop button."""
    return await it.server.wait_for(
        lambda: next((one for one in it.dm.from_bot if one.buttons), None)
    )


def whole(parts: list[Message]) -> str:
    """What was written, without its numbers and line breaks."""
    return "".join("".join(unnumbered([part.shown for part in parts])).split())


async def test_a_short_answer_is_one_message(tmp_path: Path) -> None:
    """Case 96: it fits into the first frame: not posted twice, 40 ms apart."""
    async with on_slack(tmp_path) as it:
        it.llm.answer(Text(("Yes.",)))
        it.dm.send("is it?")
        await it.dm.wait_for_text("Yes.")
        reply = it.llm.answer(Text(("No", "."))).stall_after(1)
        it.dm.send("and now?")
        await reply.reached.wait()
        shown = await preview(it)
        reply.release()
        assert await it.dm.wait_for_text("No.") is shown
        await it.restart()
        assert [message.shown for message in it.dm.from_bot] == ["Yes.", "No."]


@pytest.mark.parametrize("size", [3_001, 4_001, 12_001, 13_300])
@pytest.mark.parametrize("previewed", [True, False])
async def test_an_answer_of_any_size_arrives_in_place_of_its_preview(
    tmp_path: Path, size: int, previewed: bool
) -> None:
    """Cases 101, 102: the server refuses what Slack refuses: sections, blocks, updates that are too
    long."""
    text = ("word " * (size // 5) + "x" * (size % 5)).strip()
    async with on_slack(tmp_path) as it:
        reply = it.llm.answer(Text((text[:10], text[10:])))
        if previewed:
            reply.stall_after(1)
        it.dm.send("tell me")
        shown = None
        if previewed:
            await reply.reached.wait()
            shown = await preview(it)
            reply.release()
        await it.server.wait_for(lambda: it.dm.from_bot and not it.dm.from_bot[0].buttons)
        await it.app.stop()
        assert whole(it.dm.from_bot) == "".join(text.split())
        assert shown in (None, it.dm.from_bot[0])
        updates = [call.params["text"] for call in it.server.calls_to("chat.update")]
        assert all(len(update) <= UPDATE_UNITS for update in updates)
        await it.app.start()


@pytest.mark.parametrize("error", ["msg_too_long", "invalid_blocks", "edit_window_closed"])
async def test_an_answer_that_no_update_takes_is_a_new_message_and_the_preview_ends(
    tmp_path: Path, error: str
) -> None:
    """Case 101: the turn is done and paid; no status stays with a dead button."""
    async with on_slack(tmp_path) as it:
        reply = it.llm.answer(Text(("The whole ", "answer."))).stall_after(1)
        it.dm.send("hi")
        await reply.reached.wait()
        await preview(it)
        it.server.fail_next("chat.update", error=error, count=3, text="answer.")
        reply.release()
        await it.dm.wait_for_text("The whole answer.")
        await it.restart()
        assert [message.shown for message in it.dm.from_bot] == ["The whole answer."]
        assert not any(message.buttons for message in it.dm.from_bot)


@pytest.mark.parametrize("blank", ["", "\n", "\u200b"])
async def test_an_empty_answer_is_said_and_nothing_blank_is_posted(
    tmp_path: Path, blank: str
) -> None:
    """Case 103: `no_text`."""
    async with on_slack(tmp_path) as it:
        it.llm.answer(Text((blank,)))
        it.llm.answer(Text((blank,)))
        it.dm.send("hi")
        told = await it.dm.wait_for_text("The model gave no answer.")
        assert it.dm.from_bot == [told]
        calls = [c for c in it.server.calls if c.method in ("chat.postMessage", "chat.update")]
        assert all(call.params["text"].strip() for call in calls)


async def test_everybody_in_a_channel_sees_the_answer_grow(tmp_path: Path) -> None:
    """Case 105: streams of Slack's own have one recipient; here it is one message for all."""
    async with on_slack(tmp_path) as it:
        reply = it.llm.answer(Text(("First. ", "Second. ", "Third."))).stall_after(2)
        it.channel.send("<@BOT> hi", sender=it.ana)
        await reply.reached.wait()
        await it.channel.wait_for_text("Second.")
        reply.release()
        answer = await it.channel.wait_for_text("Third.")
        assert [text for text in answer.history if "First." in text][-1] == answer.shown
        assert answer.ephemeral_to is None
        assert not [call for call in it.server.calls if "Stream" in call.method]


@pytest.mark.parametrize("status", [429, 200])
async def test_a_rate_limit_drops_previews_and_the_answer_waits_for_its_turn(
    tmp_path: Path, status: int
) -> None:
    """Case 109: in an answer of 200 too, `ok` is read and the wait is kept."""
    async with on_slack(tmp_path) as it:
        reply = it.llm.answer(Text(("One. ", "Two. ", "Three."))).stall_after(1).stall_after(2)
        it.dm.send("hi")
        await reply.reached.wait()
        shown = await preview(it)
        limit = it.server.rate_limit("chat.update", retry_after=0.05, count=2, status=status)
        reply.release()
        await it.server.wait_for(lambda: limit.used)
        reply.release()
        assert await it.dm.wait_for_text("Three.") is shown
        assert it.dm.from_bot == [shown]
