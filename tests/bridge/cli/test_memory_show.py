"""What an operator reads of a memory is recorded first."""

from __future__ import annotations

import asyncio
from datetime import date
from pathlib import Path

import pytest

from bridge.cli.memory_show import show, show_all
from bridge.cli.options import FINE, CommandFailed, Options
from memory.conversations import Conversations, SessionPlace
from memory.database import Database
from memory.markdown.fact_files import FactFiles
from memory.scopes import scope_path

SCOPE = "person:telegram:1:7"


async def stored(data: Path) -> None:
    database = await Database.open(data / "galata.db")
    try:
        await Conversations(database).open(SessionPlace("telegram:1:7", "telegram", "1", "7", None))
        await FactFiles(data / "memory").add(SCOPE, date(2026, 11, 30), "Ana", "likes tea\x1b[2J")
        scope_path(data / "memory", SCOPE, "2026-11-29.md").write_text("- **Ana** a day\n")
    finally:
        await database.close()


async def audited(data: Path) -> list[tuple[str, ...]]:
    database = await Database.open(data / "galata.db")
    try:
        rows = await database.read("SELECT action, target, before FROM audit ORDER BY id")
        return [tuple(row) for row in rows]
    finally:
        await database.close()


def test_memories_are_listed_and_read_and_the_reading_is_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(stored(tmp_path))
    assert show_all(Options(tmp_path, None, {})) == FINE
    assert capsys.readouterr().out == f"{SCOPE}  1 entries, 1 days with notes\n"
    assert asyncio.run(audited(tmp_path)) == [], "the list tells nothing of what they hold"
    assert show(Options(tmp_path, None, {}, scope=SCOPE)) == FINE
    out = capsys.readouterr().out
    assert "likes tea" in out
    assert "\x1b" not in out
    assert out.endswith("days with notes:\n2026-11-29\n")
    assert show(Options(tmp_path, None, {}, scope=SCOPE, day="2026-11-29")) == FINE
    assert "a day" in capsys.readouterr().out
    assert asyncio.run(audited(tmp_path)) == [
        ("memory.read", SCOPE, None),
        ("memory.read", SCOPE, "2026-11-29"),
    ]
    for wrong in (Options(tmp_path, None, {}, scope="x"), Options(tmp_path, None, {}, day="../x")):
        with pytest.raises(CommandFailed):
            show(wrong)
