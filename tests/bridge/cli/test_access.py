"""`galata approve`, `galata people`, `galata revoke`: through the process that runs, or without one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bridge.access.stores import AccessStores
from bridge.cli import access
from bridge.cli.options import CommandFailed, Options
from memory.access.admissions import Someone
from memory.database import Database

EVE = Someone("telegram", "9", "Eve")


async def request(data: Path) -> str:
    """Eve asks; her code."""
    database = await Database.open(data / "galata.db")
    asked = await AccessStores.of(database).pairings.ask(EVE)
    await database.close()
    return asked.code


def test_where_nothing_runs_it_is_done_in_the_database(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = asyncio.run(request(tmp_path))
    environ = {"TELEGRAM_BOT_TOKEN": "123456:abc", "OPENAI_API_KEY": "a-key"}
    options = Options(data=tmp_path, config=None, environ=environ, code=code, target="telegram:9")
    assert access.approve(options) == 0
    assert "Eve (telegram:9) may talk to me in private now" in capsys.readouterr().out
    assert access.people(options) == 0
    assert "- telegram:9 Eve, by a code, by operator on" in capsys.readouterr().out
    assert access.approve(options) == 1
    assert "has let Eve (telegram:9) in already" in capsys.readouterr().out
    assert access.revoke(options) == 0
    assert capsys.readouterr().out == "telegram:9 may not talk to me any more.\n"


def test_without_a_database_it_says_where_it_looked(tmp_path: Path) -> None:
    options = Options(data=tmp_path, config=None, environ={}, code="ABC")
    with pytest.raises(CommandFailed, match="is not there"):
        access.approve(options)


def test_the_process_that_runs_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(data: Path, verb: str, **arguments: object) -> object:
        assert (data, verb, arguments) == (tmp_path, "approve", {"code": "ABCD"})
        return {"text": "`telegram:9` is let in. /revoke takes that back.", "done": True}

    monkeypatch.setattr(access, "ask_running", ask)
    assert access.approve(Options(data=tmp_path, config=None, environ={}, code="ABCD")) == 0
    assert capsys.readouterr().out == "telegram:9 is let in. galata revoke takes that back.\n"
