"""No link leads out of a scope's folder, and nothing of a file in the making outlives its process."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from memory.chats.chat_retention import ChatRetention
from memory.chats.reach import ChatPlace
from memory.database import Database
from memory.errors import Linked
from memory.markdown.fact_files import FactFiles
from memory.markdown.files import append, locked, names, read, replace
from memory.markdown.folders import MEMORY, ChatFolders
from memory.markdown.leftovers import clear_leftovers
from memory.scopes import FACTS, scope_path

ANA, BO = "person:telegram:1:7", "person:telegram:1:8"
DAY = date(2026, 11, 30)


def _lock(path: Path) -> None:
    with locked(path.parent):
        pass


TOUCHES: list[Callable[[Path], object]] = [
    read,
    _lock,
    lambda path: names(path.parent),
    lambda path: append(path, b"x"),
    lambda path: replace(path, b"secret\n", b"x"),
]


@pytest.fixture
async def memory(tmp_path: Path) -> Path:
    """In which Ana has a secret, and Bob's folder leads to hers."""
    memory = tmp_path / MEMORY
    folder = scope_path(memory, ANA)
    folder.mkdir(parents=True)
    (folder / FACTS).write_text("secret\n")
    scope_path(memory, BO).symlink_to(folder)
    return memory


@pytest.mark.parametrize("touch", TOUCHES)
def test_a_folder_that_is_a_link_is_not_followed(
    memory: Path, touch: Callable[[Path], object]
) -> None:
    with pytest.raises(Linked, match="is a link"):
        touch(scope_path(memory, BO, FACTS))
    folder = scope_path(memory, ANA)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {FACTS: "secret\n"}


@pytest.mark.parametrize("touch", [one for one in TOUCHES if one is not _lock][:1] + TOUCHES[3:])
def test_a_file_that_is_a_link_is_not_followed(
    tmp_path: Path, touch: Callable[[Path], object]
) -> None:
    (tmp_path / "away").write_text("secret\n")
    path = tmp_path / "scope" / FACTS
    path.parent.mkdir()
    path.symlink_to(tmp_path / "away")
    with pytest.raises(Linked, match="is a link"):
        touch(path)
    assert (tmp_path / "away").read_text() == "secret\n"
    assert names(path.parent) == []


async def test_a_link_is_moved_and_erased_as_what_it_is(memory: Path) -> None:
    folders = ChatFolders(memory.parent)
    new = "person:telegram:1:9"
    await FactFiles(memory).add(new, DAY, "Bo", "tea")
    await folders.move(MEMORY, [(BO, new)])
    assert not scope_path(memory, BO).is_symlink()
    scope_path(memory, BO).symlink_to(scope_path(memory, ANA))
    await folders.erase(MEMORY, [BO])
    assert not scope_path(memory, BO).is_symlink()
    assert scope_path(memory, ANA, FACTS).read_text() == "secret\n"


async def test_what_is_too_old_in_one_chat_is_not_looked_for_in_another(memory: Path) -> None:
    old = scope_path(memory, ANA, "2020-01-01.md")
    old.write_text("long ago\n")
    database = await Database.open(memory.parent / "galata.db")
    retention = ChatRetention(database, memory.parent)
    now = datetime(2026, 11, 30, tzinfo=UTC)
    try:
        await retention.clean(ChatPlace("telegram", "1", "8"), [BO], now)
    finally:
        await database.close()
    assert old.exists()


def test_leftovers_of_a_crash_go_at_a_start_and_nothing_else(tmp_path: Path) -> None:
    folder = scope_path(tmp_path, ANA)
    left = [
        f"{FACTS}.fresh",
        "2026-11-30.md.fresh",
        "versions/.fresh",
        "changes/2026-11-30.md.fresh",
    ]
    own = [FACTS, "2026-11-30.md", "notes.fresh", "versions/MEMORY.000001.0123456789ab.md"]
    for name in (*left, *own):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    scope_path(tmp_path, BO).symlink_to(folder)
    assert clear_leftovers(tmp_path / "nowhere") == 0
    assert clear_leftovers(tmp_path) == len(left)
    assert [name for name in (*left, *own) if (folder / name).exists()] == own
    assert clear_leftovers(tmp_path) == 0
