"""`galata erase`: by the running process, or here where none runs; shown first, asked twice."""

from __future__ import annotations

import asyncio
import io
import sys
from pathlib import Path

import pytest

from agent.messages import JsonObject, assistant_text, user_text
from bridge.chats.erase_verb import EraseVerb
from bridge.cli.erase import erase
from bridge.cli.options import FINE, CommandFailed, Options
from bridge.configuration.storing import Storing
from bridge.control import ControlRefused
from bridge.operation.data_folder import held
from memory.conversations import Conversations, SessionPlace
from memory.database import Database
from tests.bridge.bed import bed
from tests.bridge.chats.test_erasing import MINE, bytes_with, live, rows_with

PLACE = SessionPlace("telegram:1:7", "telegram", "1", "7", None)


async def stored(data: Path) -> None:
    database = await Database.open(data / "galata.db")
    try:
        conversations = Conversations(database)
        said = [(0, user_text(MINE)), (1, assistant_text(MINE))]
        await conversations.append(await conversations.open(PLACE), "r1", said)
    finally:
        await database.close()


def options(data: Path, **more: object) -> Options:
    return Options(data, None, {}, **more)  # type: ignore[arg-type]


async def test_the_running_process_shows_first_and_erases_then(tmp_path: Path) -> None:
    async with bed(tmp_path, ["One.", "Two."]) as it:
        await live(it, MINE)
        await live(it, MINE, chat="team", private=False)
        verb = EraseVerb(it.bridge.eraser, Storing())
        asked: JsonObject = {"person": "fake:ana", "actor": "os:me"}
        lines = str((await verb(asked))["lines"])
        assert "chat 1 (fake bot): everything" in lines
        assert "in chat team: 1 questions" in lines
        assert f"likes {MINE}" in lines
        assert await rows_with(it, MINE)
        assert "is erased" in str(await verb({**asked, "really": True}))
        assert await rows_with(it, MINE) == []
        actors = await it.database.read("SELECT DISTINCT actor FROM audit")
        assert [row[0] for row in actors] == ["os:me"]
        assert await verb({"chat": "fake:9"}) == {"lines": []}
        with pytest.raises(ControlRefused, match="telegram:42"):
            await verb({"chat": "nonsense"})


def test_where_none_runs_it_is_done_here_after_two_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "data"
    data.mkdir()
    asyncio.run(stored(data))
    with pytest.raises(CommandFailed, match="--person or --chat"):
        erase(options(data))
    monkeypatch.setattr(sys, "stdin", io.StringIO("erase\nno\n"))
    with pytest.raises(CommandFailed, match="nothing was erased"):
        erase(options(data, chat="telegram:7"))
    assert bytes_with(data, MINE)
    monkeypatch.setattr(sys, "stdin", io.StringIO("erase\nerase\n"))
    assert erase(options(data, chat="telegram:7")) == FINE
    assert "telegram:7 is erased" in capsys.readouterr().out
    assert bytes_with(data, MINE) == []
    assert erase(options(data, chat="telegram:7", yes=True)) == FINE
    assert "nothing is stored of telegram:7" in capsys.readouterr().out
    with held(data), pytest.raises(CommandFailed, match="another galata"):
        erase(options(data, person="telegram:7", yes=True))
