"""A backup made while the bot runs, and what comes back of it; an archive is not trusted."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import sqlite3
import tarfile
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.messages import user_text
from bridge.operation import backup
from bridge.operation.backup import BackupFailed, backups, file_name, make, make_by_the_clock
from bridge.operation.restore import RestoreFailed, restore
from memory.conversations import Conversations, SessionPlace
from memory.daily import DailyFiles
from memory.database import Database
from memory.notes.flush import Entry
from memory.storage.migrate import migrations
from memory.transcripts import Transcripts
from memory.unread import UnreadPlaces

NOW = datetime(2026, 11, 30, 4, 30, tzinfo=UTC)
PLACE = SessionPlace("telegram:1:7", "telegram", "1", "7", None)
CONFIG = "timezone: UTC\n"


class Bot:
    """A data folder with something in each part of it, and the database open as while it runs."""

    def __init__(self, data: Path, database: Database) -> None:
        self.data = data
        self.database = database

    async def fill(self) -> None:
        conversations = Conversations(self.database)
        session = await conversations.open(PLACE)
        question = user_text("Where is the key?")
        await conversations.append(session, "r1", [(0, question)])
        entry = Entry(NOW.date(), "## 04:30", f"\n## 04:30\n\n{question.text}\n")
        await DailyFiles(self.data / "memory").keep(PLACE.key, entry)
        await Transcripts(self.database, self.data / "transcripts").snapshot(
            session, PLACE.key, [question], NOW
        )
        (self.data / "groups").mkdir()
        (self.data / "groups" / "team.yaml").write_text("limits: {}\n")
        for name in (".env", "config.yaml", "galata.lock"):
            (self.data / name).write_text("TOKEN=very-secret")
        (self.data / "backups").mkdir()
        (self.data / "backups" / file_name(NOW - timedelta(days=9))).write_text("old")


@pytest.fixture
async def bot(tmp_path: Path) -> AsyncIterator[Bot]:
    data = tmp_path / "data"
    data.mkdir()
    made = Bot(data, await Database.open(data / "galata.db"))
    await made.fill()
    yield made
    await made.database.close()


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def names(archive: Path) -> list[str]:
    with tarfile.open(archive) as opened:
        return opened.getnames()


def empty(folder: Path) -> Path:
    folder.mkdir()
    return folder


async def test_everything_comes_back_and_no_secret_is_in_it(tmp_path: Path, bot: Bot) -> None:
    made = make(bot.data, tmp_path / "b.tar.gz", CONFIG, NOW)
    assert made.path.stat().st_mode & 0o777 == 0o600
    assert b"very-secret" not in b"".join(contents(made.path).values())
    assert not [name for name in names(made.path) if name.startswith("backups")]
    data = empty(tmp_path / "new")
    restored = restore(made.path, data)
    assert (restored.messages, restored.made_at) == (1, "2026-11-30T04:30:00+00:00")
    assert restored.config is not None
    assert restored.config.read_text() == CONFIG
    before, after = files(bot.data), files(data)
    for name in before:
        if name.split("/")[0] in ("memory", "transcripts", "groups"):
            assert after[name] == before[name], name
    assert {path.stat().st_mode & 0o077 for path in data.rglob("*")} == {0}
    database = await Database.open(data / "galata.db")
    context = await Conversations(database).context(1)
    assert [stored.message.text for stored in context.messages] == ["Where is the key?"]
    assert await UnreadPlaces(database).restored_at() is not None
    await database.close()


def contents(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as opened:
        return {
            member.name: file.read()
            for member in opened
            if (file := opened.extractfile(member)) is not None
        }


async def test_it_is_of_one_moment_while_the_bot_writes(tmp_path: Path, bot: Bot) -> None:
    conversations = Conversations(bot.database)

    async def talk() -> None:
        for number in range(300):
            pair = [(0, user_text("q")), (1, user_text("a"))]
            await conversations.append(1, f"run{number}", pair)

    talking = asyncio.create_task(talk())
    archives = [tmp_path / f"{number}.tar.gz" for number in range(3)]
    for archive in archives:
        await asyncio.to_thread(make, bot.data, archive, None, NOW)
    await talking
    for archive in archives:
        data = empty(tmp_path / archive.stem)
        assert restore(archive, data).messages % 2 == 1, "the first one, and pairs"


async def test_nothing_is_overwritten_and_nothing_is_left_of_a_failure(
    tmp_path: Path, bot: Bot
) -> None:
    target = tmp_path / "b.tar.gz"
    target.write_text("mine")
    with pytest.raises(BackupFailed, match="there already"):
        make(bot.data, target, None, NOW)
    assert target.read_text() == "mine"
    missing = tmp_path / "missing" / "b.tar.gz"
    with pytest.raises(BackupFailed):
        make(bot.data, missing, None, NOW)
    with pytest.raises(BackupFailed, match="which --data"):
        make(tmp_path / "other", tmp_path / "c.tar.gz", None, NOW)
    assert sorted(os.listdir(tmp_path)) == ["b.tar.gz", "data"]


async def test_a_stop_ends_it_and_leaves_nothing(tmp_path: Path, bot: Bot) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(BackupFailed):
        make(bot.data, tmp_path / "b.tar.gz", None, NOW, stop)
    assert os.listdir(tmp_path) == ["data"]


async def test_a_damaged_database_makes_no_backup(tmp_path: Path, bot: Bot) -> None:
    await bot.database.close()
    (bot.data / "galata.db").write_bytes(b"no database " * 500)
    with pytest.raises(BackupFailed, match=r"galata\.db"):
        make(bot.data, tmp_path / "b.tar.gz", None, NOW)


async def test_by_the_clock_the_newest_stay(bot: Bot) -> None:
    folder = bot.data / "backups"
    (folder / "of somebody else.tar.gz").write_text("mine")
    (folder / "galata-x.tar.gz.unfinished").write_text("of a crash")
    for day in range(4):
        made = make_by_the_clock(bot.data, None, 3, NOW + timedelta(days=day), threading.Event())
    assert [path.name for path in backups(folder)] == [
        file_name(NOW + timedelta(days=day)) for day in (3, 2, 1)
    ]
    assert made.path == backups(folder)[0]
    assert len(list(folder.iterdir())) == 4


async def test_by_the_clock_it_leaves_room_for_the_bot(
    bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "SPARE_BYTES", 10**18)
    old = backups(bot.data / "backups")
    with pytest.raises(BackupFailed, match="MB are free"):
        make_by_the_clock(bot.data, None, 1, NOW, threading.Event())
    assert backups(bot.data / "backups") == old


async def test_by_the_clock_a_folder_that_cannot_be_used_is_named(bot: Bot) -> None:
    shutil.rmtree(bot.data / "backups", ignore_errors=True)
    (bot.data / "backups").write_text("a file")
    with pytest.raises(BackupFailed, match="File exists"):
        make_by_the_clock(bot.data, None, 1, NOW, threading.Event())


# Archives that are not what they should be ------------------------------------------------------


class Forged:
    """An archive with a manifest, to which anything can be added."""

    def __init__(self, path: Path, about: object = None) -> None:
        self.path = path
        self.archive = tarfile.open(path, "w:gz")  # noqa: SIM115 - closed by `done`
        about = {"form": 1, "made_at": "then"} if about is None else about
        self.add("backup.json", json.dumps(about).encode())

    def add(self, name: str, content: bytes = b"x", kind: bytes = tarfile.REGTYPE) -> None:
        info = tarfile.TarInfo(name)
        info.size = len(content) if kind == tarfile.REGTYPE else 0
        info.type, info.linkname = kind, "/etc/passwd"
        self.archive.addfile(info, io.BytesIO(content))

    def done(self) -> Path:
        self.archive.close()
        return self.path


BAD: dict[str, Callable[[Forged], None]] = {
    "out by dots": lambda forged: forged.add("memory/../../evil"),
    "absolute": lambda forged: forged.add("/tmp/evil"),
    "a link": lambda forged: forged.add("memory/link", kind=tarfile.SYMTYPE),
    "a hard link": lambda forged: forged.add("memory/link", kind=tarfile.LNKTYPE),
    "a device": lambda forged: forged.add("memory/null", kind=tarfile.CHRTYPE),
    "a pipe": lambda forged: forged.add("memory/pipe", kind=tarfile.FIFOTYPE),
    "the lock": lambda forged: forged.add("galata.lock"),
    "a secret file": lambda forged: forged.add(".env"),
    "a name twice": lambda forged: [forged.add("memory/a.md") for _ in range(2)] and None,
    "no database": lambda forged: forged.add("memory/a.md"),
    "a broken database": lambda forged: forged.add("galata.db", b"no database " * 1000),
    "an empty database": lambda forged: forged.add("galata.db", b""),
}


@pytest.mark.parametrize("fault", BAD)
def test_what_is_no_backup_is_refused_and_leaves_the_folder_empty(
    tmp_path: Path, fault: str
) -> None:
    forged = Forged(tmp_path / "b.tar.gz")
    BAD[fault](forged)
    data = empty(tmp_path / "new")
    with pytest.raises(RestoreFailed):
        restore(forged.done(), data)
    assert list(data.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.tar.gz", "new"]


def test_a_newer_form_or_schema_is_refused_by_name(tmp_path: Path) -> None:
    data = empty(tmp_path / "new")
    with pytest.raises(RestoreFailed, match="form 99"):
        restore(Forged(tmp_path / "a.tar.gz", {"form": 99, "made_at": "later"}).done(), data)
    with pytest.raises(RestoreFailed, match="nothing of its form"):
        restore(Forged(tmp_path / "c.tar.gz", ["a list"]).done(), data)
    newer = tmp_path / "newer.db"
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute(f"PRAGMA user_version = {migrations()[-1].number + 1}")
    forged = Forged(tmp_path / "b.tar.gz")
    forged.add("galata.db", newer.read_bytes())
    with pytest.raises(RestoreFailed, match="use the newer version"):
        restore(forged.done(), data)
    assert list(data.iterdir()) == []


@pytest.mark.parametrize("cut", [0, 10, 1000, -10])
async def test_an_archive_that_was_cut_is_refused(tmp_path: Path, bot: Bot, cut: int) -> None:
    archive = make(bot.data, tmp_path / "b.tar.gz", CONFIG, NOW).path
    archive.write_bytes(archive.read_bytes()[:cut])
    data = empty(tmp_path / "new")
    with pytest.raises(RestoreFailed):
        restore(archive, data)
    assert list(data.iterdir()) == []


async def test_only_an_empty_folder_is_taken(tmp_path: Path, bot: Bot) -> None:
    archive = make(bot.data, tmp_path / "b.tar.gz", CONFIG, NOW).path
    before = files(bot.data)
    with pytest.raises(RestoreFailed, match="not empty"):
        restore(archive, bot.data)
    assert files(bot.data) == before
    data = empty(tmp_path / "new")
    (data / "galata.lock").touch()
    assert restore(archive, data).messages == 1
    assert sorted(os.listdir(data)) == sorted(
        [
            "backup.json",
            "config.yaml",
            "galata.db",
            "galata.lock",
            "groups",
            "memory",
            "transcripts",
        ]
    )
