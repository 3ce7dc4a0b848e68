"""Stopping in Slack, end to end: each way to stop, at each moment, with its sentence.

Slack refuses slash commands in threads, and in a channel every question has its thread: there the word
and the button stop, and `/galata cancel` beside the threads lists one's own answers. Somebody else's
answer can therefore be stopped by its button only; their bare word is no command, and not heard. A
slash command and a press carry no time of their own, so that none is ever older than a question.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.bed import Hanging, config, llm_server, running, slack_settings
from tests.servers.llm import LlmServer, Reply, text, tool
from tests.servers.slack import Conversation, Message, SlackServer, User

SHOWN = "A very long answ"  # the first chunk
WHOLE = "A very long answer, indeed."
NOT_YOURS = "Only the person who asked, an admin of this group or an owner can stop this answer."
COMPLETE = "Nothing is running; the last answer is complete."
# Each paragraph nearly fills a message: the first takes 3,750 characters, the others 11,750.
FIVE_PARTS = "\n\n".join(
    f"{'word ' * (740 if number == 1 else 2340)}end of part {number}" for number in range(1, 6)
)


@dataclass
class World:
    slack: SlackServer
    llm: LlmServer
    tool: Hanging
    ana: User
    bo: User
    dm: Conversation
    channel: Conversation

    async def stalled(self, where: Conversation) -> tuple[Reply, Message]:
        """Ana's question is being answered, and the answer has fallen silent: it and its preview."""
        reply = self.llm.answer(WHOLE).stall_after(1)
        where.send("hi" if where is self.dm else "<@BOT> hi", sender=self.ana)
        return reply, await where.wait_for_text(SHOWN)

    async def talk_on(self, where: Conversation, thread: str | None = None) -> str:
        """One more question and its answer; the request, as the model got it."""
        self.llm.answer("fine")
        asked = "go on" if where is self.dm else "<@BOT> go on"
        where.send(asked, sender=self.ana, thread=thread)
        await where.wait_for_text("fine")
        return str(self.llm.requests[-1].body)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with SlackServer() as slack, llm_server() as llm:
        ana, bo = slack.user("Ana", locale="en-US"), slack.user("Bo", locale="en-US")
        dm, channel = slack.dm(ana), slack.channel("general", members=[ana, bo])
        ids = slack_settings(slack, owners=[ana.id], allowed=[channel.id])
        hanging = Hanging()
        async with running(config(llm, slack=ids), tmp_path, (hanging,)):
            await slack.wait_for_connection(1)
            yield World(slack, llm, hanging, ana, bo, dm, channel)
        assert slack.violations == [], "blocks that Slack would refuse"


def stop(world: World, how: str, preview: Message, by: User) -> None:
    """Somebody stops what the preview shows."""
    where = world.slack.conversation(preview.channel)
    if how == "button":
        where.press(preview, "Stop", by)
    elif how == "word":
        where.send("Stop", sender=by, thread=preview.thread_ts)
    else:
        where.slash("/galata", "cancel", by)


async def told(world: World, where: Conversation, person: User, sentence: str) -> None:
    """Until this person alone reads the sentence."""
    await world.slack.wait_for(lambda: any(sentence in m.shown for m in where.ephemerals(person)))


HOW = pytest.mark.parametrize("how", ["slash", "word", "button"])


@HOW
async def test_a_stalled_stream_ends_in_the_same_message(world: World, how: str) -> None:
    _, preview = await world.stalled(world.dm)
    stop(world, how, preview, world.ana)
    stopped = await world.dm.wait_for_text("Stopped.")
    assert (stopped.ts, stopped.shown) == (preview.ts, f"{SHOWN}\n\nStopped.")
    assert not stopped.buttons
    await world.llm.wait_for(lambda: world.llm.requests[-1].disconnected)
    if how == "button":
        await told(world, world.dm, world.ana, "Stopped.")
    assert SHOWN in await world.talk_on(world.dm)
    assert len(world.dm.from_bot) == 2


