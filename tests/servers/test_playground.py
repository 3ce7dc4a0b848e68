"""The playground: what a developer types reaches the bot, and what it shows is printed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.bed import config, llm_server, running, slack_settings, telegram_settings
from tests.servers.llm import LlmServer
from tests.servers.llm_script import Text
from tests.servers.playground import GROUP, Playground
from tests.servers.slack import SlackServer
from tests.servers.telegram import TelegramServer


@pytest.fixture
async def llm() -> AsyncIterator[LlmServer]:
    async with llm_server() as server:
        yield server


@pytest.fixture
async def play(llm: LlmServer, tmp_path: Path) -> AsyncIterator[Playground]:
    async with TelegramServer() as telegram, SlackServer() as slack:
        made = Playground(telegram, slack)
        settings = config(
            llm,
            telegram=telegram_settings(telegram, owners=[str(made.ana.id)], allowed=[str(GROUP)]),
            slack=slack_settings(slack, owners=[made.colleague.id]),
        )
        async with running(settings, tmp_path):
            await telegram.wait_for_poll()
            await slack.wait_for_connection()
            yield made


def shown(play: Playground, where: str) -> list[str]:
    return [text for (name, _), text in play.visible() if name == where]


@pytest.mark.parametrize("where", ["telegram", "group", "slack"])
async def test_stop_presses_the_newest_stop_button(
    play: Playground, llm: LlmServer, where: str
) -> None:
    llm.answer("A very long answer, indeed.").stall_after(1)
    play.act({"telegram": "t hi", "group": "g /ask hi", "slack": "s hi"}[where])
    server = play.slack if where == "slack" else play.telegram
    await server.wait_for(lambda: any("[Stop]" in text for text in shown(play, where)))
    (text,) = shown(play, where)
    assert text.count("[Stop]") == 1
    play.act("stop")
    await server.wait_for(lambda: any("Stopped." in text for text in shown(play, where)))
    assert f"  {where}| " in "\n".join(play.changes())


async def test_a_long_answer_is_printed_once_and_then_its_new_end(
    play: Playground, llm: LlmServer
) -> None:
    words = [f"word{number} " for number in range(200)]
    reply = llm.answer(Text(("".join(words[:100]), "".join(words[100:])))).stall_after(1)
    play.act("t hi")
    await play.telegram.wait_for(lambda: any("word99" in text for text in shown(play, "telegram")))
    first = "".join(play.changes())
    assert "word0 " in first
    reply.release()
    await play.telegram.wait_for(
        lambda: any("word199" in text and "[Stop]" not in text for text in shown(play, "telegram"))
    )
    more = "".join(play.changes())
    assert "word199" in more
    assert "word100 " in more
    assert "word50 " not in more


async def test_a_button_that_is_not_there_is_told(
    play: Playground, capsys: pytest.CaptureFixture[str]
) -> None:
    play.act("stop")
    play.act("press Ask them now")
    play.act("what?")
    play.act("")
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["(no button Stop to press)", "(no button Ask them now to press)"]
    assert lines[2].startswith("t TEXT")
