"""`galata doctor`: one line for each check, with the fix, and no secret in any of them."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bridge.cli import checks_here, packages
from bridge.cli.doctor import doctor
from bridge.cli.options import FAILED, FINE, Options
from bridge.operation.backup import file_name
from memory.chats.reach import Chats, Move
from memory.database import Database
from memory.jobs import Ended, Jobs
from tests.servers.openai import OpenAIServer
from tests.servers.slack import SlackServer
from tests.servers.telegram import TelegramServer

CONFIG = """\
timezone: UTC
model: m
providers:
  o: {kind: openai, api_key: "${KEY}", base_url: "${LLM}"}
models:
  m: {provider: o, id: gpt-6-luna, price: {input: 1, output: 2, as_of: 2026-11-05}}
channels:
  telegram: {token: "${TELEGRAM}", base_url: "${TELEGRAM_URL}"}
  slack: {bot_token: "${BOT}", app_token: "${APP}", base_url: "${SLACK_URL}"}
"""


class Place:
    """A configured bot on local servers. `doctor` gives the exit code and the lines by subject."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.data = folder / "data"
        self.llm, self.telegram, self.slack = OpenAIServer(), TelegramServer(), SlackServer()
        self.environ: dict[str, str] = {}
        self.config = folder / "config.yaml"

    async def start(self) -> None:
        self.data.mkdir(mode=0o700)
        database = await Database.open(self.data / "galata.db")
        await database.close()
        self.config.write_text(CONFIG)
        self.environ = {
            "KEY": self.llm.api_key,
            "LLM": self.llm.base_url,
            "TELEGRAM": self.telegram.token,
            "TELEGRAM_URL": self.telegram.base_url.removesuffix("/bot"),
            "BOT": self.slack.bot_token,
            "APP": self.slack.app_token,
            "SLACK_URL": self.slack.base_url,
        }

    async def doctor(self) -> tuple[int, dict[str, str]]:
        options = Options(data=self.data, config=self.config, environ=self.environ)
        code = await asyncio.to_thread(doctor, options)
        text = self.capsys.readouterr().out
        for name in ("KEY", "TELEGRAM", "BOT", "APP"):
            assert self.environ.get(name, "-unset-") not in text
        return code, {line.split()[1]: line for line in text.splitlines()}


@pytest.fixture
async def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> AsyncIterator[Place]:
    made = Place(tmp_path, capsys)
    async with made.llm, made.telegram, made.slack:
        await made.start()
        yield made


async def test_all_is_well(place: Place) -> None:
    code, lines = await place.doctor()
    assert code == FINE
    assert {subject: line.split()[0] for subject, line in lines.items()} == {
        **dict.fromkeys(("python", "libraries", "packages", "config", "data", "database"), "ok"),
        **dict.fromkeys(("model", "slack"), "ok"),
        "telegram": "note",  # privacy mode
        "backup": "note",  # none are made
    }
    assert "@galata_test_bot" in lines["telegram"]
    assert "/setprivacy" in lines["telegram"]
    assert "2026-11-05" in lines["model"]
    assert len(place.llm.requests) == 1
    assert place.llm.refusals == []


async def test_every_model_that_may_answer_is_asked(place: Place) -> None:
    other = 'providers:\n  away: {kind: openai, api_key: "${KEY}", base_url: "http://127.0.0.1:9"}'
    price = "price: {input: 1, output: 2, as_of: 2026-11-05}"
    model = f"models:\n  n: {{provider: away, id: gpt-6-sol, {price}}}"
    text = CONFIG.replace("providers:", other).replace("models:", model)
    place.config.write_text(f"{text}fallback_models: [n]\n")
    code, lines = await place.doctor()
    assert code == FAILED
    assert "models.n" in lines["model"]
    assert len(place.llm.requests) == 1


async def test_every_wrong_secret_is_found_at_once_and_not_repeated(place: Place) -> None:
    place.environ |= {
        "KEY": "sk-wrong-wrong-wrong-wrong",
        "TELEGRAM": "123456:wrong-wrong-wrong",
        "APP": "xapp-wrong-wrong",
    }
    code, lines = await place.doctor()
    assert code == FAILED
    for subject in ("model", "telegram", "slack"):
        assert lines[subject].startswith("FAIL")
    assert "providers.o" in lines["model"]
    assert "channels.telegram.token" in lines["telegram"]
    assert "channels.slack.app_token" in lines["slack"]


