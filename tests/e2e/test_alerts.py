"""Owners hear of what is wrong, on real platforms and through the one that still works."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.e2e.bed import config, llm_server, running, slack_settings, telegram_settings
from tests.servers.slack import Conversation, SlackServer
from tests.servers.telegram import Chat, TelegramServer


class World:
    """Ana owns the bot in Telegram, Bo in Slack."""

    def __init__(self, telegram: TelegramServer, slack: SlackServer) -> None:
        self.telegram = telegram
        self.slack = slack
        self.ana = telegram.user("Ana")
        self.bo = slack.user("Bo", locale="en-US")

    @property
    def chat(self) -> Chat:
        return self.telegram.private(self.ana)

    @property
    def dm(self) -> Conversation:
        return self.slack.dm(self.bo)


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr("bridge.operation.guard.LOOK_S", 0.01)
    monkeypatch.setattr("channels.supervise.FIRST_WAIT_S", 0.01)
    monkeypatch.setattr("channels.supervise.LONGEST_WAIT_S", 0.01)
    async with TelegramServer() as telegram, SlackServer() as slack, llm_server() as llm:
        made = World(telegram, slack)
        made.chat.send("/start")  # a bot may not write first
        settings = config(
            llm,
            telegram=telegram_settings(telegram, owners=(str(made.ana.id),)),
            slack=slack_settings(slack, owners=[made.bo.id]),
        )
        async with running(settings, tmp_path):
            await telegram.wait_for_poll()
            await slack.wait_for_connection(1)
            await telegram.wait_until_confirmed()
            yield made


async def test_a_channel_that_is_down_is_told_in_the_other_one_and_its_return_in_both(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.operation.guard.DOWN_AFTER", timedelta(0))
    conflict = world.telegram.fail_next("getUpdates", status=409, count=10_000)
    world.telegram.end_poll()
    await world.slack.wait_for(lambda: world.dm.from_bot)
    (told,) = world.dm.from_bot
    assert told.text.startswith("telegram receives no messages since")
    conflict.left = 0
    await world.dm.wait_for_text("telegram receives messages again.")
    await world.chat.wait_for_text("telegram receives messages again.")
    assert not [text for text in world.chat.texts if "receives no messages" in text]


async def test_a_token_that_is_revoked_while_it_runs_is_told_with_its_reason(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("channels.trust.REFUSED_AGAIN_S", ())  # it was minutes ago
    world.telegram.fail_next("getUpdates", status=401, description="Unauthorized", count=100)
    world.telegram.end_poll(401, "Unauthorized")
    await world.slack.wait_for(lambda: world.dm.from_bot)
    text = world.dm.from_bot[0].text
    assert "I have given up: channels.telegram.token: Telegram does not know this token" in text
    assert world.telegram.token not in text


async def test_a_disk_that_is_nearly_full_is_told_on_every_channel(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.operation.guard.LOW_BYTES", 10**18)
    await world.slack.wait_for(lambda: world.dm.from_bot)
    assert "is nearly full" in world.dm.from_bot[0].text
    await world.telegram.wait_for(lambda: any("nearly full" in text for text in world.chat.texts))
