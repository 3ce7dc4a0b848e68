"""`galata setup`, typed on a terminal against the local platforms and model endpoints."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bridge.config import load
from tests.bridge.cli.scripted import ScriptedTerminal, environ, piped, terminal
from tests.servers.anthropic import AnthropicServer
from tests.servers.anthropic_rules import Rules
from tests.servers.llm import LlmRequest, LlmServer
from tests.servers.openai import OpenAIServer
from tests.servers.slack import SlackServer
from tests.servers.telegram import TelegramServer

CTRL_C, CTRL_D = b"\x03", b"\x04"


@dataclass
class World:
    telegram: TelegramServer
    llm: LlmServer
    home: Path
    env: dict[str, str]

    def terminal(self, *words: str):
        return terminal("setup", *words, cwd=self.home, env=self.env)

    @property
    def config(self) -> Path:
        return self.home / "config.yaml"

    @property
    def secrets(self) -> Path:
        return self.home / ".env"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    rules = Rules(models=("claude-haiku-5-5",))
    async with TelegramServer() as telegram, AnthropicServer(rules) as llm:
        env = environ(
            tmp_path,
            TELEGRAM_BASE_URL=telegram.base_url.removesuffix("/bot"),
            ANTHROPIC_BASE_URL=llm.base_url,
        )
        yield World(telegram, llm, tmp_path, env)


async def answer_all(person: ScriptedTerminal, world: World, zone: str = "") -> None:
    """The four questions, without a mistake."""
    await person.expect("Bot token")
    person.type(world.telegram.token)
    await person.expect("fine: @galata_test_bot")
    await person.expect("Key of Anthropic")
    person.type(world.llm.api_key)
    await person.expect("fine: claude-haiku-5-5 answers")
    await person.expect("Time zone [Europe/Berlin]")
    person.type(zone)
    await person.expect("Spending limit per month, in USD [20]")
    person.type("")


async def owner_code(person: ScriptedTerminal) -> str:
    await person.expect("https://t.me/galata_test_bot?start=own_")
    await person.expect("▀")  # the QR code
    found = re.search(r"\?start=(own_[A-Za-z0-9_-]+)", person.shown)
    assert found is not None
    return found[1]


async def end_bot(person: ScriptedTerminal) -> None:
    """Ctrl-C once it runs: it has shown its link."""
    person.press(CTRL_C)
    assert await person.ended() == 0


async def test_four_questions_lead_to_the_first_answer(world: World) -> None:
    async with world.terminal() as person:
        await answer_all(person, world, zone="Asia/Tokyo")
        await person.expect("The bot starts now")
        code = await owner_code(person)
        chat = world.telegram.private(world.telegram.user("Ana", language_code="en"))
        chat.send(f"/start {code}")
        await chat.wait_for_count(1)
        world.llm.answer("Good morning!")
        chat.send("hello")
        await chat.wait_for_text("Good morning!")
        await end_bot(person)
        assert world.telegram.token not in person.shown
        assert world.llm.api_key not in person.shown
    assert world.llm.refusals == []
    assert_well_written(world)


def assert_well_written(world: World) -> None:
    """A short configuration that says what was answered, its secrets apart and private."""
    text = world.config.read_text()
    assert len(text.splitlines()) <= 15
    assert world.telegram.token not in text
    assert world.llm.api_key not in text
    assert world.secrets.stat().st_mode & 0o777 == 0o600
    assert (world.home / "data").stat().st_mode & 0o777 == 0o700
    config = load(world.config, {})
    assert config.timezone == "Asia/Tokyo"
    assert config.limits.cost_per_month_usd == 20
    assert config.models[config.model].price is not None
    assert config.channels.telegram is not None
    assert config.channels.telegram.token.get_secret_value() == world.telegram.token
    assert config.channels.telegram.base_url == world.env["TELEGRAM_BASE_URL"]
    assert sorted(path.name for path in world.home.iterdir()) == [".env", "config.yaml", "data"]


async def test_every_wrong_answer_is_told_and_asked_again(world: World) -> None:
    async with world.terminal() as person:
        await person.expect("Bot token")
        person.type("nonsense")
        await person.expect("is not a bot token")
        await person.expect("Bot token")
        person.type("999:other")
        await person.expect("Telegram does not know this token")
        await person.expect("Bot token")
        person.type("")
        await person.expect("nothing was typed")
        await person.expect("Bot token")
        person.type(world.telegram.token)
        await person.expect("Key of Anthropic")
        person.type("")
        await person.expect("nothing was typed")
        await person.expect("Key of Anthropic")
        person.type("sk-ant-api03-wrong")
        await person.expect("the key is refused")
        await person.expect("Key of Anthropic")
        person.type(world.llm.api_key)
        await person.expect("Time zone")
        person.type("Europe/Berln")
        await person.expect("did you mean Europe/Berlin?")
        person.type("")
        for limit in ("much", "-1", "nan", "inf"):
            await person.expect("Spending limit")
            person.type(limit)
            await person.expect("\r\n  ")
        await person.expect("Spending limit")
        person.type("$0.005")
        await owner_code(person)
        assert "sk-ant-api03-wrong" not in person.shown
        assert "999:other" not in person.shown
        await end_bot(person)
    assert load(world.config, {}).limits.cost_per_month_usd == 0.005


async def test_keys_of_the_environment_are_offered_and_never_beat_what_was_typed(
    world: World,
) -> None:
    world.env["TELEGRAM_BOT_TOKEN"] = world.telegram.token
    world.env["ANTHROPIC_API_KEY"] = "sk-ant-api03-old"
    async with world.terminal() as person:
        await person.expect("Enter: that of TELEGRAM_BOT_TOKEN, …")
        person.type("")
        await person.expect("Enter: that of ANTHROPIC_API_KEY")
        person.type(world.llm.api_key)
        await person.expect("Time zone")
        person.type("")
        await person.expect("Spending limit")
        person.type("")
        await person.expect("ANTHROPIC_API_KEY is set differently in the environment")
        await owner_code(person)
        await end_bot(person)


@pytest.mark.parametrize(("control", "code"), [(CTRL_C, 130), (CTRL_D, 1)])
async def test_leaving_early_writes_nothing(world: World, control: bytes, code: int) -> None:
    async with world.terminal() as person:
        await person.expect("Bot token")
        person.type(world.telegram.token)
        await person.expect("Key of Anthropic")
        await person.expect(": ")
        assert await person.leave(control) == code
        assert "Traceback" not in person.shown
    assert list(world.home.iterdir()) == []


async def test_it_needs_a_terminal(world: World) -> None:
    code, _, errors = await piped("setup", cwd=world.home, env=world.env)
    assert code == 2
    assert "needs a terminal" in errors


async def test_slack_takes_two_tokens_and_an_openai_key(tmp_path: Path) -> None:
    async with SlackServer() as slack, OpenAIServer() as llm:
        env = environ(
            tmp_path,
            SLACK_BASE_URL=slack.base_url,
            OPENAI_BASE_URL=llm.base_url,
            GALATA_MODEL="test-model",
        )
        async with terminal("setup", "--slack", cwd=tmp_path, env=env) as person:
            await person.expect("galata slack manifest")
            for tokens, told in (
                (("xoxb-wrong", slack.app_token), "channels.slack.bot_token"),
                ((slack.bot_token, "xapp-wrong"), "channels.slack.app_token"),
                (("wrong", slack.app_token), "begins with xoxb-"),
                ((slack.bot_token, slack.app_token), "fine: "),
            ):
                await person.expect("Bot token")
                person.type(tokens[0])
                await person.expect("App-level token")
                person.type(tokens[1])
                await person.expect(told)
            await person.expect("Key of")
            person.type(llm.api_key)
            await person.expect("test-model answers")
            await person.expect("its price is not known")
            await person.expect("Time zone")
            person.type("")
            await person.expect("Spending limit")
            person.type("")
            await person.expect("own_")
            await end_bot(person)
        config = load(tmp_path / "config.yaml", {})
        assert config.channels.slack is not None
        assert config.providers["openai"].base_url == llm.base_url
        assert llm.refusals == []


class KeylessServer(OpenAIServer):
    """An endpoint such as Ollama's."""

    def check(self, request: LlmRequest) -> None:
        """Nobody is asked for a key."""


async def test_an_endpoint_of_ones_own_may_need_no_key(world: World) -> None:
    async with KeylessServer() as llm:
        world.env |= {"OPENAI_BASE_URL": llm.base_url, "GALATA_MODEL": "tiny:latest"}
        async with world.terminal() as person:
            await person.expect("Bot token")
            person.type(world.telegram.token)
            await person.expect("Key of")
            person.type("")
            await person.expect("tiny:latest answers")
            await person.expect("Time zone")
            person.type("")
            await person.expect("Spending limit")
            person.type("")
            await owner_code(person)
            await end_bot(person)
        config = load(world.config, {})
    assert config.providers["openai"].api_key is None
    assert config.models[config.model].id == "tiny:latest"
