"""A database that is read where nothing can be created beside it, as on a file system that is mounted
read-only: SQLite would have to create the shared memory of the write-ahead log there."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory


@dataclass(frozen=True, slots=True)
class Frozen:
    """How to open it: the file, SQLite's mode, and the folder of a copy, which goes afterwards."""

    path: Path
    mode: str
    copy: TemporaryDirectory[str] | None = None


def frozen(path: Path) -> Frozen | None:
    """How a database is read whose folder cannot be written; None where it is opened as usual: the
    folder can be, or the shared memory is there. Where the log holds something, the two are copied,
    since SQLite reads no log that it cannot share. Blocks. Raises `OSError`."""
    log, shared = (path.with_name(f"{path.name}-{end}") for end in ("wal", "shm"))
    if is_writable(path.parent) or shared.exists() or not path.is_file():
        return None
    if not log.exists() or log.stat().st_size == 0:
        return Frozen(path, "ro&immutable=1")
    copy = TemporaryDirectory(prefix="galata-")
    try:
        for file in (path, log):
            shutil.copyfile(file, Path(copy.name) / file.name)
    except BaseException:
        copy.cleanup()
        raise
    return Frozen(Path(copy.name) / path.name, "ro", copy)


def is_writable(folder: Path) -> bool:
    """Whether files can be created there."""
    return os.access(folder, os.W_OK)
