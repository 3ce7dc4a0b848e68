"""The schema: numbered migrations, forward only, each in one transaction.

A database of an older schema is copied before it is changed; one of a newer schema is refused.
"""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

from memory.errors import StoreError, StoreTooNew, StoreTooOld
from memory.storage.copying import copy_database

log = logging.getLogger(__name__)

KEPT = "{name}.schema-{version}-{time}"  # the copy beside the database
KEPT_NAME = re.compile(r"\.schema-\d+-[0-9T]+(-\d+)?$")


@dataclass(frozen=True, slots=True)
class Migration:
    """The file `memory/migrations/NNNN_name.sql`."""

    number: int
    name: str
    sql: str


def migrations() -> list[Migration]:
    """All migrations, in order."""
    folder = resources.files("memory") / "migrations"
    files = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [
        Migration(int(name[:4]), name[5:].removesuffix(".sql"), (folder / name).read_text("utf-8"))
        for name in files
    ]


def schema_of(connection: sqlite3.Connection) -> int:
    """The number of the newest migration that the database has had; 0 for an empty one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the database in the file `path` up to date. Blocks. Raises `StoreTooNew`, and
    `sqlite3.Error` or `OSError` when it, or its copy, cannot be written: then it is as it was."""
    version, known = schema_of(connection), migrations()
    _refuse_newer(version, known[-1].number, path)
    new = [migration for migration in known if migration.number > version]
    if new and version:
        copy = _keep_copy(path, version)
        names = ", ".join(migration.name for migration in new)
        log.warning(
            "%s: schema %d becomes %d (%s); the database as it was is kept as %s",
            path,
            version,
            known[-1].number,
            names,
            copy.name,
        )
    for migration in new:
        _carry_out(connection, migration)


def require_newest(connection: sqlite3.Connection, path: Path) -> None:
    """Change nothing. Blocks. Raises `StoreTooOld` and `StoreTooNew` unless the database in the file
    `path` has the schema that this program knows."""
    version, newest = schema_of(connection), migrations()[-1].number
    _refuse_newer(version, newest, path)
    if version < newest:
        raise StoreTooOld(
            f"{path}: the database has schema {version}, this Galata needs {newest}; start the bot "
            f"once with this version (galata run), which keeps a copy and brings it up to date"
        )


def _refuse_newer(version: int, newest: int, path: Path) -> None:
    if version > newest:
        raise StoreTooNew(
            f"{path}: the database has schema {version}, this Galata knows {newest}; "
            f"start the newer version that wrote it"
        )


def statements(sql: str) -> Iterable[str]:
    """The statements of a script; `executescript` would commit each by itself."""
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        raise StoreError(f"a migration ends in the middle of a statement: {statement[:60]!r}")


def _carry_out(connection: sqlite3.Connection, migration: Migration) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if schema_of(connection) >= migration.number:  # another process was faster
            connection.rollback()
            return
        for statement in statements(migration.sql):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {migration.number}")
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def _keep_copy(path: Path, version: int) -> Path:
    """A copy of the whole database beside it, under a name that is free (mode 0600)."""
    time = f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
    name = KEPT.format(name=path.name, version=version, time=time)
    copy, number = path.with_name(name), 0
    while copy.exists():
        number += 1
        copy = path.with_name(f"{name}-{number}")
    copy_database(path, copy)
    return copy
