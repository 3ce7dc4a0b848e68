"""`galata setup`, typed on a terminal against the local platforms and model endpoints."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bridge.config import load
from tests.bridge.cli.scripted import environ, piped, terminal
from tests.bridge.cli.setup_world import (
    CTRL_C,
    CTRL_D,
    SetupWorld,
    answer_all,
    answer_prices,
    end_bot,
    owner_code,
    setup_world,
)
from tests.servers.llm import LlmRequest
from tests.servers.openai import OpenAIServer
from tests.servers.slack import SlackServer


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[SetupWorld]:
    async with setup_world(tmp_path) as world:
        yield world


async def test_four_questions_lead_to_the_first_answer(world: SetupWorld) -> None:
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
    await assert_well_written(world)


async def assert_well_written(world: SetupWorld) -> None:
    """A short configuration that says what was answered, its secrets apart and private."""
    text = world.config.read_text()
    assert len(text.splitlines()) <= 15
    assert world.telegram.token not in text
    assert world.llm.api_key not in text
    assert world.secrets.stat().st_mode & 0o777 == 0o600
    assert (world.home / "data").stat().st_mode & 0o777 == 0o700
    config = load(world.config, {})
    assert config.timezone == "Asia/Tokyo"
    assert config.installation.cost_per_month_usd == 20
    assert config.models[config.model].price is not None
    assert config.channels.telegram is not None
    assert config.channels.telegram.token.get_secret_value() == world.telegram.token
    assert config.channels.telegram.base_url == world.env["TELEGRAM_BASE_URL"]
    made = {path.name for path in world.home.iterdir()} - {".cache"}  # the lock of the token
    assert made == {".env", "config.yaml", "data"}
    await world.assert_accepted()


async def test_every_wrong_answer_is_told_and_asked_again(world: SetupWorld) -> None:
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
    assert load(world.config, {}).installation.cost_per_month_usd == 0.005


async def test_keys_of_the_environment_are_offered_and_never_beat_what_was_typed(
    world: SetupWorld,
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
async def test_leaving_early_writes_nothing(world: SetupWorld, control: bytes, code: int) -> None:
    async with world.terminal() as person:
        await person.expect("Bot token")
        person.type(world.telegram.token)
        await person.expect("Key of Anthropic")
        await person.expect(": ")
        assert await person.leave(control) == code
        assert "Traceback" not in person.shown
    assert list(world.home.iterdir()) == []


async def test_what_no_answer_can_mend_ends_it_with_the_reason(world: SetupWorld) -> None:
    world.env["TELEGRAM_BASE_URL"] = "example.org"
    async with world.terminal() as person:
        await person.expect("Bot token")
        person.type(world.telegram.token)
        await person.expect("TELEGRAM_BASE_URL is no address such as")
        assert await person.ended() == 1
    async with world.terminal("--config", "none/config.yaml") as person:
        await person.expect("none is no folder: create it first")
        assert await person.ended() == 1
    assert list(world.home.iterdir()) == []


async def test_it_needs_a_terminal(world: SetupWorld) -> None:
    code, _, errors = await piped("setup", cwd=world.home, env=world.env, anew=True)
    assert code == 2
    assert "needs a terminal" in errors


async def test_slack_takes_two_tokens_an_openai_key_and_a_limit(tmp_path: Path) -> None:
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
            await answer_prices(person)
            await person.expect("time zone: Europe/Berlin, this system's")
            await person.expect("Spending limit")
            person.type("")
            await person.expect("own_")
            await end_bot(person)
        config = load(tmp_path / "config.yaml", {})
        assert config.timezone == "Europe/Berlin"
        assert config.channels.slack is not None
        assert config.providers["openai"].base_url == llm.base_url
        assert llm.refusals == []


class KeylessServer(OpenAIServer):
    """An endpoint such as Ollama's."""

    def check(self, request: LlmRequest) -> None:
        """Nobody is asked for a key."""


async def test_an_endpoint_of_ones_own_may_need_no_key(world: SetupWorld) -> None:
    async with KeylessServer() as llm:
        world.env |= {"OPENAI_BASE_URL": llm.base_url, "GALATA_MODEL": "tiny:latest"}
        async with world.terminal() as person:
            await person.expect("Bot token")
            person.type(world.telegram.token)
            await person.expect("Key of")
            person.type("")
            await person.expect("tiny:latest answers")
            await person.expect("its price is not known")
            for wrong in ("free", "-1", "nan"):
                await person.expect("USD per million input tokens (0: it costs nothing)")
                person.type(wrong)
                await person.expect("a number")
            await answer_prices(person, "0.25", "$1")
            await person.expect("Time zone")
            person.type("")
            await person.expect("Spending limit")
            person.type("")
            await owner_code(person)
            await end_bot(person)
        config = load(world.config, {})
    assert config.providers["openai"].api_key is None
    model = config.models[config.model]
    assert model.id == "tiny:latest"
    assert model.price is not None
    assert (model.price.input, model.price.output) == (0.25, 1)
