"""The data folder: closed to other users, and held by one process at a time."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import sys
from collections.abc import Generator
from pathlib import Path

DATABASE = "galata.db"
LOCK = "galata.lock"  # holds the number of the process that has it; it stays when nobody does
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_MOST_DIGITS = 20


class FolderRefused(Exception):
    """The folder cannot be used; the text is one line for the operator."""


@contextlib.contextmanager
def held(data: Path) -> Generator[None]:
    """Make the folder where it is missing, close it to others, and hold it for this process alone.

    The kernel frees it when the process ends, however that ends. Raises `FolderRefused`.
    """
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise FolderRefused(f"--data {data}: cannot be created: {error.strerror}") from None
    _close_to_others(data)
    try:
        descriptor = os.open(data / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise FolderRefused(f"--data {data}: cannot be written: {error.strerror}") from None
    try:
        _lock(descriptor, data)
        with contextlib.suppress(OSError):  # a full disk: the number is for a message only
            os.ftruncate(descriptor, os.pwrite(descriptor, str(os.getpid()).encode(), 0))
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, data: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno != errno.EWOULDBLOCK:
            raise FolderRefused(f"--data {data}: cannot be locked: {error.strerror}") from None
        holder = os.pread(descriptor, _MOST_DIGITS, 0).decode(errors="replace")
        process = f" (process {holder})" if holder.isdecimal() else ""
        raise FolderRefused(
            f"another galata{process} runs on this data folder: stop it, or give another --data"
        ) from None


def _close_to_others(data: Path) -> None:
    """Messages are nobody else's business: a folder that was made with another mode is closed, or
    whoever started us is told that it is open."""
    mode = stat.S_IMODE(data.stat().st_mode)
    if not mode & _OTHERS:
        return
    if mode & stat.S_ISVTX:  # shared on purpose, as /tmp is
        _tell(f"others can use {data} (mode {mode:04o}): give a folder of its own with --data")
        return
    try:
        data.chmod(mode & ~_OTHERS)
    except OSError:
        _tell(f"others can use {data} (mode {mode:04o}), and it is not yours to change")
    else:
        _tell(f"others could use {data} (mode {mode:04o}): it is yours alone now")


def _tell(line: str) -> None:
    print(line, file=sys.stderr)  # noqa: T201 - to whoever started it