async def test_groups_that_let_their_members_in_are_asked_who_is_there(place: Place) -> None:
    told, hidden, left = (place.telegram.group(name, members=()) for name in ("A", "B", "C"))
    hidden.members_hidden = True
    left.bot_status = "left"
    text = place.config.read_text()

    def groups(*ids: int) -> None:
        listed = ", ".join(map(str, ids))
        place.config.write_text(
            text.replace("telegram: {", f"telegram: {{members_of: [{listed}], ")
        )

    groups(told.id, hidden.id, left.id)
    code, lines = await place.doctor()
    assert code == FAILED
    assert f"{hidden.id}: its members are hidden" in lines["members_of"]
    assert f"{left.id}: the bot is not in it" in lines["members_of"]
    assert str(told.id) not in lines["members_of"]
    hidden.bot_status = "administrator"
    groups(told.id, hidden.id)
    code, lines = await place.doctor()
    assert code == FINE
    assert lines["members_of"].startswith("ok")


async def test_missing_scopes_are_named(place: Place) -> None:
    place.slack.scopes = [scope for scope in place.slack.scopes if scope != "files:read"]
    code, lines = await place.doctor()
    assert code == FAILED
    assert "files:read" in lines["slack"]
    assert "slack manifest" in lines["slack"]


async def test_an_id_in_the_configuration_that_a_group_does_not_have_any_more_is_named(
    place: Place,
) -> None:
    database = await Database.open(place.data / "galata.db")
    chats = Chats(database)
    await chats.expect(Move("telegram", "123456", "-451", "-100247"))
    await database.close()
    code, lines = await place.doctor()
    assert (code, "chats" in lines) == (FINE, False)
    allowed = place.config.read_text().replace("{token: ", '{allowed: ["-451"], token: ')
    place.config.write_text(allowed)
    code, lines = await place.doctor()
    assert code == FINE
    assert "channels.telegram.allowed" in lines["chats"]
    assert "-100247" in lines["chats"]


async def test_files_that_others_can_read_are_found_with_the_command_that_mends_it(
    place: Place,
) -> None:
    secrets = place.folder / ".env"
    secrets.write_text("KEY=a\n")
    secrets.chmod(0o640)
    place.data.chmod(0o755)
    code, lines = await place.doctor()
    assert code == FAILED
    assert f"chmod go= '{place.data}'" in lines["data"]
    assert f"chmod go= '{secrets}'" in lines["secrets"]
    secrets.chmod(0o600)
    place.data.chmod(0o700)
    code, lines = await place.doctor()
    assert (code, lines["secrets"].split()[0]) == (FINE, "ok")


async def test_a_configuration_with_a_secret_in_it_is_for_its_owner_alone(place: Place) -> None:
    place.config.chmod(0o644)
    assert (await place.doctor())[0] == FINE, "no secret is written in it"
    place.config.write_text(CONFIG.replace("${KEY}", place.llm.api_key))
    code, lines = await place.doctor()
    assert code == FAILED
    assert f"chmod go= '{place.config}'" in lines["config"]
    place.config.chmod(0o600)
    assert (await place.doctor())[0] == FINE
    place.config.write_text(CONFIG)
    place.config.chmod(0o646)
    code, lines = await place.doctor()
    assert code == FAILED
    assert f"chmod o-w '{place.config}'" in lines["config"]


async def test_a_faulty_configuration_does_not_hide_the_other_checks(place: Place) -> None:
    place.config.write_text("modle: x\n")
    code, lines = await place.doctor()
    assert code == FAILED
    assert "FAIL" in lines["config"]
    assert lines["database"].startswith("ok")
    assert "model" not in lines


@pytest.mark.parametrize("damage", ["no database", "torn"])
async def test_a_damaged_database_is_found(place: Place, damage: str) -> None:
    path = place.data / "galata.db"
    if damage == "torn":
        await asyncio.to_thread(_tear, path)
    else:
        path.write_bytes(b"this is no database " * 100)
    code, lines = await place.doctor()
    assert code == FAILED
    assert lines["database"].startswith("FAIL")


