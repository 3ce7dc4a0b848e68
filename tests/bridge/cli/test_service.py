"""`galata service install`: a unit that systemd takes, and whose command runs the bot."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from configparser import ConfigParser
from pathlib import Path

import pytest

from bridge.cli.service import unit
from bridge.operation.signals import PATIENCE_S
from tests.bridge.cli.scripted import environ, piped
from tests.servers.anthropic import AnthropicServer
from tests.servers.telegram import TelegramServer

CONFIG = """\
timezone: UTC
model: m
providers:
  p: {kind: anthropic, api_key: "${KEY}"}
models:
  m: {provider: p, id: test-model}
"""


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        yield server


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    (tmp_path / ".env").write_text("KEY=a-key\n")
    return path


def settings(text: str) -> ConfigParser:
    parser = ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return parser


@pytest.mark.usefixtures("config")
async def test_it_writes_a_unit_and_says_what_to_do_next(tmp_path: Path) -> None:
    code, out, errors = await piped("service", "install", cwd=tmp_path, env=environ(tmp_path))
    path = tmp_path / ".config/systemd/user/galata.service"
    assert (code, errors) == (0, "")
    assert out.startswith(f"wrote {path}: it runs the bot of config.yaml on data\n")
    for command in ("systemctl --user enable --now galata", "loginctl enable-linger"):
        assert command in out
    text = path.read_text()
    made = settings(text)
    assert f'--data "{tmp_path}/data" --config "{tmp_path}/config.yaml"' in text
    assert int(made["Service"]["TimeoutStopSec"].removesuffix("s")) > PATIENCE_S + 10
    assert made["Service"]["Restart"] == "on-failure"
    assert made["Unit"]["StartLimitIntervalSec"] == "0", "it comes back once the disk is mended"
    assert "StartLimitBurst" not in made["Unit"]
    assert int(made["Service"]["RestartSec"].removesuffix("s")) >= 15, "and is no busy loop"
    assert made["Install"]["WantedBy"] == "default.target"
    assert "a-key" not in text
    code, out, _ = await piped("service", "install", cwd=tmp_path, env=environ(tmp_path))
    assert (code, out.split()[0]) == (0, "replaced")
    code, out, _ = await piped("service", "install", "--print", cwd=tmp_path, env=environ(tmp_path))
    assert (code, out) == (0, text)


async def test_it_follows_where_the_user_keeps_configurations(tmp_path: Path, config: Path) -> None:
    env = environ(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "cfg"))
    code, _, _ = await piped("service", "install", cwd=tmp_path, env=env)
    assert code == 0
    assert (tmp_path / "cfg/systemd/user/galata.service").is_file()


async def test_a_service_needs_a_file(tmp_path: Path) -> None:
    env = environ(tmp_path, ANTHROPIC_API_KEY="a-key", TELEGRAM_BOT_TOKEN="1:a")
    code, out, errors = await piped("service", "install", cwd=tmp_path, env=env)
    assert (code, out) == (1, "")
    assert errors.startswith("config.yaml is not there: a service needs a configuration file")


async def test_variables_of_the_shell_are_not_there_for_a_service(
    tmp_path: Path, config: Path
) -> None:
    (tmp_path / ".env").unlink()
    env = environ(tmp_path, KEY="a-key")
    assert (await piped("config", "check", "--config", "config.yaml", cwd=tmp_path, env=env))[
        0
    ] == 0
    code, _, errors = await piped("service", "install", cwd=tmp_path, env=env)
    assert code == 1
    assert "KEY is not set" in errors
    assert "A service does not see the variables of your shell" in errors
    assert not (tmp_path / ".config").exists()


async def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, config: Path) -> None:
    (tmp_path / ".config").touch()
    code, _, errors = await piped("service", "install", cwd=tmp_path, env=environ(tmp_path))
    assert code == 1
    assert errors.endswith("galata.service cannot be written: Not a directory\n")


def test_systemd_finds_no_fault_in_it(tmp_path: Path) -> None:
    """Where systemd is; the words of the command are checked in any case."""
    odd = tmp_path / 'a "folder" of 100% $HOME\\x'
    text = unit("/usr/bin/python3", odd, odd / "c.yaml")
    command = settings(text)["Service"]["ExecStart"]
    unescaped = command.replace("%%", "%").replace("$$", "$")
    assert shlex.split(unescaped)[-3:] == [str(odd), "--config", str(odd / "c.yaml")]
    analyze = shutil.which("systemd-analyze")
    if analyze is not None:
        (tmp_path / "galata.service").write_text(text)
        done = subprocess.run(
            [analyze, "verify", "--user", "--man=no", str(tmp_path / "galata.service")],
            env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        ours = [line for line in done.stderr.splitlines() if "galata" in line]
        assert (done.returncode, ours) == (0, [])


async def test_the_command_of_the_unit_runs_the_bot_without_a_shell(
    telegram: TelegramServer, tmp_path: Path
) -> None:
    async with AnthropicServer() as llm:
        (tmp_path / "config.yaml").write_text(f"""\
{CONFIG.replace('"${KEY}"', f'"${{KEY}}", base_url: {llm.base_url}')}
channels:
  telegram: {{token: "${{TOKEN}}", base_url: {telegram.base_url.removesuffix("/bot")}, owners: [1]}}
""")
        (tmp_path / ".env").write_text(f"KEY={llm.api_key}\nTOKEN={telegram.token}\n")
        _, text, _ = await piped(
            "service", "install", "--print", cwd=tmp_path, env=environ(tmp_path)
        )
        process = await asyncio.create_subprocess_exec(
            *shlex.split(settings(text)["Service"]["ExecStart"]),
            cwd="/",
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        await telegram.wait_for_poll()
        process.send_signal(signal.SIGTERM)
        await process.communicate()
        assert process.returncode == 0
    assert (tmp_path / "data/galata.db").is_file()
