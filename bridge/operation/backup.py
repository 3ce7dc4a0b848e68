"""A backup: one archive (tar, gzip, mode 0600) of everything that is stored, made while the bot runs.

`backup.json` (form, version, time), `galata.db` (a copy of one moment, checked), the folders of the
data folder (`memory`, `transcripts`, and others that come to be), and `config.yaml` with its defaults
and without secrets. The database is copied first: what leaves a conversation is written to its
file before the database says so, so that the files are never behind.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sqlite3
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import IO

from bridge.operation.data_folder import DATABASE
from memory.storage.copying import copy_database
from memory.storage.integrity import damage

FORM = 1  # of the archive; a reader refuses a newer one
MANIFEST = "backup.json"
CONFIG_NAME = "config.yaml"
FOLDER = "backups"  # in the data folder; the only one of its folders that is not backed up
NAME = re.compile(r"galata-(\d{8}T\d{6})Z\.tar\.gz")
SPARE_BYTES = 500_000_000  # what a backup by the clock leaves free for the bot itself
_UNFINISHED = ".unfinished"
_COMPRESSION = 3  # pictures do not get smaller, and texts hardly by more


class BackupFailed(Exception):
    """No backup was made; the text says why. Nothing is left of it."""


@dataclass(frozen=True, slots=True)
class Made:
    """A backup: its file, its size in bytes, and how many files it holds."""

    path: Path
    size: int
    files: int


def file_name(now: datetime) -> str:
    """The name of a backup that is made at `now` (UTC)."""
    return f"galata-{now:%Y%m%dT%H%M%S}Z.tar.gz"


def backups(folder: Path) -> list[Path]:
    """The finished backups in a folder, the newest first."""
    if not folder.is_dir():
        return []
    found = [path for path in folder.iterdir() if NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: path.name, reverse=True)


def newest_time(folder: Path) -> datetime | None:
    """When the newest finished backup in a folder was made (UTC), by its name; None without any."""
    found = [NAME.fullmatch(path.name) for path in backups(folder)[:1]]
    times = [match[1] for match in found if match is not None]
    return datetime.strptime(f"{times[0]}+0000", "%Y%m%dT%H%M%S%z") if times else None


def make(
    data: Path, target: Path, config: str | None, now: datetime, stop: threading.Event | None = None
) -> Made:
    """Write the backup of the data folder to `target`, which must not be there. `config`: the
    configuration without secrets. Blocks; ends soon after `stop` is set. Raises `BackupFailed`."""
    if target.exists():
        raise BackupFailed(f"{target} is there already")
    copy, unfinished = (target.with_name(f"{target.name}{end}{_UNFINISHED}") for end in (".db", ""))
    try:
        for leftover in (copy, unfinished):
            leftover.unlink(missing_ok=True)
        _copy_checked(data / DATABASE, copy, stop)
        with _private(unfinished) as file:
            count = _fill(file, _contents(data, copy, config, now), stop)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            raise BackupFailed(f"{target} is there already")
        unfinished.rename(target)
        return Made(target, target.stat().st_size, count)
    except (OSError, tarfile.TarError) as error:
        raise BackupFailed(f"{target}: {error}") from error
    finally:
        for path in (copy, unfinished):
            path.unlink(missing_ok=True)


def make_by_the_clock(
    data: Path, config: str | None, keep: int, now: datetime, stop: threading.Event
) -> Made:
    """A backup in the data folder; of those there the newest `keep` stay. Raises `BackupFailed`."""
    folder = data / FOLDER
    try:
        _make_room(data, folder)
        made = make(data, folder / file_name(now), config, now, stop)
        for path in backups(folder)[keep:]:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise BackupFailed(f"{folder}: {error}") from error
    return made


def _make_room(data: Path, folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for leftover in folder.glob(f"*{_UNFINISHED}"):
        leftover.unlink(missing_ok=True)
    size = (data / DATABASE).stat().st_size
    free = shutil.disk_usage(folder).free
    if free < 2 * size + SPARE_BYTES:
        raise BackupFailed(
            f"{folder}: {free // 10**6} MB are free, a backup of a database of {size // 10**6} MB "
            f"needs {(2 * size + SPARE_BYTES) // 10**6} MB"
        )


def _copy_checked(source: Path, copy: Path, stop: threading.Event | None) -> None:
    if not source.is_file():
        raise BackupFailed(f"{source} is not there: which --data does the bot run on?")
    try:
        copy_database(source, copy, stop)
        fault = damage(copy, None)
    except sqlite3.Error as error:
        raise BackupFailed(f"{source} could not be copied: {error}") from error
    if fault is not None:
        raise BackupFailed(f"{source} is damaged: {fault}")


@dataclass(frozen=True, slots=True)
class _Entry:
    """What becomes a file of the archive: a path to read, or bytes."""

    name: str
    content: Path | bytes


def _contents(data: Path, copy: Path, config: str | None, now: datetime) -> Iterator[_Entry]:
    about = {
        "form": FORM,
        "galata": metadata.version("galata"),
        "made_at": now.isoformat(timespec="seconds"),
    }
    yield _Entry(MANIFEST, json.dumps(about, indent=2).encode())
    yield _Entry(DATABASE, copy)
    if config is not None:
        yield _Entry(CONFIG_NAME, config.encode())
    for folder in sorted(path for path in data.iterdir() if path.is_dir()):
        if folder.name != FOLDER and not folder.is_symlink():
            yield from _files(folder, data)


def _files(folder: Path, data: Path) -> Iterator[_Entry]:
    """Regular files only: links (`latest` of the transcripts) lead elsewhere or to what is there."""
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(root) / name
            if path.is_file() and not path.is_symlink():
                yield _Entry(path.relative_to(data).as_posix(), path)


def _private(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _fill(file: IO[bytes], entries: Iterator[_Entry], stop: threading.Event | None) -> int:
    count = 0
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=_COMPRESSION) as archive:
        for entry in entries:
            count += _add(archive, entry, stop)
    return count


def _add(archive: tarfile.TarFile, entry: _Entry, stop: threading.Event | None) -> bool:
    """Whether it was added: a file may be gone since it was listed."""
    if isinstance(entry.content, bytes):
        archive.addfile(_facts(entry.name, len(entry.content), 0), io.BytesIO(entry.content))
        return True
    try:
        source = entry.content.open("rb")
    except FileNotFoundError:
        return False
    with source:
        facts = os.fstat(source.fileno())
        archive.addfile(_facts(entry.name, facts.st_size, facts.st_mtime), _Stoppable(source, stop))
    return True


def _facts(name: str, size: int, changed_at: float) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = size, changed_at, 0o600
    return info


class _Stoppable(io.RawIOBase):
    """A file that ends with an error once somebody wants to stop."""

    def __init__(self, source: IO[bytes], stop: threading.Event | None) -> None:
        self._source = source
        self._stop = stop

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._stop is not None and self._stop.is_set():
            raise BackupFailed("it was stopped")
        return self._source.read(size)
