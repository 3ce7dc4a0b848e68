"""The folders of the data folder that are named after a chat: they follow it, and go with it.

`memory/<scope>` and `transcripts/<session>`. A move can be repeated after a crash at any of its steps.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from memory.scopes import scope_folder

MEMORY: Final = "memory"
TRANSCRIPTS: Final = "transcripts"

_FRESH = ".moving"  # of a file in the making; what a crash leaves under that name is replaced


class ChatFolders:
    """The folders of all chats below `data`, the data folder."""

    def __init__(self, data: Path) -> None:
        self._data = data

    @property
    def data(self) -> Path:
        """The data folder."""
        return self._data

    async def move(self, parent: str, pairs: Iterable[tuple[str, str]]) -> None:
        """In `parent` (`MEMORY` or `TRANSCRIPTS`), what belongs to the old scope of each pair belongs
        to the new one. Raises `OSError`."""
        for old, new in pairs:
            await asyncio.to_thread(_move, self.of(parent, old), self.of(parent, new))

    async def erase(self, parent: str, scopes: Iterable[str]) -> None:
        """Remove what belongs to these scopes. Raises `OSError`."""
        for scope in scopes:
            await asyncio.to_thread(_remove, self.of(parent, scope))

    def of(self, parent: str, scope: str) -> Path:
        """The folder in `parent` that belongs to this scope."""
        return self._data / parent / scope_folder(scope)


def _remove(folder: Path) -> None:
    if folder.is_symlink():  # what it leads to is somebody else's
        folder.unlink()
    elif folder.is_dir():
        shutil.rmtree(folder)


def _move(old: Path, new: Path) -> None:
    for folder in (old, new):
        if folder.is_symlink():
            folder.unlink()
    if not old.is_dir():
        return
    if not new.exists():
        old.rename(new)
        return
    for path in sorted(old.iterdir()):
        _move_file(path, new / path.name)
    old.rmdir()


def _move_file(old: Path, new: Path) -> None:
    """A file's text goes before that of its namesake, which was written later."""
    if old.is_symlink():  # `latest`: that of the new folder is the newer one
        if new.is_symlink():
            old.unlink()
        else:
            old.rename(new)
    elif old.is_dir():
        _move(old, new)
    elif not new.exists():
        old.rename(new)
    else:
        before, after = old.read_bytes(), new.read_bytes()
        if not after.startswith(before):  # not yet joined, before a crash
            _write(new, before + after)
        old.unlink()


def _write(path: Path, data: bytes) -> None:
    fresh = path.with_name(path.name + _FRESH)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
