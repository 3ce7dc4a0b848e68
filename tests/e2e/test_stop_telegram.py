"""Stopping in Telegram, end to end: each way to stop, at each moment, with its sentence.

In groups the bot is asked by /ask and sees a bare "stop" only as a reply to it (privacy mode).
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiolimiter import AsyncLimiter

from tests.e2e.bed import Hanging, config, llm_server, running, telegram_settings
from tests.servers.llm import LlmServer, Reply, tool
from tests.servers.telegram import Chat, Message, Press, TelegramServer, User

GROUP = -100500
SHOWN = "A very long answ"  # the first chunk
NOT_YOURS = "Only the person who asked, an admin of this group or an owner can stop this answer."
COMPLETE = "Nothing is running; the last answer is complete."
# Each paragraph nearly fills a message.
FIVE_PARTS = "\n\n".join(f"{'word ' * 800}end of part {number}" for number in range(1, 6))


@dataclass
class World:
    telegram: TelegramServer
    llm: LlmServer
    tool: Hanging
    ana: User
    bo: User
    chat: Chat
    group: Chat

    def stalled(self) -> Reply:
        """The next answer falls silent after its first chunk."""
        return self.llm.answer("A very long answer, indeed.").stall_after(1)

    async def talk_on(self, chat: Chat, text: str = "go on") -> str:
        """One more question and its answer; the request, as the model got it."""
        self.llm.answer("fine")
        chat.send(text, sender=self.ana)
        await chat.wait_for_text("fine")
        return str(self.llm.requests[-1].body)


@pytest.fixture(autouse=True)
def without_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a chat may get in a second is tested in tests/channels/telegram; here it takes time."""

    def wide(group: bool) -> list[AsyncLimiter]:
        return [AsyncLimiter(30, 1)]

    monkeypatch.setattr("channels.telegram.limiter._chat_buckets", wide)


