"""How a scope's files are written: under one lock, atomically, and never over somebody's change.

The lock is `flock` on `.lock` in the scope's folder. It holds between threads and between processes,
and the kernel frees it when its holder dies. People's editors do not know it: what they change
meanwhile is found by comparing before each replacement.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

LOCK = ".lock"
LOCK_WAIT_S = 10.0  # for another writer, who needs milliseconds
_FRESH = ".fresh"  # of a file in the making; what a crash leaves under that name is replaced
_SHORTEST_S, _LONGEST_S = 0.001, 0.05  # pauses between two tries to get the lock


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Hold the folder's lock (the folder is made, mode 0700). Blocks. Raises `OSError`, also when
    another writer does not let go of it for 10 s."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _acquire(handle, folder)
        yield
    finally:
        os.close(handle)


def _acquire(handle: int, folder: Path) -> None:
    until, pause_s = time.monotonic() + LOCK_WAIT_S, _SHORTEST_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise OSError(errno.EBUSY, "another writer holds it", str(folder / LOCK)) from None
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_S)
        else:
            return


def read(path: Path) -> bytes:
    """What the file holds; nothing where there is none. Never follows a link out of the folder.
    Raises `OSError`."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    with os.fdopen(handle, "rb") as file:
        return file.read()


def replace(path: Path, before: bytes, after: bytes) -> bool:
    """Put `after` in the place of `before` (mode 0600); false when the file holds something else by
    now. Synced when it returns. For use under the lock. Raises `OSError`, and the file is as it was.
    """
    fresh = path.with_name(path.name + _FRESH)
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(after)
            file.flush()
            os.fsync(file.fileno())
        if read(path) != before:
            return False
        fresh.replace(path)
    finally:
        with suppress(FileNotFoundError):
            fresh.unlink()
    sync_folder(path.parent)
    return True


def append(path: Path, data: bytes) -> None:
    """Add to the file's end (mode 0600). Synced when it returns. For use under the lock. Raises
    `OSError`, and the file is as it was: a full disk leaves no half of an entry."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(handle).st_size
        try:
            if os.write(handle, data) != len(data):
                raise OSError(errno.ENOSPC, "only a part could be written", str(path))
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, size)
            raise
    finally:
        os.close(handle)
    if not size:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make what was created or renamed in it survive a power cut. Raises `OSError`."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
