"""How a scope's files are written: under one lock, atomically, and never over somebody's change.

The lock is `flock` on `.lock` in the scope's folder. It holds between threads and between processes,
and the kernel frees it when its holder dies. People's editors do not know it: what they change
meanwhile is found by comparing before each replacement. No link is followed, neither that of a file
nor that of the scope's folder: it could lead into another scope's (`Linked`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from memory.errors import Linked

LOCK = ".lock"
LOCK_WAIT_S = 10.0  # for another writer, who needs milliseconds
FRESH = ".fresh"  # of a file in the making
_SHORTEST_S, _LONGEST_S = 0.001, 0.05  # pauses between two tries to get the lock


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Hold the folder's lock (the folder is made, mode 0700). Blocks. Raises `OSError`, also when
    another writer does not let go of it for 10 s."""
    with suppress(FileExistsError):  # no folder: opening it tells what it is
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = _open(folder / LOCK, os.O_RDWR | os.O_CREAT)
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


def names(folder: Path) -> list[str]:
    """The files in the folder, links left out; none where there is no folder. Raises `OSError`."""
    try:
        with _opened(folder) as handle, os.scandir(handle) as entries:
            return [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def read(path: Path) -> bytes:
    """What the file holds; nothing where there is none. Raises `OSError`."""
    try:
        handle = _open(path, os.O_RDONLY)
    except FileNotFoundError:
        return b""
    with os.fdopen(handle, "rb") as file:
        return file.read()


def replace(path: Path, before: bytes, after: bytes) -> bool:
    """Put `after` in the place of `before` (mode 0600); false when the file holds something else by
    now. Synced when it returns. For use under the lock. Raises `OSError`, and the file is as it was.
    """
    fresh = path.with_name(path.name + FRESH)
    try:
        write(fresh, after)
        if read(path) != before:
            return False
        fresh.replace(path)
    finally:
        with suppress(FileNotFoundError):
            fresh.unlink()
    sync_folder(path.parent)
    return True


def write(path: Path, data: bytes) -> None:
    """The whole file anew (mode 0600), synced when it returns. Raises `OSError`."""
    with os.fdopen(_open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def append(path: Path, data: bytes) -> None:
    """Add to the file's end (mode 0600). Synced when it returns. For use under the lock. Raises
    `OSError`, and the file is as it was: a full disk leaves no half of an entry."""
    handle = _open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
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
    with _opened(folder) as handle:
        os.fsync(handle)


def _open(path: Path, flags: int) -> int:
    """The file's handle. Raises `OSError`."""
    with _opened(path.parent) as folder:
        try:
            flags |= os.O_NOFOLLOW | os.O_CLOEXEC
            return os.open(path.name, flags, 0o600, dir_fd=folder)
        except OSError as error:
            raise _as_link(path, error) from None


@contextmanager
def _opened(folder: Path) -> Generator[int]:
    """The folder's handle, by which nobody can put a link in its place meanwhile. Raises `OSError`."""
    try:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(folder, flags)
    except OSError as error:
        raise _as_link(folder, error) from None
    try:
        yield handle
    finally:
        os.close(handle)


def _as_link(path: Path, error: OSError) -> OSError:
    """Systems name a link that is not followed in several ways."""
    return Linked(path) if path.is_symlink() else error
