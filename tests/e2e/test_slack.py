"""Slack end to end: the real SDKs, the local Slack, a strict local model endpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.bed import App, config, llm_server, running, slack_settings
from tests.servers.llm import LlmServer, tool
from tests.servers.pictures import noise_png, sent_sizes
from tests.servers.slack import Conversation, Message, SlackServer, User


@dataclass
class World:
    """`closed` is a channel in which only Ana has access, `open` one in which everybody has."""

    slack: SlackServer
    llm: LlmServer
    app: App
    ana: User
    dm: Conversation
    closed: Conversation
    open: Conversation


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with SlackServer() as slack, llm_server() as llm:
        ana = slack.user("Ana", locale="en-US")
        dm = slack.dm(ana)
        closed = slack.channel("closed", members=[ana])
        everybody = slack.channel("open", members=[ana])
        settings = slack_settings(slack, owners=[ana.id], allowed=[everybody.id])
        made = config(llm, slack=settings)
        async with running(made, tmp_path) as app:
            await slack.wait_for_connection(1)
            yield World(slack, llm, app, ana, dm, closed, everybody)
        assert slack.violations == [], "blocks that Slack would refuse"


async def test_a_direct_message_gets_a_streamed_answer_in_one_message(world: World) -> None:
    reply = world.llm.answer("Hello **Ana**, how are you today?").stall_after(1)
    world.dm.send("hi")
    await reply.reached.wait()
    await world.slack.wait_for(lambda: any(m.buttons for m in world.dm.from_bot))
    reply.release()
    final = await world.dm.wait_for_text("Hello **Ana**, how are you today?")
    assert not final.buttons
    assert len(world.dm.from_bot) == 1


async def test_a_mention_in_a_channel_is_answered_in_its_thread_once(world: World) -> None:
    channel = world.slack.channel("general", members=[world.ana])
    world.llm.answer("In the thread.")
    asked = channel.send("<@BOT> what is up?", sender=world.ana)
    answer = await channel.wait_for_text("In the thread.")
    assert answer.thread_ts == asked.ts
    assert [request.last_user_text for request in world.llm.requests] == ["[Ana#1] what is up?"]
    world.llm.answer("Still here.")
    channel.send("<@BOT> and now?", sender=world.ana, thread=asked)
    await channel.wait_for_text("Still here.")
    assert "what is up?" in str(world.llm.requests[-1].messages)


async def test_a_picture_of_12_mb_reaches_the_model(world: World) -> None:
    file = world.slack.file("scan.png", noise_png(2_300, 1_800), "image/png", world.ana)
    assert len(file.content) > 12_000_000
    world.llm.answer("Noise.")
    world.dm.send("what is this?", files=[file])
    await world.dm.wait_for_text("Noise.")
    assert sent_sizes(world.llm.requests[-1]) == [(1_568, 1_227)]


async def test_a_tool_is_called_and_answers(world: World) -> None:
    world.llm.answer(tool("current_time", {}))
    world.llm.answer("It is late.")
    world.dm.send("what time is it?")
    await world.dm.wait_for_text("It is late.")


@pytest.mark.parametrize("how", ["slash", "word", "button"])
async def test_stop_ends_a_stalled_stream(world: World, how: str) -> None:
    reply = world.llm.answer("A very long answer, indeed.").stall_after(1)
    world.dm.send("hi")
    await reply.reached.wait()
    await world.slack.wait_for(lambda: any(m.buttons for m in world.dm.from_bot))
    preview = next(message for message in world.dm.from_bot if message.buttons)
    if how == "button":
        world.dm.press(preview, "Stop", world.ana)
    elif how == "word":
        world.dm.send("stop")
    else:
        world.dm.slash("/galata", "cancel", world.ana)
    stopped = await world.dm.wait_for_text("Stopped.")
    assert not stopped.buttons
    await world.llm.wait_for(lambda: world.llm.requests[-1].disconnected)
    world.llm.answer("fine")
    world.dm.send("go on")
    await world.dm.wait_for_text("fine")


async def test_help_names_commands_as_slack_takes_them(world: World) -> None:
    world.dm.slash("/galata", "help", world.ana)
    told = (await world.dm.wait_for_text("/galata new")).shown
    for name in ("ask", "cancel", "new", "status"):
        assert f"/galata {name}" in told
        assert f" /{name}" not in told
        assert f"\n/{name}" not in told
    assert "Commands do not work in threads" in told
    assert "as a reply" not in told


async def test_the_word_stop_works_in_a_channels_thread(world: World) -> None:
    channel = world.slack.channel("general", members=[world.ana])
    reply = world.llm.answer("A very long answer, indeed.").stall_after(1)
    asked = channel.send("<@BOT> hi", sender=world.ana)
    await reply.reached.wait()
    channel.send("stop", sender=world.ana, thread=asked)
    await channel.wait_for_text("Stopped.")


async def stalled(world: World, channel: Conversation) -> Message:
    """The preview of an answer to Ana that is under way, with its button."""
    reply = world.llm.answer("A very long answer, indeed.").stall_after(1)
    channel.send("<@BOT> hi", sender=world.ana)
    await reply.reached.wait()
    return await world.slack.wait_for(
        lambda: next((one for one in channel.from_bot if one.buttons), None)
    )


async def test_the_slash_command_in_a_channel_lists_ones_run_in_a_thread_with_its_stop(
    world: World,
) -> None:
    channel = world.closed
    preview = await stalled(world, channel)
    channel.slash("/galata", "cancel", world.ana)
    listed = await world.slack.wait_for(lambda: next(iter(channel.ephemerals(world.ana)), None))
    (stop,) = listed.buttons
    assert not world.llm.requests[-1].disconnected
    channel.press(listed, stop, world.ana)
    stopped = await channel.wait_for_text("Stopped.")
    assert stopped.ts == preview.ts
    await world.llm.wait_for(lambda: world.llm.requests[-1].disconnected)
    await world.slack.wait_for(lambda: not stopped.buttons)
    channel.press(listed, stop, world.ana)  # there is nothing more to stop: the list goes
    await world.slack.wait_for(lambda: not listed.buttons)
    assert channel.from_bot == [stopped]


async def test_a_press_by_somebody_without_access_is_answered_to_them_alone(world: World) -> None:
    channel = world.closed
    preview = await stalled(world, channel)
    eve = world.slack.user("Eve")
    channel.members.append(eve)
    press = channel.press(preview, "Stop", eve)
    (notice,) = await world.slack.wait_for(lambda: channel.ephemerals(eve))
    await world.slack.wait_for(lambda: press.acknowledged)
    assert notice.thread_ts == preview.thread_ts
    assert channel.from_bot == [preview]
    assert channel.ephemerals(world.ana) == []
    assert not world.llm.requests[-1].disconnected
    channel.press(preview, "Stop", world.ana)
    assert await channel.wait_for_text("Stopped.") is preview


async def test_an_admin_of_the_workspace_may_stop_what_another_asked(world: World) -> None:
    channel = world.open
    preview = await stalled(world, channel)
    admin, member = world.slack.user("Ada", is_admin=True), world.slack.user("Max")
    channel.members += [admin, member]
    channel.press(preview, "Stop", member)
    await world.slack.wait_for(lambda: channel.ephemerals(member))
    assert not world.llm.requests[-1].disconnected
    channel.press(preview, "Stop", admin)
    assert await channel.wait_for_text("Stopped.") is preview


async def test_a_message_that_is_edited_into_a_cancel_stops_nothing_and_says_so(
    world: World,
) -> None:
    reply = world.llm.answer("A very long answer, indeed.").stall_after(1)
    asked = world.dm.send("hi")
    await reply.reached.wait()
    world.dm.edit(asked, "!cancel")
    await world.dm.wait_for_text("edited into a command")
    assert not world.llm.requests[-1].disconnected
    reply.release()
    await world.dm.wait_for_text("A very long answer, indeed.")


async def test_a_restart_keeps_the_conversation(world: World) -> None:
    world.llm.answer("Noted.")
    world.dm.send("My cat is called Pablo.")
    await world.dm.wait_for_text("Noted.")
    await world.app.stop()
    await world.app.start()
    world.llm.answer("Pablo.")
    world.dm.send("What is my cat called?")
    await world.dm.wait_for_text("Pablo.")
    assert "My cat is called Pablo." in str(world.llm.requests[-1].messages)


async def test_what_was_written_during_an_outage_is_answered_in_order_and_once(
    world: World,
) -> None:
    world.llm.answer("Noted.")
    asked = world.open.send("<@BOT> first")
    await world.open.wait_for_text("Noted.")
    world.llm.answer("Hello.")
    world.dm.send("hi")
    await world.dm.wait_for_text("Hello.")
    await world.app.stop()
    # Slack has given up to send these again.
    world.open.send("<@BOT> second", thread=asked, deliver=False)
    world.dm.send("are you", deliver=False)
    world.dm.send("there?", deliver=False)
    world.llm.default = lambda _: "Yes."
    await world.app.start()

    def asked_then() -> list[str]:
        return [request.last_user_text for request in world.llm.requests[2:]]

    def answered() -> bool:
        answers = [message.text for message in (*world.dm.from_bot, *world.open.from_bot)]
        said = " ".join(asked_then())
        all_asked = "there?" in said and "second" in said
        return all_asked and answers.count("Yes.") == len(asked_then())

    await world.slack.wait_for(answered)
    # What waits of one person becomes one turn: whether it does depends on how fast the first is taken.
    in_dm = "\n".join(text for text in asked_then() if "second" not in text)
    assert in_dm.split() == ["are", "you", "there?"]
    assert [text for text in asked_then() if "second" in text] == ["[Ana#1] second"]
    before = len(world.llm.requests)
    await world.app.stop()
    await world.app.start()
    world.llm.answer("Once.")
    world.dm.send("once")
    await world.dm.wait_for_text("Once.")
    assert len(world.llm.requests) == before + 1


async def test_what_was_missed_is_not_hidden_by_what_came_before_the_next_restart(
    world: World,
) -> None:
    world.llm.default = lambda _: "Yes."
    world.dm.send("hi")
    await world.dm.wait_for_text("Yes.")
    await world.app.stop()
    world.dm.send("missed", deliver=False)
    busy = world.slack.rate_limit("conversations.history", 600, count=1_000)
    await world.app.start()
    await world.slack.wait_for(lambda: busy.used)
    world.dm.send("live")
    await world.slack.wait_for(lambda: len(world.dm.from_bot) == 2)
    await world.app.stop()
    busy.left = 0
    await world.app.start()
    await world.slack.wait_for(lambda: world.llm.requests[-1].last_user_text == "missed")
    await world.slack.wait_for(lambda: len(world.dm.from_bot) == 3)


async def test_a_redelivered_envelope_is_answered_once(world: World) -> None:
    world.llm.answer("Once.")
    message = world.dm.send("hi")
    await world.dm.wait_for_text("Once.")
    world.slack.deliver(message.events[0])
    world.llm.answer("Next.")
    world.dm.send("and?")
    await world.dm.wait_for_text("Next.")
    assert len(world.llm.requests) == 2


async def test_commands_answer(world: World) -> None:
    world.dm.slash("/galata", "status", world.ana)
    await world.dm.wait_for_text("This conversation")
    world.dm.slash("/galata", "cancle", world.ana)
    await world.dm.wait_for_text("I do not know /galata cancle.")
    assert not world.llm.requests


async def test_a_stranger_is_told_their_id(world: World) -> None:
    eve = world.slack.user("Eve")
    chat = world.slack.dm(eve)
    chat.send("let me in")
    await chat.wait_for_text(eve.id)
    assert world.llm.requests == []


async def test_what_was_said_during_an_outage_is_answered_where_each_message_is_a_question(
    tmp_path: Path,
) -> None:
    async with SlackServer() as slack, llm_server() as llm:
        ana = slack.user("Ana")
        team, other = slack.channel("team", members=[ana]), slack.channel("other", members=[ana])
        made = config(llm, slack=slack_settings(slack, allowed=[team.id, other.id]))
        limits = tmp_path / "groups" / "slack" / f"{team.id}.yaml"
        limits.parent.mkdir(parents=True)
        limits.write_text("answer_when: every_message\n")
        async with running(made, tmp_path):
            await slack.wait_for_connection(1)
            for number, channel in enumerate((team, other)):
                llm.answer(f"Here {number}.")
                channel.send("<@BOT> hello?", sender=ana)
                await channel.wait_for_text(f"Here {number}.")
        asked = team.send("is anybody there?", sender=ana, deliver=False)
        other.send("is anybody there?", sender=ana, deliver=False)
        llm.answer("I am back.")
        async with running(made, tmp_path):
            answer = await team.wait_for_text("I am back.")
            assert answer.thread_ts == asked.ts
        assert [request.last_user_text for request in llm.requests][2:] == [
            "[Ana#1] is anybody there?"
        ]
        assert len(other.from_bot) == 1, "nobody asked it there"
