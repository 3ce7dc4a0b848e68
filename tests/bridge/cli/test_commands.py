"""The command line: exit codes, what goes to which stream, and the small commands."""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import metadata
from pathlib import Path

import pytest

from bridge.__main__ import leave_folder, main
from bridge.cli import parser
from channels.slack.manifest import manifest
from memory.database import Database
from memory.operators.errorlog import ErrorLog
from tests.bridge.cli.scripted import environ, piped

KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"
CONFIG = """\
timezone: UTC
model: m
providers:
  a: {kind: anthropic, api_key: "${ANTHROPIC_API_KEY}"}
models:
  m: {provider: a, id: x}
"""


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, and no keys in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "TELEGRAM_BOT_TOKEN", "SLACK_BOT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "UTC")


def test_no_package_is_looked_for_in_the_folder_that_it_runs_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python -m bridge` puts it first, and a data folder has a `memory`."""
    others = list(sys.path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *others])
    leave_folder()
    leave_folder()
    assert sys.path == others
    root = Path(__file__).parents[3]
    monkeypatch.chdir(root)
    monkeypatch.setattr(sys, "path", [str(root), *others])
    leave_folder()
    assert sys.path == [str(root), *others], "where the packages themselves are"


@pytest.mark.parametrize(
    "words",
    [[], ["walk"], ["run", "--dat", "x"], ["config"], ["slack"], ["error"], ["chat", "hello"]],
)
def test_wrong_use_ends_with_2_and_says_how(words: list[str], capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "usage: galata" in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for _, name, _ in parser._COMMANDS])
def test_every_command_has_its_function(name: str) -> None:
    assert callable(parser.function(name))


def test_help_names_every_command(capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(words[0] in shown for words, _, _ in parser._COMMANDS)


def test_version_is_that_of_the_distribution(capsys) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out.startswith(f"galata {metadata.version('galata')} ")


def test_a_good_config_is_called_fine_and_shown_masked(
    capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    Path("c.yaml").write_text(CONFIG)
    assert main(["config", "check", "--config", "c.yaml"]) == 0
    assert capsys.readouterr().out == "c.yaml: fine\n"
    assert main(["config", "show", "--config", "c.yaml"]) == 0
    shown = capsys.readouterr().out
    assert "api_key: '[secret]'" in shown
    assert KEY not in shown


async def test_a_result_is_shown_in_an_encoding_that_lacks_its_letters(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(f"{CONFIG}instructions: Sois bref, à café\n")
    env = environ(tmp_path, PYTHONIOENCODING="ascii", ANTHROPIC_API_KEY=KEY)
    code, out, errors = await piped("config", "show", "--config", "c.yaml", cwd=tmp_path, env=env)
    assert (code, errors) == (0, "")
    assert "instructions: Sois bref, \\xe0 caf\\xe9\n" in out


@pytest.mark.parametrize("command", [["config", "check"], ["config", "show"], ["run"], ["chat"]])
def test_nothing_starts_with_a_bad_config(command: list[str], capsys) -> None:
    Path("c.yaml").write_text(CONFIG + "limit: {}\nlog: {json: maybe}\n")
    assert main([*command, "--config", "c.yaml", "--data", "d"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert [line.split(": ")[0] for line in shown.err.splitlines()] == [
        "c.yaml:4:24 providers.a.api_key",
        "c.yaml:7:1 limit",
        "c.yaml:8:7 log.json",
    ]
    assert not Path("d").exists()


def test_a_config_that_is_not_in_use_is_told(capsys) -> None:
    Path("config.yaml").write_text(CONFIG)
    assert main(["config", "check"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "environment: fine\n"
    assert "--config config.yaml" in shown.err


def test_half_of_slack_names_the_missing_token(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-1-a")
    assert main(["config", "check"]) == 1
    assert "SLACK_APP_TOKEN" in capsys.readouterr().err


def test_the_manifest_is_what_slack_takes(capsys) -> None:
    assert main(["slack", "manifest"]) == 0
    assert json.loads(capsys.readouterr().out) == manifest("Galata")
    assert main(["slack", "manifest", "--url", "https://example.org/slack/events"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["settings"]["socket_mode_enabled"] is False


def test_an_error_id_tells_what_stands_behind_it(capsys) -> None:
    async def store() -> None:
        database = await Database.open(Path("d/galata.db"))
        await ErrorLog(database).add("ABCD2345", "run 7", "Traceback: it broke")
        await database.close()

    Path("d").mkdir()
    asyncio.run(store())
    assert main(["error", "abcd2345", "--data", "d"]) == 0
    shown = capsys.readouterr().out
    assert "run 7" in shown
    assert shown.endswith("Traceback: it broke\n")
    assert main(["error", "ZZZZ2222", "--data", "d"]) == 1
    assert "no error of that id" in capsys.readouterr().err


def test_asking_for_an_error_creates_no_database(capsys) -> None:
    assert main(["error", "ABCD2345", "--data", "d"]) == 1
    assert "d/galata.db is not there" in capsys.readouterr().err
    assert list(Path().iterdir()) == []


def test_a_damaged_database_is_told_in_one_line(capsys) -> None:
    Path("d").mkdir()
    Path("d/galata.db").write_bytes(b"this is no database" * 100)
    assert main(["error", "ABCD2345", "--data", "d"]) == 1
    assert "d/galata.db: the database cannot be opened" in capsys.readouterr().err


def test_a_mistake_of_ours_ends_with_1_and_a_trace_without_secrets(
    capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(options: object) -> int:
        raise RuntimeError(f"with {KEY}")

    monkeypatch.setattr("bridge.cli.version.show", broken)
    assert main(["version"]) == 1
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert "please report it" in shown
    assert KEY not in shown


def test_ctrl_c_leaves_no_trace(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("bridge.cli.version.show", interrupted)
    assert main(["version"]) == 130
    assert capsys.readouterr().err.strip() == ""


async def test_a_small_command_imports_no_library_of_a_platform_or_provider(tmp_path: Path) -> None:
    """They cost most of the time until "ready"."""
    env = environ(tmp_path, PYTHONPROFILEIMPORTTIME="1")
    code, _, errors = await piped("config", "check", cwd=tmp_path, env=env)
    assert code == 0
    imported = {line.rpartition("|")[2].strip() for line in errors.splitlines()}
    assert "pydantic" in imported
    assert imported.isdisjoint({"telegram", "slack_sdk", "slack_bolt", "anthropic", "openai"})