@pytest.mark.parametrize("how", ["word", "button"])
async def test_a_stalled_stream_ends_in_a_channels_thread(world: World, how: str) -> None:
    _, preview = await world.stalled(world.channel)
    stop(world, how, preview, world.ana)
    stopped = await world.channel.wait_for_text("Stopped.")
    assert stopped.ts == preview.ts
    assert not stopped.buttons
    assert SHOWN in await world.talk_on(world.channel, preview.thread_ts)


@HOW
async def test_a_hanging_tool_ends_and_the_chat_reads_what_is_unknown(
    world: World, how: str
) -> None:
    world.llm.answer("I pay now.", tool("pay"))
    world.dm.send("pay it")
    preview = await world.dm.wait_for_text("I pay now.")
    await world.tool.begun.wait()
    stop(world, how, preview, world.ana)
    stopped = await world.dm.wait_for_text("Stopped.")
    unknown = "It is unknown whether this took effect: `pay`."
    assert (stopped.ts, stopped.shown) == (preview.ts, f"I pay now.\n\nStopped.\n\n{unknown}")
    assert not stopped.buttons
    await world.tool.ended.wait()
    assert "Outcome unknown: stopped by the user" in await world.talk_on(world.dm)


@pytest.mark.parametrize("how", ["slash", "word"])
async def test_what_waits_is_dropped_with_its_number_and_a_button_that_asks_it(
    world: World, how: str
) -> None:
    _, preview = await world.stalled(world.dm)
    waiting = [world.dm.send(words) for words in ("two", "three")]
    await world.slack.wait_for(lambda: all(message.reactions for message in waiting))
    stop(world, how, preview, world.ana)
    notice = await world.dm.wait_for_text("Waiting messages that I dropped: 2.")
    await world.dm.wait_for_text("Stopped.")
    await world.slack.wait_for(lambda: not any(message.reactions for message in waiting))
    world.llm.answer("Two and three.")
    world.dm.press(notice, "Ask them now", world.ana)
    await world.dm.wait_for_text("Two and three.")
    assert world.llm.requests[-1].last_user_text == "two\n\nthree"
    await told(world, world.dm, world.ana, "Asked after all: 2.")
    await world.slack.wait_for(lambda: not notice.buttons)


async def test_the_button_stops_its_own_answer_and_what_waits_is_asked(world: World) -> None:
    _, preview = await world.stalled(world.dm)
    waiting = world.dm.send("two")
    await world.slack.wait_for(lambda: waiting.reactions)
    world.llm.answer("The second.")
    stop(world, "button", preview, world.ana)
    await world.dm.wait_for_text("The second.")
    assert preview.shown == f"{SHOWN}\n\nStopped."


async def test_somebody_elses_answer_goes_on_when_ones_own_question_is_dropped(
    world: World,
) -> None:
    reply, preview = await world.stalled(world.channel)
    waiting = world.channel.send("<@BOT> two", sender=world.bo, thread=preview.thread_ts)
    await world.slack.wait_for(lambda: waiting.reactions)
    stop(world, "word", preview, world.bo)
    await world.channel.wait_for_text("Waiting messages that I dropped: 1.")
    reply.release()
    await world.channel.wait_for_text(WHOLE)
    assert len(world.llm.requests) == 1


@HOW
async def test_in_mid_delivery_the_parts_that_are_not_under_way_stay_unsent(
    world: World, how: str
) -> None:
    under_way = world.slack.fail_next("chat.postMessage", stall=True, text="end of part 2")
    world.llm.answer(text(FIVE_PARTS, size=4000))
    world.dm.send("tell me everything")
    await world.slack.wait_for(lambda: under_way.used)
    stop(world, how, await world.dm.wait_for_text("end of part 1"), world.ana)
    await world.slack.wait_for(lambda: all(one.done for one in world.slack.deliveries))
    under_way.release()
    await world.dm.wait_for_text("Stopped after part 2 of 5.")
    await world.slack.wait_for(lambda: not any(m.buttons for m in world.dm.from_bot))
    shown = [message.shown.strip() for message in world.dm.from_bot]
    ends = [words[-11:] for words in shown]
    assert ends == ["part 1\n\n1/5", "part 2\n\n2/5", "part 2 of 5."[-11:]]
    assert "end of part 5" in await world.talk_on(world.dm)  # the history has all of it


