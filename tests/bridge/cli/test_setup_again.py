"""`galata setup` where a configuration is there already: what was answered is offered, and nothing
that somebody wrote is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bridge.config import load
from tests.bridge.cli.scripted import ScriptedTerminal
from tests.bridge.cli.setup_world import (
    CTRL_C,
    MODEL,
    OTHER_MODEL,
    SetupWorld,
    answer_all,
    answer_prices,
    end_bot,
    owner_code,
    setup_world,
)
from tests.servers.openai import OpenAIServer
from tests.servers.slack import SlackServer

TELEGRAM = """\
# My bot.
timezone:   Asia/Tokyo   # where I live
language: zh
model: mine
providers:
  anthropic: {kind: anthropic, api_key: "${ANTHROPIC_API_KEY}", base_url: "LLM",
    total_s: 600} # patient
models:
  mine: {provider: anthropic, id: claude-haiku-5-5, max_output_tokens: 1000,
    price: {input: 0.1, output: 0.5, as_of: 2026-11-05}}
channels:
  telegram:
    token: ${TELEGRAM_BOT_TOKEN}
    base_url: TELEGRAM
    allowed: [-100123]   # the family
installation:
  cost_per_day_usd: 7
  cost_per_month_usd: 12.5
"""
ENV = "# mine\nOTHER='1'\nTELEGRAM_BOT_TOKEN=TOKEN\nANTHROPIC_API_KEY=KEY\n"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[SetupWorld]:
    """With a configuration that somebody has worked on."""
    async with setup_world(tmp_path) as world:
        text = TELEGRAM.replace("LLM", world.env.pop("ANTHROPIC_BASE_URL"))
        world.config.write_text(
            text.replace("TELEGRAM\n", world.env.pop("TELEGRAM_BASE_URL") + "\n")
        )
        env = ENV.replace("TOKEN\n", f"{world.telegram.token}\n")
        world.secrets.write_text(env.replace("=KEY", f"={world.llm.api_key}"))
        yield world


async def keep(person: ScriptedTerminal, question: str, answer: str = "") -> None:
    await person.expect(question)
    await person.expect(": ")
    person.type(answer)


async def keep_token_and_model(person: ScriptedTerminal, world: SetupWorld) -> None:
    await keep(
        person, f"Bot token from @BotFather (hidden; Enter keeps …{world.telegram.token[-4:]})"
    )
    await person.expect("fine: @galata_test_bot")
    await keep(person, f"Enter keeps …{world.llm.api_key[-4:]})")
    await keep(person, f"Model [{MODEL}]")
    await person.expect(f"fine: {MODEL} answers")


async def test_enter_keeps_every_answer_and_every_byte(world: SetupWorld) -> None:
    config, secrets = world.config.read_bytes(), world.secrets.read_bytes()
    async with world.terminal() as person:
        await person.expect("config.yaml is here: Enter keeps an answer")
        await keep_token_and_model(person, world)
        await keep(person, "Time zone [Asia/Tokyo]")
        await keep(person, "Spending limit per month, in USD [12.5]")
        await owner_code(person)
        await end_bot(person)
        assert world.telegram.token not in person.shown
        assert world.llm.api_key not in person.shown
    assert world.config.read_bytes() == config
    assert world.secrets.read_bytes() == secrets
    await world.assert_accepted()


async def test_a_kept_token_is_checked_and_may_be_replaced(world: SetupWorld) -> None:
    before, secrets = world.config.read_text(), world.secrets.read_text()
    world.secrets.write_text(secrets.replace(world.telegram.token, "999:revoked-since-then"))
    async with world.terminal() as person:
        await keep(person, "Enter keeps …then")
        await person.expect("Telegram does not know this token")
        await keep(person, "Bot token", world.telegram.token)
        await person.expect("fine: @galata_test_bot")
        await keep(person, "Key of anthropic at 127.0.0.1", "sk-ant-api03-wrong")
        await keep(person, "Model", "")
        await person.expect("the key is refused")
        await keep(person, "Key of anthropic at 127.0.0.1")
        await keep(person, "Model", OTHER_MODEL)
        await person.expect(f"fine: {OTHER_MODEL} answers")
        await keep(person, "Time zone")
        await keep(person, "Spending limit")
        await owner_code(person)
        await end_bot(person)
    assert f"TELEGRAM_BOT_TOKEN='{world.telegram.token}'" in world.secrets.read_text()
    assert world.secrets.read_text().replace("'", "") == secrets.replace("'", "")
    lines = world.config.read_text().splitlines()
    assert [line for line in before.splitlines() if line not in lines] == ["model: mine"]
    config = load(world.config, {})
    assert config.models[config.model].id == OTHER_MODEL
    assert config.models["mine"].max_output_tokens == 1000
    await world.assert_accepted()


async def test_the_key_of_another_provider_leads_to_it(world: SetupWorld) -> None:
    async with OpenAIServer() as llm:
        world.env |= {"OPENAI_BASE_URL": llm.base_url, "GALATA_MODEL": "test-model"}
        async with world.terminal() as person:
            await keep(person, "Bot token")
            await keep(person, "or of OpenAI", llm.api_key)
            await keep(person, "Model [test-model]")
            await person.expect("fine: test-model answers")
            await answer_prices(person)
            await keep(person, "Time zone")
            await keep(person, "Spending limit")
            await owner_code(person)
            await end_bot(person)
        await world.assert_accepted()
        config = load(world.config, {})
        assert config.models[config.model].provider == "openai"
        assert config.providers["openai"].base_url == llm.base_url
        assert config.providers["anthropic"].total_s == 600


async def test_a_lost_secret_is_asked_for_and_only_what_is_new_changes(world: SetupWorld) -> None:
    before = world.config.read_text()
    world.secrets.unlink()
    async with world.terminal() as person:
        await keep(person, "Bot token from @BotFather (hidden)")
        await person.expect("nothing was typed")
        await keep(person, "Bot token", world.telegram.token)
        await keep(person, "Key of", world.llm.api_key)
        await keep(person, "Model")
        await keep(person, "Time zone", "Europe/Paris")
        await keep(person, "Spending limit", "0")
        await person.expect("with 0 the bot would never answer")
        await keep(person, "Spending limit", "30")
        await owner_code(person)
        await end_bot(person)
    after = before.replace("Asia/Tokyo", "Europe/Paris").replace("12.5", "30")
    assert world.config.read_text() == after
    await world.assert_accepted()


async def test_slack_is_added_to_telegram_and_changed_alone(world: SetupWorld) -> None:
    before, secrets = world.config.read_text(), world.secrets.read_text()
    async with SlackServer() as slack:
        world.env["SLACK_BASE_URL"] = slack.base_url
        async with world.terminal("--slack") as person:
            await person.expect("config.yaml is here: Slack is added")
            await keep(person, "Bot token of Slack (xoxb-...) (hidden)", slack.bot_token)
            await keep(person, "App-level token of Slack (xapp-...) (hidden)", slack.app_token)
            await person.expect("fine: ")
            await person.expect("Written: .env, config.yaml.")
            await owner_code(person)
            await end_bot(person)
            assert "Key of" not in person.shown
        both = world.config.read_text()
        line = (
            '  slack: {bot_token: "${SLACK_BOT_TOKEN}", app_token: "${SLACK_APP_TOKEN}",'
            f' base_url: "{slack.base_url}"}}\n'
        )
        assert both == before.replace("installation:", f"{line}installation:")
        assert world.secrets.read_text().startswith(secrets)
        await world.assert_accepted()
        async with world.terminal("--slack") as person:
            await keep(person, "Bot token of Slack (xoxb-...) (hidden; Enter keeps …)")
            await keep(person, "App-level token")
            await keep(person, "Key of")
            await keep(person, "Model")
            await keep(person, "Time zone")
            await keep(person, "Spending limit")
            await person.expect("Written: nothing")
            await owner_code(person)
            await end_bot(person)
    assert world.config.read_text() == both


async def test_telegram_is_added_to_slack_and_what_slack_lacks(world: SetupWorld) -> None:
    async with SlackServer() as slack:
        text = world.config.read_text()
        start, end = text.index("  telegram:"), text.index("installation:")
        address = text[start:end].partition("base_url: ")[2].split()[0]
        only_slack = (
            f"{text[:start]}  slack: # work\n    bot_token: ${{SLACK_BOT_TOKEN}}\n"
            f"    app_token: {slack.app_token}\n    base_url: {slack.base_url}\n{text[end:]}"
        )
        world.config.write_text(only_slack)
        world.env["TELEGRAM_BASE_URL"] = address
        async with world.terminal() as person:
            await person.expect("Telegram is added")
            await keep(person, f"Enter: that of TELEGRAM_BOT_TOKEN, …{world.telegram.token[-4:]}")
            await person.expect("fine: @galata_test_bot")
            await keep(
                person, "Bot token of Slack (xoxb-...) (hidden)", slack.bot_token
            )  # it lacks
            await keep(person, "App-level token of Slack (xapp-...) (hidden; Enter keeps …)")
            await owner_code(person)
            await end_bot(person)
            assert "Key of" not in person.shown
    line = f'  telegram: {{token: "${{TELEGRAM_BOT_TOKEN}}", base_url: "{address}"}}\n'
    assert world.config.read_text() == only_slack.replace("installation:", f"{line}installation:")
    await world.assert_accepted()


BROKEN = "timezone: Nowhere\nmine: yes\ninstallation: {cost_per_month_usd: -1}\n"


async def test_an_invalid_file_is_kept_unless_somebody_says_so(world: SetupWorld) -> None:
    world.config.write_text(BROKEN)
    async with world.terminal() as person:
        await person.expect("config.yaml:1:1 timezone: is no IANA time zone")
        await person.expect("config.yaml:2:1 mine: unknown key")
        await person.expect("config.yaml:3:16 installation.cost_per_month_usd: must be 0.0 or more")
        await keep(person, "keep a copy of it as config.yaml.old? [y/N]")
        await person.expect("Nothing was changed.")
        assert await person.ended() == 1
    assert world.config.read_text() == BROKEN
    assert len(list(world.home.iterdir())) == 2


async def test_an_invalid_file_stays_as_a_copy(world: SetupWorld) -> None:
    address = world.config.read_text().partition("    base_url: ")[2].split()[0]
    world.env |= {"TELEGRAM_BASE_URL": address, "ANTHROPIC_BASE_URL": world.llm.base_url}
    world.config.write_bytes(b"a: \xff\n")
    (world.home / "config.yaml.old").write_text("older")
    async with world.terminal() as person:
        await person.expect("config.yaml:1:4 syntax: a byte that is no UTF-8")
        await keep(person, "keep a copy of it as config.yaml.old2?", "y")
        await answer_all(person, world)
        await owner_code(person)
        await end_bot(person)
    copy = world.home / "config.yaml.old2"
    assert copy.read_bytes() == b"a: \xff\n"
    assert copy.stat().st_mode & 0o777 == 0o600
    assert (world.home / "config.yaml.old").read_text() == "older"
    assert len(world.config.read_text().splitlines()) <= 15
    assert world.secrets.read_text().startswith("# mine\nOTHER='1'\n")
    await world.assert_accepted()


@pytest.mark.parametrize("answered", range(6))
async def test_leaving_at_any_question_leaves_the_files(world: SetupWorld, answered: int) -> None:
    """Question 0: that about an invalid file."""
    if not answered:
        world.config.write_text(BROKEN)
    before = {path: path.read_bytes() for path in world.home.iterdir()}
    questions = ("Bot token", "Key of", "Model", "Time zone", "Spending limit")
    async with world.terminal() as person:
        for question in questions[: max(answered - 1, 0)]:
            await keep(person, question, "Europe/Paris" if question == "Time zone" else "")
        await person.expect(questions[answered - 1] if answered else "[y/N]")
        await person.expect(": ")
        assert await person.leave(CTRL_C) == 130
        assert "Traceback" not in person.shown
    assert {path: path.read_bytes() for path in world.home.iterdir()} == before


async def test_what_somebody_writes_during_the_questions_is_not_lost(world: SetupWorld) -> None:
    secrets = world.secrets.read_bytes()
    async with world.terminal() as person:
        await keep_token_and_model(person, world)
        await keep(person, "Time zone", "Europe/Paris")
        await person.expect("Spending limit")
        world.config.write_text("# by hand\n")
        person.type("")
        await person.expect("config.yaml has been changed meanwhile; nothing was written")
        assert await person.ended() == 1
    assert world.config.read_text() == "# by hand\n"
    assert world.secrets.read_bytes() == secrets


async def test_what_cannot_be_reached_is_told_and_asked_again(world: SetupWorld) -> None:
    world.telegram.fail_next("getMe", drop=True)
    world.llm.fail(529, "Overloaded")
    async with world.terminal() as person:
        await keep(person, "Bot token")
        await person.expect("Telegram cannot be reached")
        await keep(person, "Bot token")
        await person.expect("fine: @galata_test_bot")
        await keep(person, "Key of")
        await keep(person, "Model")
        await person.expect("cannot be reached or is out of order")
        await person.expect("Key of")
        await person.expect(": ")
        assert await person.leave(CTRL_C) == 130


async def test_a_check_that_hangs_can_be_left(world: SetupWorld) -> None:
    before = {path: path.read_bytes() for path in world.home.iterdir()}
    world.telegram.fail_next("getMe", stall=True)
    async with world.terminal() as person:
        await keep(person, "Bot token")
        await world.telegram.wait_for_call("getMe")
        assert await person.leave(CTRL_C) == 130
        assert "Traceback" not in person.shown
    assert {path: path.read_bytes() for path in world.home.iterdir()} == before
