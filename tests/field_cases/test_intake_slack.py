"""Field cases (f) about what comes in from Slack: each message once, whatever comes again, and nothing
that bots or Slack itself made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from channels.slack import channel as slack_channel
from channels.slack.connection import ConnectionTiming
from tests.field_cases.world import SlackWorld, on_slack
from tests.servers.slack import SlackServer

pytestmark = pytest.mark.usefixtures("brisk")


async def acknowledged(server: SlackServer) -> None:
    """Until Slack has heard of everything."""
    await server.wait_for(lambda: all(one.done for one in server.deliveries))


async def next_answer(it: SlackWorld, text: str = "Next.") -> None:
    """What came before has been taken in by then."""
    it.llm.answer(text)
    it.dm.send("and?")
    answer = await it.dm.wait_for_text(text)
    await it.server.wait_for(lambda: not answer.buttons)


async def test_an_event_that_comes_four_times_is_answered_once_also_after_a_restart(
    tmp_path: Path,
) -> None:
    """Case 93: `retry_attempt` 0, 1, 0 (!), 1, the same envelope too."""
    async with on_slack(tmp_path) as it:
        it.llm.answer("Once.")
        (event,) = it.dm.send("hi").events
        for attempt in (1, 0, 1):
            it.server.socket.repeat(event, same_envelope=attempt == 0, attempt=attempt)
        await it.dm.wait_for_text("Once.")
        await it.restart()
        await it.server.wait_for_connection(1)
        for attempt in (0, 1):
            it.server.socket.repeat(event, same_envelope=False, attempt=attempt)
        await next_answer(it)
        assert it.asked() == ["hi", "and?"]
        assert [message.shown for message in it.dm.from_bot] == ["Once.", "Next."]


async def test_a_mention_in_a_thread_is_one_question_of_one_conversation(tmp_path: Path) -> None:
    """Case 95: `message` and `app_mention` of the same text."""
    async with on_slack(tmp_path) as it:
        root = it.channel.send("A plan.", sender=it.bo)
        it.llm.answer("In the thread.")
        asked = it.channel.send("<@BOT> what is up?", sender=it.ana, thread=root)
        types = sorted(event.payload["event"]["type"] for event in asked.events)
        assert types.count("app_mention") == 1
        assert "message" in types
        await it.channel.wait_for_text("In the thread.")
        await acknowledged(it.server)
        await next_answer(it)
        assert len(it.llm.requests) == 2
        assert [message.thread_ts for message in it.channel.from_bot] == [root.ts]
        keys = await it.rows("SELECT chat, thread FROM sessions ORDER BY id")
        assert keys == [(it.channel.id, root.ts), (it.dm.id, None)]


async def test_unfurls_and_replies_in_a_thread_repeat_no_question(tmp_path: Path) -> None:
    """Case 97: each comes as `message_changed` of the question."""
    async with on_slack(tmp_path) as it:
        it.llm.answer("Hi.")
        asked = it.channel.send("<@BOT> say hi to https://example.org", sender=it.ana)
        await it.channel.wait_for_text("Hi.")
        for _ in range(3):
            it.channel.unfurl(asked)
            it.channel.send("thanks", sender=it.bo, thread=asked)
        await acknowledged(it.server)
        await next_answer(it)
        assert len(it.channel.from_bot) == 1
        assert len(it.llm.requests) == 2


async def test_another_bot_in_a_thread_is_not_heard(tmp_path: Path) -> None:
    """Case 99: two bots would thank each other for ever."""
    async with on_slack(tmp_path) as it:
        other = it.server.user("Other", is_bot=True)
        it.channel.members.append(other)
        it.llm.answer("Done.")
        asked = it.channel.send("<@BOT> do it", sender=it.ana)
        await it.channel.wait_for_text("Done.")
        it.channel.send("✓", sender=other, thread=asked)
        it.channel.send("<@BOT> ✓", sender=other, thread=asked)
        await acknowledged(it.server)
        await next_answer(it)
        assert len(it.llm.requests) == 2


async def test_a_bot_that_is_called_into_a_thread_knows_what_was_said(tmp_path: Path) -> None:
    """Case 100: "Yes" alone means nothing; what others said is marked as theirs."""
    async with on_slack(tmp_path) as it:
        root = it.channel.send("Shall we ship on Friday?", sender=it.bo)
        it.llm.answer("Then Friday.")
        it.channel.send("<@BOT> Yes", sender=it.ana, thread=root)
        await it.channel.wait_for_text("Then Friday.")
        asked = it.llm.requests[-1].last_user_text
        assert "> " in asked
        assert asked.index("not mine") < asked.index("Shall we ship on Friday?")
        assert asked.endswith("Yes")


@pytest.mark.parametrize("how", ["refreshed", "cut", "silent"])
async def test_a_connection_that_goes_in_the_middle_of_a_run_loses_and_repeats_nothing(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 106: Slack replaces it, it breaks (the acknowledgement is lost too), or nothing comes any
    more."""
    timing = ConnectionTiming(connect_s=0.5, lost_after_s=0.1, look_s=0.02, ping_s=0.05)
    defaults = slack_channel.SlackChannel.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "connecting", timing)
    async with on_slack(tmp_path) as it:
        reply = it.llm.answer("One answer.").stall_after(1)
        (event,) = it.dm.send("hi").events
        await reply.reached.wait()
        (before,) = it.server.socket.connections
        if how == "refreshed":
            it.server.socket.disconnect("refresh_requested")
        elif how == "cut":
            it.server.socket.cut()
        else:
            it.server.socket.silence()
        await it.server.wait_for(
            lambda: any(one is not before for one in it.server.socket.connections)
        )
        it.server.socket.repeat(event, same_envelope=False, attempt=1)
        reply.release()
        await it.dm.wait_for_text("One answer.")
        await next_answer(it)
        assert it.asked() == ["hi", "and?"]
        assert len(it.dm.from_bot) == 2


async def test_a_login_page_in_place_of_a_picture_is_said_and_stored_nowhere(
    tmp_path: Path,
) -> None:
    """Case 108: a missing scope gives HTTP 200 with a web page; the scope is named."""
    async with on_slack(tmp_path) as it:
        it.server.scopes = [scope for scope in it.server.scopes if scope != "files:read"]
        file = it.server.file("x.png", b"\x89PNG\r\n\x1a\n", "image/png", it.ana)
        it.dm.send("what is this?", files=[file])
        told = await it.dm.wait_for_text("files:read")
        await next_answer(it)
        assert "DOCTYPE" not in told.shown
        stored = str(await it.rows("SELECT body FROM messages"))
        assert "image" not in stored
        assert "DOCTYPE" not in stored
        assert it.asked() == ["and?"]