@pytest.mark.parametrize("who", ["member", "admin"])
async def test_another_member_of_a_channel_may_not_stop_and_an_admin_may(
    world: World, who: str
) -> None:
    reply, preview = await world.stalled(world.channel)
    person = world.bo
    if who == "admin":
        person = world.slack.user("Ada", is_admin=True)
        world.channel.members.append(person)
    stop(world, "word", preview, person)  # not heard: they have asked nothing
    stop(world, "button", preview, person)
    if who == "member":
        await told(world, world.channel, person, NOT_YOURS)
        reply.release()
        await world.channel.wait_for_text(WHOLE)
    else:
        await world.channel.wait_for_text("Stopped.")
        await world.slack.wait_for(lambda: not preview.buttons)
    assert SHOWN in await world.talk_on(world.channel, preview.thread_ts)
    assert len(world.llm.requests) == 2


@HOW
async def test_the_second_stop_says_that_it_is_being_stopped(world: World, how: str) -> None:
    _, preview = await world.stalled(world.dm)
    last_word = world.slack.fail_next("chat.update", stall=True, text="Stopped.")
    stop(world, "word", preview, world.ana)
    await world.slack.wait_for(lambda: last_word.used)
    stop(world, how, preview, world.ana)
    if how == "button":
        await told(world, world.dm, world.ana, "It is being stopped already.")
    else:
        await world.dm.wait_for_text("It is being stopped already.")
    last_word.release()
    await world.dm.wait_for_text(f"{SHOWN}\n\nStopped.")


async def test_after_the_answer_there_is_nothing_to_stop(world: World) -> None:
    world.dm.slash("/galata", "cancel", world.ana)
    await world.dm.wait_for_text("Nothing is running.")
    reply, _ = await world.stalled(world.dm)
    reply.release()
    await world.dm.wait_for_text(WHOLE)
    world.dm.slash("/galata", "cancel", world.ana)
    await world.dm.wait_for_text(COMPLETE)


async def test_a_word_in_a_thread_right_after_its_answer_is_no_question(world: World) -> None:
    reply, answer = await world.stalled(world.channel)
    reply.release()
    await world.slack.wait_for(lambda: WHOLE in answer.shown and not answer.buttons)
    world.channel.send("<@BOT> cancel", sender=world.ana, thread=answer.thread_ts)
    await world.channel.wait_for_text(COMPLETE)
    assert len(world.llm.requests) == 1


async def test_a_button_that_stayed_under_an_answer_says_that_it_is_over_and_goes(
    world: World,
) -> None:
    last_part = world.slack.fail_next("chat.postMessage", stall=True, text="end of part 5")
    world.llm.answer(text(FIVE_PARTS, size=4000))
    world.dm.send("tell me everything")
    await world.slack.wait_for(lambda: last_part.used)
    refused = world.slack.fail_next("chat.update", error="edit_window_closed")
    last_part.release()
    await world.slack.wait_for(lambda: refused.used)
    first = await world.dm.wait_for_text("end of part 1")
    stop(world, "button", first, world.ana)
    await told(world, world.dm, world.ana, "That answer is already complete.")
    await world.slack.wait_for(lambda: not first.buttons)


async def test_a_message_that_is_edited_into_a_cancel_stops_nothing(world: World) -> None:
    reply = world.llm.answer(WHOLE).stall_after(1)
    asked = world.dm.send("hi")
    await world.dm.wait_for_text(SHOWN)
    world.dm.edit(asked, "/galata cancel")
    await world.dm.wait_for_text("A message that is edited into a command is not carried out.")
    reply.release()
    await world.dm.wait_for_text(WHOLE)


async def test_beside_the_threads_each_running_answer_is_listed_with_its_stop(
    world: World,
) -> None:
    _, preview = await world.stalled(world.channel)
    world.channel.slash("/galata", "cancel", world.ana)
    listed = await world.slack.wait_for(
        lambda: next((m for m in world.channel.ephemerals(world.ana) if m.buttons), None)
    )
    assert "Nothing is running here" in listed.shown
    (button,) = listed.buttons
    world.channel.press(listed, button, world.ana)
    stopped = await world.channel.wait_for_text("Stopped.")
    assert stopped.ts == preview.ts
    assert not stopped.buttons
