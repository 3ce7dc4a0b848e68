"""A backup is unpacked into an empty folder, and checked. Nothing in the archive is trusted."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sqlite3
import tarfile
import zlib
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from bridge.operation.backup import CONFIG_NAME, FOLDER, FORM, MANIFEST
from bridge.operation.data_folder import DATABASE, LOCK
from memory.storage.integrity import damage
from memory.storage.migrate import migrations, schema_of
from memory.unread import note_restore

_CHUNK = 1 << 20
_MOST_MANIFEST = 100_000  # bytes
_UNFINISHED = "galata.db.restoring"  # the database gets its name last: until then no bot finds it


class RestoreFailed(Exception):
    """The text says why. The folder is as it was: empty."""


@dataclass(frozen=True, slots=True)
class Restored:
    """`made_at`: when the backup was made (ISO 8601, UTC); `files`: how many were unpacked;
    `messages`: how many the database holds; `config`: the configuration's file, if there is one."""

    made_at: str
    files: int
    messages: int
    config: Path | None


def restore(archive: Path, data: Path) -> Restored:
    """Unpack `archive` into `data`, which is there, empty but for the lock, and held by this process.
    Blocks. Raises `RestoreFailed`."""
    strangers = sorted(path.name for path in data.iterdir() if path.name != LOCK)
    if strangers:
        raise RestoreFailed(f"{data} is not empty (it has {strangers[0]}): give another --data")
    try:
        restored = _unpacked(archive, data)
    except (
        OSError,
        EOFError,
        ArithmeticError,
        tarfile.TarError,
        sqlite3.Error,
        ValueError,
        zlib.error,
    ) as error:
        _empty(data)
        raise RestoreFailed(f"{archive}: {error}") from error
    except BaseException:
        _empty(data)
        raise
    return restored


def _unpacked(archive: Path, data: Path) -> Restored:
    with gzip.open(archive) as stream, tarfile.open(fileobj=stream, mode="r:") as opened:
        made_at = _made_at(opened, archive)
        files = 0
        for member in opened:
            if not member.isdir():
                _write(opened, member, data)
                files += 1
        while stream.read(_CHUNK):  # to the end, where the sum of all that was read is compared
            pass
    database = data / _UNFINISHED
    if not database.is_file():
        raise RestoreFailed(f"{archive} holds no {DATABASE}")
    messages = _checked(database, archive)
    with closing(sqlite3.connect(database)) as connection, connection:
        note_restore(connection, made_at)
    database.rename(data / DATABASE)
    config = data / CONFIG_NAME
    return Restored(made_at, files, messages, config if config.is_file() else None)


def _made_at(opened: tarfile.TarFile, archive: Path) -> str:
    """When it was made. Raises `RestoreFailed` when it is no backup that we know."""
    first = opened.next()
    content = None if first is None or first.name != MANIFEST else opened.extractfile(first)
    if content is None:
        raise RestoreFailed(f"{archive} is no backup of Galata (it does not begin with {MANIFEST})")
    about: Any = json.loads(content.read(_MOST_MANIFEST))
    try:
        form, made_at = int(about["form"]), str(about["made_at"])
    except (KeyError, TypeError):
        raise RestoreFailed(f"{archive}: {MANIFEST} says nothing of its form") from None
    if form > FORM:
        raise RestoreFailed(
            f"{archive} has form {form}, this Galata knows {FORM}: use the newer version "
            "that wrote it"
        )
    return made_at


def _write(opened: tarfile.TarFile, member: tarfile.TarInfo, data: Path) -> None:
    source = opened.extractfile(member) if member.isreg() else None
    if source is None:
        raise RestoreFailed(f"{member.name!r} is no plain file: this archive is not Galata's")
    path = _path(member.name)
    for folder in reversed(path.parents):
        (data / folder).mkdir(mode=0o700, exist_ok=True)
    target = data / path
    # O_EXCL: no name twice. Nothing in the folder is a link, for none was unpacked.
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        _copy(source, file)
    os.utime(target, (member.mtime, member.mtime))


def _path(name: str) -> PurePosixPath:
    """Where a file of the archive goes, below the data folder. Raises `RestoreFailed`."""
    path = PurePosixPath(name)
    parts = path.parts
    if path.is_absolute() or not parts or ".." in parts or "\0" in name:
        raise RestoreFailed(f"{name!r} leads out of the folder: this archive is not Galata's")
    if name == DATABASE:
        return PurePosixPath(_UNFINISHED)
    if name in (MANIFEST, CONFIG_NAME) or (len(parts) > 1 and parts[0] != FOLDER):
        return path
    raise RestoreFailed(f"{name!r} is no file of a backup: this archive is not Galata's")


def _copy(source: IO[bytes], target: IO[bytes]) -> None:
    shutil.copyfileobj(source, target)
    target.flush()
    os.fsync(target.fileno())


def _checked(database: Path, archive: Path) -> int:
    """How many messages it holds. Raises `RestoreFailed`."""
    fault = damage(database, None)
    if fault is not None:
        raise RestoreFailed(f"{archive}: its database is damaged ({fault})")
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        schema, newest = schema_of(connection), migrations()[-1].number
        if schema > newest:
            raise RestoreFailed(
                f"{archive}: its database has schema {schema}, this Galata knows {newest}: use the "
                "newer version that wrote it"
            )
        if schema == 0:
            raise RestoreFailed(f"{archive}: its database is not Galata's")
        return int(connection.execute("SELECT COUNT(*) FROM messages").fetchone()[0])


def _empty(data: Path) -> None:
    for path in data.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()
