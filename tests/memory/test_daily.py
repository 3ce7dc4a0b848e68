"""Day files: no crash and no second writer tears, loses or doubles an entry."""

from __future__ import annotations

import multiprocessing
import os
from datetime import date
from pathlib import Path

import pytest

from memory.daily import DailyFiles
from memory.markdown import files
from memory.notes.flush import Entry
from memory.scopes import scope_path

SCOPE = "person:telegram:1:7"
DAY = date(2026, 11, 30)
WRITERS, EACH = 8, 60


def entry(name: str) -> Entry:
    heading = f"## 10:00–11:00 · conversation {name}, messages 1–2"
    return Entry(DAY, heading, f"\n{heading}\n\n- **Ana** said {name}\n")


def _write(folder: Path, writer: int) -> None:
    import asyncio

    async def write() -> None:
        daily = DailyFiles(folder)
        for number in range(EACH):
            await daily.keep(SCOPE, entry(str(1000 * writer + number)))

    asyncio.run(write())


def test_eight_writers_at_once_lose_nothing_of_480_first_entries(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(tmp_path, n)) for n in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    text = scope_path(tmp_path, SCOPE, f"{DAY}.md").read_text()
    wanted = sorted(
        entry(str(1000 * writer + number)).text
        for writer in range(WRITERS)
        for number in range(EACH)
    )
    parts = [f"\n## {part}" for part in text.split("\n## ")[1:]]
    assert sorted(part.rstrip() for part in parts) == sorted(part.rstrip() for part in wanted)


async def test_an_entry_stands_once_however_often_it_is_kept(tmp_path: Path) -> None:
    daily = DailyFiles(tmp_path)
    assert [await daily.keep(SCOPE, entry("1")) for _ in range(3)] == [True, False, False]
    assert (await daily.read(SCOPE, DAY)).decode() == entry("1").text
    path = scope_path(tmp_path, SCOPE, f"{DAY}.md")
    modes = (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777)
    assert modes == (0o600, 0o700)
    assert await daily.days(SCOPE) == [DAY]
    assert await daily.days("person:telegram:1:8") == []


async def test_a_full_disk_leaves_no_half_of_an_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daily = DailyFiles(tmp_path)
    await daily.keep(SCOPE, entry("1"))
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(files.os, "write", lambda handle, data: write(handle, data[:10]))
        with pytest.raises(OSError, match="only a part"):
            await daily.keep(SCOPE, entry("2"))
    assert (await daily.read(SCOPE, DAY)).decode() == entry("1").text
    assert await daily.keep(SCOPE, entry("2"))


async def test_half_a_character_is_no_reason_to_lose_the_rest(tmp_path: Path) -> None:
    daily = DailyFiles(tmp_path)
    odd = entry("1")
    await daily.keep(SCOPE, Entry(odd.day, odd.heading, odd.text + "\udcff end\n"))
    assert (await daily.read(SCOPE, DAY)).decode().endswith("? end\n")
    await daily.note_changes(SCOPE, DAY, "\n## 03:00 UTC\n")
    assert scope_path(tmp_path, SCOPE, f"changes/{DAY}.md").read_text() == "\n## 03:00 UTC\n"
