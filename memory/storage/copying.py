"""A copy of a whole database, consistent while others read and write it."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

_STEPS = 10_000  # of SQLite's machine between two looks at `stop`: well under a millisecond's work


def copy_database(source: Path, target: Path, stop: threading.Event | None = None) -> None:
    """Write the database `source` to the new file `target` (mode 0600); what was deleted before is not
    in it. It is one moment's state, and writers are not held up. Blocks.

    Raises `sqlite3.Error` or `OSError` (also when `stop` is set meanwhile); then there is no `target`.
    """
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        uri = f"file:{quote(str(source))}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            if stop is not None:
                connection.set_progress_handler(stop.is_set, _STEPS)
            connection.execute("VACUUM INTO ?", (str(target),))  # which takes an empty file
        _sync(target)
    except BaseException:
        for path in (target, target.with_name(f"{target.name}-journal")):
            path.unlink(missing_ok=True)
        raise


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
