"""Day files: what was said in a conversation is kept as plain Markdown.

`memory/<scope>/YYYY-MM-DD.md` in the data folder, named by the messages' date in the chat's zone.
Appended in one write under the folder's lock and synced, so that no crash and no second writer tears
or doubles an entry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import date
from pathlib import Path

from memory.markdown.files import append, locked, names, read
from memory.notes.flush import Entry
from memory.scopes import CHANGES, day_name, day_of, scope_path
from memory.tombstones import Tombstones


class Outdated(Exception):
    """An entry is not to be written any more: what it says was forgotten meanwhile."""


class DailyFiles:
    """The day files below `folder` (created with mode 0700, files 0600). Every method may raise
    `OSError`, and what stands in the files is as it was then."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def keep(
        self, scope: str, entry: Entry, is_outdated: Callable[[], Awaitable[bool]] | None = None
    ) -> bool:
        """Append the entry, unless it stands in its file already; whether it did not. `is_outdated` is
        asked under the lock: whoever has something forgotten has said so before they get it, and goes
        through the file after. Raises `Outdated`."""
        path = scope_path(self._folder, scope, day_name(entry.day))
        loop = asyncio.get_running_loop()

        def check() -> None:
            if is_outdated is not None:
                asked = asyncio.run_coroutine_threadsafe(_asked(is_outdated), loop)
                if asked.result():
                    raise Outdated

        return await asyncio.to_thread(_keep, path, entry, check)

    async def read(self, scope: str, day: date) -> bytes:
        """What the day's file holds; nothing where there is none."""
        path = scope_path(self._folder, scope, day_name(day))
        return await asyncio.to_thread(read, path)

    async def days(self, scope: str) -> list[date]:
        """The days that have a file, the oldest first."""
        return await asyncio.to_thread(_days, scope_path(self._folder, scope))

    async def note_changes(
        self, scope: str, day: date, text: str, tombstones: Tombstones | None = None
    ) -> None:
        """Append to the day's file of what the nights have changed, without what is forgotten by then:
        asked under the lock, as in `keep`."""
        loop = asyncio.get_running_loop()

        def standing() -> str:
            if tombstones is None:
                return text
            asked = asyncio.run_coroutine_threadsafe(tombstones.of(scope), loop)
            return "\n".join(asked.result().without(text.split("\n")))

        folder = scope_path(self._folder, scope)
        path = scope_path(self._folder, scope, f"{CHANGES}/{day_name(day)}")
        await asyncio.to_thread(_note, folder, path, standing)


async def _asked(question: Callable[[], Awaitable[bool]]) -> bool:
    return await question()


def _keep(path: Path, entry: Entry, check: Callable[[], None]) -> bool:
    with locked(path.parent):
        if entry.heading.encode() in read(path).splitlines():
            return False
        check()
        # Half a character alone is no reason to lose the rest.
        append(path, entry.text.encode(errors="replace"))
        return True


def _days(folder: Path) -> list[date]:
    found = map(day_of, names(folder))
    return sorted(day for day in found if day is not None)


def _note(folder: Path, path: Path, standing: Callable[[], str]) -> None:
    with locked(folder):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        append(path, standing().encode(errors="replace"))