def _tear(path: Path) -> None:
    """Overwrite the pages of an index, so that it does not agree with its table any more."""
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a)")
    connection.executemany("INSERT INTO t VALUES (?)", [(str(n) * 50,) for n in range(2_000)])
    connection.execute("CREATE INDEX i ON t (a)")
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'i'").fetchone()[0]
    size = connection.execute("PRAGMA page_size").fetchone()[0]
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))


async def test_without_a_data_folder_nothing_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = Options(data=tmp_path / "data", config=None, environ={"TZ": "UTC"})
    code = await asyncio.to_thread(doctor, options)
    lines = capsys.readouterr().out
    assert code == FINE
    assert "the first start makes it" in lines
    assert os.listdir(tmp_path) == []


def test_an_old_python_and_old_libraries_are_found() -> None:
    assert checks_here.python((3, 10, 4)).state == "FAIL"
    assert checks_here.libraries(["pytest>=1", "aiohttp>=3.1,<99"]).state == "ok"
    for requirement in ("pytest>=999", "pytest>=1,<2", "no-such-library>=1"):
        finding = checks_here.libraries(["aiohttp>=3", requirement])
        assert finding.state == "FAIL"
        assert requirement.split(">")[0] in finding.text


def test_packages_of_others_by_the_same_name_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def shared() -> dict[str, list[str]]:
        return {"channels": ["galata", "channels"]}

    monkeypatch.setattr(packages.metadata, "packages_distributions", shared)
    finding = packages.packages()
    assert finding.state == "FAIL"
    assert "virtual environment" in finding.fix


def test_packages_from_elsewhere_are_found_although_nothing_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "channels").mkdir()
    (tmp_path / "channels" / "__init__.py").write_text("")
    ended = subprocess.run(
        [sys.executable, "-m", "bridge", "doctor"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == FAILED
    assert "channels is not Galata's" in ended.stdout
    assert ended.stderr == ""


async def test_that_no_backups_are_made_is_said_and_how_to_have_them(place: Place) -> None:
    _, lines = await place.doctor()
    assert lines["backup"].startswith("note")
    assert "no backups are made: write `backup: {every: day, keep: 7}`" in lines["backup"]
    assert "galata backup PATH" in lines["backup"]


@pytest.mark.parametrize(
    ("section", "states"),
    [
        ("", {4: "note", 2: "ok"}),
        ("backup: {every: day}\n", {4: "FAIL", 2: "ok"}),
        ("backup: {every: week}\n", {10: "FAIL", 4: "note", 2: "ok"}),
    ],
)
async def test_a_last_good_backup_of_more_than_three_days_is_told(
    place: Place, section: str, states: dict[int, str]
) -> None:
    place.config.write_text(CONFIG + section)
    _, lines = await place.doctor()
    assert lines["backup"].startswith("note")
    folder = place.data / "backups"
    folder.mkdir()
    for age, state in states.items():
        made_at = datetime.now(UTC) - timedelta(days=age)
        (folder / file_name(made_at)).touch()
        _, lines = await place.doctor()
        assert lines["backup"].startswith(state)
        assert f"{made_at:%Y-%m-%d %H:%M}" in lines["backup"]


async def test_a_backup_that_failed_is_said(place: Place) -> None:
    place.config.write_text(CONFIG + "backup: {every: week}\n")
    database = await Database.open(place.data / "galata.db")
    jobs = Jobs(database)
    await jobs.once("backup", "", datetime.now(UTC))
    (row,) = await jobs.all()
    await jobs.end(row, Ended(datetime.now(UTC), "failed", "error ABC", None, None, 0))
    await database.close()
    code, lines = await place.doctor()
    assert code == FAILED
    assert "failed: error ABC" in lines["backup"]


async def test_a_database_of_an_older_version_is_no_failure_and_stays_as_it_is(
    place: Place,
) -> None:
    place.config.write_text(CONFIG + "backup: {every: day}\n")
    with sqlite3.connect(place.data / "galata.db") as connection:
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    code, lines = await place.doctor()
    assert code == FINE
    assert "the database has schema 1" in lines["database"]
    assert "galata run" in lines["database"]
    assert lines["backup"].startswith("note")
    with sqlite3.connect(place.data / "galata.db") as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    connection.close()
