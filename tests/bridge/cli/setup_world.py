"""The local platforms and model endpoints that `galata setup` is typed against."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bridge.cli.scripted import ScriptedTerminal, environ, piped, terminal
from tests.servers.anthropic import AnthropicServer
from tests.servers.anthropic_rules import Rules
from tests.servers.llm import LlmServer
from tests.servers.telegram import TelegramServer

CTRL_C, CTRL_D = b"\x03", b"\x04"
MODEL, OTHER_MODEL = "claude-haiku-5-5", "claude-sonnet-5-5"


@dataclass
class SetupWorld:
    """A folder, and what its environment points to."""

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

    async def assert_accepted(self) -> None:
        """`galata config check` finds nothing, and both files are private."""
        code, out, errors = await piped(
            "config", "check", "--config", "config.yaml", cwd=self.home, env=self.env
        )
        assert (code, out) == (0, "config.yaml: fine\n"), errors
        for path in (self.config, self.secrets):
            assert path.stat().st_mode & 0o777 == 0o600


@asynccontextmanager
async def setup_world(home: Path) -> AsyncIterator[SetupWorld]:
    """Telegram and Anthropic, running."""
    rules = Rules(models=(MODEL, OTHER_MODEL))
    async with TelegramServer() as telegram, AnthropicServer(rules) as llm:
        env = environ(
            home,
            TELEGRAM_BASE_URL=telegram.base_url.removesuffix("/bot"),
            ANTHROPIC_BASE_URL=llm.base_url,
        )
        yield SetupWorld(telegram, llm, home, env)


async def answer_all(person: ScriptedTerminal, world: SetupWorld, zone: str = "") -> None:
    """The four questions of a first run, without a mistake."""
    await person.expect("Bot token")
    person.type(world.telegram.token)
    await person.expect("fine: @galata_test_bot")
    await person.expect("Key of Anthropic")
    person.type(world.llm.api_key)
    await person.expect(f"fine: {MODEL} answers")
    await person.expect("Time zone [Europe/Berlin]")
    person.type(zone)
    await person.expect("Spending limit per month, in USD [20]")
    person.type("")


async def answer_prices(person: ScriptedTerminal, read: str = "0", written: str = "0") -> None:
    """Of a model whose price is not known."""
    for tokens, price in (("input", read), ("output", written)):
        await person.expect(f"USD per million {tokens} tokens")
        person.type(price)


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