@pytest.fixture(params=["anthropic", "openai"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with TelegramServer() as telegram, llm_server(request.param) as llm:
        ana, bo = (telegram.user(name, language_code="en") for name in ("Ana", "Bo"))
        chat = telegram.private(ana)
        group = telegram.group("Team", members=[ana, bo], id=GROUP)
        ids = telegram_settings(telegram, owners=[str(ana.id)], allowed=[str(GROUP)])
        hanging = Hanging()
        async with running(config(llm, kind=request.param, telegram=ids), tmp_path, (hanging,)):
            await telegram.wait_for_poll()
            yield World(telegram, llm, hanging, ana, bo, chat, group)


def stop(chat: Chat, how: str, preview: Message, by: User) -> Press | None:
    """Somebody stops what the preview shows; the press, where it is one."""
    if how == "button":
        return chat.press(preview, "Stop", user=by)
    reply_to = preview if chat.id == GROUP else None
    chat.send("/cancel" if how == "command" else "Stop", sender=by, reply_to=reply_to)
    return None


HOW = pytest.mark.parametrize("how", ["command", "word", "button"])


@HOW
async def test_a_stalled_stream_ends_in_the_same_message(world: World, how: str) -> None:
    world.stalled()
    world.chat.send("hi")
    preview = await world.chat.wait_for_text(SHOWN)
    press = stop(world.chat, how, preview, world.ana)
    stopped = await world.chat.wait_for_text("Stopped.")
    assert (stopped.id, stopped.text, stopped.buttons) == (preview.id, f"{SHOWN}\n\nStopped.", [])
    await world.llm.wait_for(lambda: world.llm.requests[-1].disconnected)
    if press is not None:
        await world.telegram.wait_for(lambda: press.answered)
        assert press.answer_text == "Stopped."
    assert SHOWN in await world.talk_on(world.chat)
    assert world.chat.texts == [stopped.text, "fine"]


@HOW
async def test_a_hanging_tool_ends_and_the_chat_reads_what_is_unknown(
    world: World, how: str
) -> None:
    world.llm.answer("I pay now.", tool("pay"))
    world.chat.send("pay it")
    preview = await world.chat.wait_for_text("I pay now.")
    await world.tool.begun.wait()
    stop(world.chat, how, preview, world.ana)
    stopped = await world.chat.wait_for_text("Stopped.")
    unknown = "It is unknown whether this took effect: pay."
    assert stopped.id == preview.id
    assert (stopped.text, stopped.buttons) == (f"I pay now.\n\nStopped.\n\n{unknown}", [])
    await world.tool.ended.wait()
    assert "Outcome unknown: stopped by the user" in await world.talk_on(world.chat)
    assert world.chat.texts == [stopped.text, "fine"]


@pytest.mark.parametrize("how", ["command", "word"])
async def test_what_waits_is_dropped_with_its_number_and_a_button_that_asks_it(
    world: World, how: str
) -> None:
    world.stalled()
    world.chat.send("one")
    preview = await world.chat.wait_for_text(SHOWN)
    waiting = [world.chat.send(text) for text in ("two", "three")]
    await world.telegram.wait_for(lambda: all(message.reactions for message in waiting))
    stop(world.chat, how, preview, world.ana)
    await world.chat.wait_for_text("Stopped.")
    notice = await world.chat.wait_for_button("Ask them now")
    assert notice.text == "Waiting messages that I dropped: 2."
    await world.telegram.wait_for(lambda: not any(message.reactions for message in waiting))
    world.llm.answer("Two and three.")
    press = world.chat.press(notice, "Ask them now")
    await world.chat.wait_for_text("Two and three.")
    assert world.llm.requests[-1].last_user_text == "two\n\nthree"
    assert press.answer_text == "Asked after all: 2."
    await world.telegram.wait_for(lambda: not notice.buttons)


async def test_the_button_stops_its_own_answer_and_what_waits_is_asked(world: World) -> None:
    world.stalled()
    world.chat.send("one")
    preview = await world.chat.wait_for_text(SHOWN)
    waiting = world.chat.send("two")
    await world.telegram.wait_for(lambda: waiting.reactions)
    world.llm.answer("The second.")
    stop(world.chat, "button", preview, world.ana)
    await world.chat.wait_for_text("The second.")
    assert world.chat.texts == [f"{SHOWN}\n\nStopped.", "The second."]


@pytest.mark.parametrize("how", ["command", "word"])
async def test_somebody_elses_answer_goes_on_when_ones_own_question_is_dropped(
    world: World, how: str
) -> None:
    reply = world.stalled()
    world.group.send("/ask one", sender=world.ana)
    preview = await world.group.wait_for_text(SHOWN)
    waiting = world.group.send("/ask two", sender=world.bo)
    await world.telegram.wait_for(lambda: waiting.reactions)
    stop(world.group, how, preview, world.bo)
    await world.group.wait_for_text("Waiting messages that I dropped: 1.")
    reply.release()
    await world.group.wait_for_text("A very long answer, indeed.")
    assert len(world.llm.requests) == 1


@HOW
async def test_in_mid_delivery_the_parts_that_are_not_under_way_stay_unsent(
    world: World, how: str
) -> None:
    under_way = world.telegram.fail_next("sendMessage", stall=True, text="end of part 2")
    world.llm.answer(FIVE_PARTS)
    world.chat.send("tell me everything")
    await world.telegram.wait_for(lambda: under_way.used)
    press = stop(world.chat, how, await world.chat.wait_for_button("Stop"), world.ana)
    await world.telegram.wait_until_confirmed()
    under_way.release()
    await world.chat.wait_for_text("Stopped after part 2 of 5.")
    await world.telegram.wait_for(lambda: not any(m.buttons for m in world.chat.bot_messages))
    ends = [text[-11:] for text in world.chat.texts]
    assert ends == ["part 1\n\n1/5", "part 2\n\n2/5", "part 2 of 5."[-11:]]
    if press is not None:
        await world.telegram.wait_for(lambda: press.answered)
        assert press.answer_text == "Stopped."
    assert "end of part 5" in await world.talk_on(world.chat)  # the history has all of it


@pytest.mark.parametrize("how", ["command", "button"])
@pytest.mark.parametrize("who", ["member", "admin"])
async def test_another_member_of_a_group_may_not_stop_and_its_admin_may(
    world: World, how: str, who: str
) -> None:
    """A bare "stop" of theirs is a message like any other: they have asked nothing."""
    reply = world.stalled()
    world.group.send("/ask hi", sender=world.ana)
    preview = await world.group.wait_for_text(SHOWN)
    if who == "admin":
        world.group.make_admin(world.bo)
    press = stop(world.group, how, preview, world.bo)
    if who == "member":
        if press is None:
            await world.group.wait_for_text(NOT_YOURS)
        else:
            await world.telegram.wait_for(lambda: press.answered)
            assert press.answer_text == NOT_YOURS
        reply.release()
        await world.group.wait_for_text("A very long answer, indeed.")
    else:
        stopped = await world.group.wait_for_text("Stopped.")
        assert (stopped.id, stopped.buttons) == (preview.id, [])
    assert SHOWN in await world.talk_on(world.group, "/ask go on")


@pytest.mark.parametrize("how", ["command", "word", "button"])
async def test_the_second_stop_says_that_it_is_being_stopped(world: World, how: str) -> None:
    world.stalled()
    world.chat.send("hi")
    preview = await world.chat.wait_for_text(SHOWN)
    last_word = world.telegram.fail_next("editMessageText", stall=True, text="Stopped.")
    stop(world.chat, "command", preview, world.ana)
    await world.telegram.wait_for(lambda: last_word.used)
    press = stop(world.chat, how, preview, world.ana)
    if press is None:
        await world.chat.wait_for_text("It is being stopped already.")
    else:
        await world.telegram.wait_for(lambda: press.answered)
        assert press.answer_text == "It is being stopped already."
    last_word.release()
    await world.chat.wait_for_text(f"{SHOWN}\n\nStopped.")


async def test_after_the_answer_there_is_nothing_to_stop(world: World) -> None:
    world.chat.send("/cancel")
    await world.chat.wait_for_text("Nothing is running.")
    reply = world.stalled()
    world.chat.send("hi")
    data = (await world.chat.wait_for_button("Stop")).keyboard[0]["callback_data"]
    reply.release()
    answer = await world.chat.wait_for_text("A very long answer, indeed.")
    world.chat.send("/cancel")
    await world.chat.wait_for_text(COMPLETE)
    late = world.chat.press_data(answer, data)
    await world.telegram.wait_for(lambda: late.answered)
    assert late.answer_text == "That answer is already complete."
    asked = len(world.llm.requests)
    world.chat.send("stop")  # typed while the end came in: no question
    await world.telegram.wait_for(lambda: world.chat.texts.count(COMPLETE) == 2)
    assert len(world.llm.requests) == asked


@pytest.mark.parametrize("how", ["forward", "inline bot"])
async def test_a_stop_word_that_somebody_else_wrote_stops_nothing(world: World, how: str) -> None:
    reply = world.stalled()
    world.chat.send("hi")
    await world.chat.wait_for_text(SHOWN)
    world.llm.answer("It says stop.")
    if how == "forward":
        world.chat.forward("stop", world.bo)
    else:
        world.chat.send("stop", via_bot=world.bo)
    await world.telegram.wait_until_confirmed()
    reply.release()
    await world.chat.wait_for_text("It says stop.")
    assert "A very long answer, indeed." in world.chat.texts


async def test_a_message_that_is_edited_into_a_cancel_stops_nothing(world: World) -> None:
    reply = world.stalled()
    asked = world.chat.send("hi")
    await world.chat.wait_for_text(SHOWN)
    world.chat.edit(asked, "/cancel")
    await world.chat.wait_for_text("A message that is edited into a command is not carried out.")
    reply.release()
    await world.chat.wait_for_text("A very long answer, indeed.")


async def test_a_stop_that_is_older_than_the_question_stops_nothing(world: World) -> None:
    reply = world.stalled()
    world.chat.send("hi")
    await world.chat.wait_for_text(SHOWN)
    world.chat.send("/cancel", date=int(time.time()) - 60)
    await world.chat.wait_for_text("older than the question")
    reply.release()
    await world.chat.wait_for_text("A very long answer, indeed.")


async def test_in_another_topic_each_running_answer_is_listed_with_its_stop(
    world: World,
) -> None:
    forum = world.telegram.group("Forum", members=[world.ana], forum=True)
    topics = [forum.open_topic(name, world.ana) for name in ("Tides", "Winds")]
    world.stalled()
    forum.send("/ask hi", sender=world.ana, topic=topics[0])
    preview = await forum.wait_for_text(SHOWN)
    forum.send("/cancel", sender=world.ana, topic=topics[1])
    listed = await forum.wait_for_text("Nothing is running here")
    (label,) = listed.buttons
    forum.press(listed, label, user=world.ana)
    stopped = await forum.wait_for_text("Stopped.")
    assert (stopped.id, stopped.buttons) == (preview.id, [])
