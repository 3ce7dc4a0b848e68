"""`galata config show --chat` and `galata config check` on chats' files."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.cli.config import check, show
from bridge.cli.options import CommandFailed, Options
from memory.database import Database
from memory.policies import PolicyPlace, PolicyStore

CONFIG = """
timezone: Europe/Berlin
model: main
providers:
  p: {kind: openai, api_key: a-key}
models:
  main: {provider: p, id: m, price: {input: 1, output: 1, as_of: 2026-11-30}}
defaults:
  tokens_per_day: 50k
  cost_per_day_usd: 3
channels:
  telegram:
    token: 123456:abc
    defaults:
      questions_per_person_per_minute: 6
ceilings:
  cost_per_day_usd: 10
people:
  telegram:42:
    questions_per_person_per_minute: 60
"""


@pytest.fixture
def options(tmp_path: Path) -> Options:
    (tmp_path / "config.yaml").write_text(CONFIG)
    return Options(
        tmp_path / "data",
        tmp_path / "config.yaml",
        {},
        chat="telegram:-100",
        person="42",
        topic="7",
    )


def group_file(options: Options, text: str, name: str = "-100.yaml") -> Path:
    path = options.data / "groups" / "telegram" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def shown(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    lines = capsys.readouterr().out.splitlines()
    return {line.split(": ")[0]: line.partition(": ")[2] for line in lines}


def test_each_value_is_told_with_its_origin(
    options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    path = group_file(options, "cost_per_day_usd: 12\nlanguage: de\n")
    topic = group_file(options, "model: main\n", "-100/7.yaml")
    assert show(options) == 0
    values = shown(capsys)
    assert values["cost_per_day_usd"] == "10.00  # ceilings (wished: 12.00)"
    assert values["language"] == f"de  # {path}"
    assert values["model"] == f"main  # {topic}"
    assert values["tokens_per_day"] == "50000  # defaults (one person: 16666, a third)"
    assert values["timezone"] == "Europe/Berlin  # configuration"
    assert values["questions_per_person_per_minute"] == "60  # people.telegram:42"
    assert values["paused"] == "no  # built in"
    assert values["cost_per_month_usd"] == "-  # built in"
    third = values["cost_per_person_per_day_usd"]
    assert third == "3.333333  # a third of cost_per_day_usd"


@pytest.mark.parametrize(
    ("chat", "cost", "tokens"),
    [
        ("telegram:-100", "1.00  # a third of cost_per_day_usd", " (one person: 16666, a third)"),
        ("telegram:42", "-  # built in", ""),
        ("slack:C012", "1.00  # a third of cost_per_day_usd", " (one person: 16666, a third)"),
        ("slack:D012", "-  # built in", ""),
    ],
)
def test_what_one_person_may_use_of_a_groups_day_is_told(
    options: Options, capsys: pytest.CaptureFixture[str], chat: str, cost: str, tokens: str
) -> None:
    show(replace(options, chat=chat, topic=""))
    values = shown(capsys)
    assert values["cost_per_person_per_day_usd"] == cost
    assert values["tokens_per_day"] == f"50000  # defaults{tokens}"


async def store(options: Options, text: str) -> None:
    options.data.mkdir(exist_ok=True)
    database = await Database.open(options.data / "galata.db")
    await PolicyStore(database).put(PolicyPlace("telegram", "-100"), text, "file")
    await database.close()


def test_of_a_file_with_faults_the_last_good_text_holds(
    options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    path = group_file(options, "tokens_per_day: 50.000\n")
    asyncio.run(store(options, "tokens_per_day: 70k\n"))
    show(options)
    told = capsys.readouterr()
    assert f"tokens_per_day: 70000  # {path}" in told.out
    assert f"{path}:1:1 tokens_per_day: 50.000 can mean 50 or 50000" in told.err


def test_check_reads_all_files(options: Options, capsys: pytest.CaptureFixture[str]) -> None:
    group_file(options, "paused: no\n")
    assert check(options) == 0
    one = group_file(options, "paused: perhaps\nfoo: 1\n", "-200.yaml")
    two = group_file(options, "tokens_per_day: 5\n", "-200/9.yaml")
    with pytest.raises(CommandFailed) as failed:
        check(options)
    lines = str(failed.value).splitlines()
    assert lines[0].startswith(f"{two}:1:1 tokens_per_day: cannot be set here")
    assert lines[1] == f"{one}:1:1 paused: must be yes, no, or until 2026-11-30 18:00 UTC"
    assert lines[2].startswith(f"{one}:2:1 foo: unknown key")


def test_a_chat_must_be_named_as_one(options: Options) -> None:
    with pytest.raises(CommandFailed, match="such as telegram:-1001234567890"):
        show(replace(options, chat="-100"))
