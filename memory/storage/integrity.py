"""Whether a database file is whole, and what is done with one that is not: it is set aside, never
repaired in place and never overwritten.

Everything here opens the file read-only, so that looking at a damaged file changes nothing in it
(another connection would carry its write-ahead log over when it closes).
"""

from __future__ import annotations

import contextlib
import errno
import re
import sqlite3
import threading
from collections.abc import Generator
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

# At a start, which is to be over in 1.5 s. Measured: a file of 120 MB (100,000 messages) takes 0.2 s,
# one of 830 MB 1.0 s when the system has it in memory; a larger one is looked at as far as one gets in
# that time, and as a whole by `galata doctor` and with each backup.
START_LIMIT_S = 0.5
_WITH = ("-wal", "-shm")  # SQLite's own files beside a database; the first holds what is newest
_MOST_FAULTS = 100
# What else the check reports: rows that break a rule of their table. The file itself is whole.
_OF_ROWS = ("NULL value in ", "CHECK constraint failed in ", "NUMERIC value in ", "TEXT value in ")
_DAMAGE_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite says that the file itself is damaged, or is no database."""
    code = getattr(error, "sqlite_errorcode", None)  # missing on errors of Python's own
    return code is not None and code & 0xFF in _DAMAGE_CODES and not is_index_damage(error)


def may_pass(error: BaseException | None) -> bool:
    """Whether the file may be opened later as it is: somebody else holds it, or the disk is full (which
    SQLite sometimes calls an error of the disk)."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOSPC
    code = getattr(error, "sqlite_errorcode", 0) or 0
    return code & 0xFF in (
        *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED),
        *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR),
    )


def is_index_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite says that the contents of an index of words do not fit together."""
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_CORRUPT_VTAB


def damage(path: Path, limit_s: float | None = START_LIMIT_S) -> str | None:
    """What is wrong with the file, in one line; None when it is whole, not there, or when nothing
    was found within `limit_s` seconds. Without a limit its indexes are compared with their tables
    too. Blocks. Raises `sqlite3.Error` when it cannot be read for another reason."""
    if not _size(path):
        return lost_content(path)
    try:
        with _opened(path) as connection:
            return _found(connection, limit_s)
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            return str(error)
        raise


def lost_content(path: Path) -> str | None:
    """What is wrong when the file is empty or gone while its write-ahead log holds something (after a
    power loss or a copy gone wrong), else None. SQLite takes that for a new database, and deletes the
    log at the first query, even through a connection that only reads."""
    log = _beside(path, _WITH[0])
    if _size(path) or not _size(log):
        return None
    found = "empty" if path.is_file() else "gone"
    return f"it is {found}, while {log.name} beside it holds {_size(log)} bytes"


def set_aside(path: Path, now: datetime) -> Path:
    """Rename the file and what belongs to it, overwriting nothing; its new path. Raises `OSError`."""
    stem = f"{path.name}.broken-{now:%Y%m%dT%H%M%S}"
    number = 0
    target = path.with_name(stem)
    while any(_beside(target, ending).exists() for ending in ("", *_WITH)):
        number += 1
        target = path.with_name(f"{stem}-{number}")
    # The file itself comes last: a log that stays beside a new database would be taken for its own.
    for ending in (*_WITH, ""):
        with contextlib.suppress(FileNotFoundError):
            _beside(path, ending).rename(_beside(target, ending))
    return target


def set_aside_since(path: Path, since: datetime) -> list[Path]:
    """The files that were set aside from then on, the oldest first. Blocks."""
    name = re.compile(rf"{re.escape(path.name)}\.broken-(\d{{8}}T\d{{6}})(?:-\d+)?")
    found = [(name.fullmatch(one.name), one) for one in sorted(path.parent.iterdir())]
    begin = f"{since:%Y%m%dT%H%M%S}"
    return [one for known, one in found if known is not None and known[1] >= begin]


def open_questions(path: Path) -> list[str]:
    """The bodies of the questions that a database which was set aside still held, oldest first, as far
    as they can be read. Blocks."""
    found: list[str] = []
    with contextlib.suppress(sqlite3.Error), _opened(path) as connection:
        connection.text_factory = _read
        # Through no index: that may be what is damaged.
        rows = connection.execute(
            "SELECT body FROM inbox NOT INDEXED WHERE kind = 'turn' AND state = 'open' ORDER BY id"
        )
        for (body,) in rows:
            found.append(str(body))
    return found


def _read(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def set_aside_if_damaged(
    path: Path, now: datetime, limit_s: float | None = START_LIMIT_S
) -> str | None:
    """By the process that holds the data folder, while nobody has the file open: set a damaged file
    aside, so that a new one is made. What the operator should know, or None. Blocks for `limit_s` at
    most, and a little. Raises `OSError`."""
    try:
        fault = damage(path, limit_s)
    except sqlite3.Error:
        return None  # locked, or not readable: whoever opens it says so
    if fault is None:
        return None
    rescue = "sqlite3 {0} .recover"
    if lost_content(path) is not None:  # opened as it is, SQLite would delete the log
        rescue = "truncate --size=4096 {0} && sqlite3 {0} .recover"
    target = set_aside(path, now)
    return (
        f"{path} is damaged ({fault}); it was set aside as {target}, and a new database is begun: "
        "what was said before is not in it. `galata restore` brings a backup back into an empty "
        f"folder; `{rescue.format(target.name)}`, on a copy, may save what is newer"
    )


def _found(connection: sqlite3.Connection, limit_s: float | None) -> str | None:
    check = "integrity_check" if limit_s is None else "quick_check"
    timer = threading.Timer(limit_s or 0, connection.interrupt)
    if limit_s is not None:
        timer.start()
    try:
        rows = connection.execute(f"PRAGMA {check}({_MOST_FAULTS})").fetchall()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return None
    finally:
        timer.cancel()
    lines = [line for row in rows for line in str(row[0]).splitlines()]
    faults = [line for line in lines if line != "ok" and not line.startswith(_OF_ROWS)]
    return "; ".join(faults[:3]) or None


@contextlib.contextmanager
def _opened(path: Path) -> Generator[sqlite3.Connection]:
    uri = f"file:{quote(str(path))}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, timeout=2.0, check_same_thread=False)
    try:
        yield connection
    finally:
        connection.close()


def _size(path: Path) -> int:
    """In bytes; 0 where it is not there."""
    return path.stat().st_size if path.is_file() else 0


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)
