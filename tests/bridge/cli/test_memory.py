"""`galata memory reindex` mends an index that was lost, beside the running bot."""

from __future__ import annotations

import asyncio
from datetime import date
from pathlib import Path

import pytest

from agent.messages import assistant_text, user_text
from bridge.cli.memory_show import show, show_all
from bridge.cli.options import Options
from memory.conversations import Conversations, SessionPlace
from memory.database import Database
from memory.notebook import Notebook
from memory.scopes import SHARED, ChatScope
from tests.bridge.cli.scripted import environ, piped

ANA = ChatScope("person:telegram:1:7", "telegram", "1", "7")
TODAY = date(2026, 11, 30)


async def reindex(data: Path) -> tuple[int, str, str]:
    # Not from within the data folder: its `memory` would be taken for a package by `python -m`.
    elsewhere = data.parent / "elsewhere"
    elsewhere.mkdir()
    words = ("memory", "reindex", "--data", str(data))
    return await piped(*words, cwd=elsewhere, env=environ(elsewhere))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    return made


async def test_a_lost_index_is_built_anew_beside_the_bot(data: Path) -> None:
    database = await Database.open(data / "galata.db")
    try:
        notebook, conversations = Notebook(database, data / "memory"), Conversations(database)
        place = SessionPlace("telegram:1:7", "telegram", "1", "7", None)
        said = [(0, user_text("plover")), (1, assistant_text("plovers"))]
        await conversations.append(await conversations.open(place), "r1", said)
        await notebook.files.add(ANA.scope, TODAY, "Ana", "likes plovers")
        assert len(await notebook.search.find(ANA, "plover", today=TODAY)) == 3
        await database.write(lambda c: c.execute("DELETE FROM search_words").rowcount)
        assert await notebook.search.find(ANA, "plover", today=TODAY) == []
        code, out, errors = await reindex(data)
        assert (code, errors.strip()) == (0, ANA.scope)
        assert out.startswith("the index holds 3 entries of 1 chats")
        assert len(await notebook.search.find(ANA, "plover", today=TODAY)) == 3
    finally:
        await database.close()


def test_the_memory_that_groups_share_is_listed_once_and_shown(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def two_groups() -> None:
        database = await Database.open(data / "galata.db")
        conversations = Conversations(database)
        for chat in ("-5", "-6"):
            key = f"telegram:1:{chat}"
            await conversations.open(SessionPlace(key, "telegram", "1", chat, None))
        await Notebook(database, data / "memory").files.add(SHARED, TODAY, "Ana", "likes plovers")
        await database.close()

    asyncio.run(two_groups())
    options = Options(data=data, config=None, environ={}, scope=SHARED)
    assert show_all(options) == 0
    assert capsys.readouterr().out == "shared  1 entries, 0 days with notes\n"
    assert show(options) == 0
    assert "likes plovers" in capsys.readouterr().out


async def test_without_a_database_it_says_where_it_looked(data: Path) -> None:
    code, out, errors = await reindex(data)
    assert (code, out) == (1, "")
    assert "galata.db is not there" in errors
