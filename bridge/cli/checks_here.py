"""What `galata doctor` checks on this machine: Python, libraries, files, database."""

from __future__ import annotations

import platform
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from importlib import metadata
from pathlib import Path

from bridge.access.policy import outdated
from bridge.chats.keeper import advice
from bridge.cli.finding import Finding
from bridge.cli.jobs import outcome, stored
from bridge.cli.packages import DISTRIBUTION
from bridge.config import Config
from bridge.log import Redactor
from bridge.operation.backup import FOLDER as BACKUPS
from bridge.operation.backup import newest_time
from bridge.operation.data_folder import DATABASE
from bridge.operation.upkeep import BACKUP as BACKUP_JOB
from bridge.registry import access_rules
from memory.chats.reach import Chats
from memory.database import Database
from memory.errors import StoreError, StoreTooOld
from memory.settings import BackupSettings

OLDEST_PYTHON = (3, 11)
OLDEST_BACKUP = {"day": timedelta(days=3), "week": timedelta(days=9)}
NEWER_THAN = timedelta(days=3)  # what a good backup is, however seldom they are made
_INSTALL = "install them again with `make run` in Galata's folder"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """Python's version."""
    text = ".".join(map(str, version))
    if version >= OLDEST_PYTHON:
        return Finding("ok", "python", f"{platform.python_implementation()} {text}")
    return Finding("FAIL", "python", f"{text} is too old", "install Python 3.11 or newer")


def libraries(requirements: Iterable[str] | None = None) -> Finding:
    """Whether every library that Galata asks for is there, in a version that it knows."""
    wanted = metadata.requires(DISTRIBUTION) or [] if requirements is None else requirements
    there: list[str] = []
    wrong: list[str] = []
    for requirement in wanted:
        name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            wrong.append(f"{name} is missing")
            continue
        fits = _fits(version, requirement.removeprefix(name))
        (there if fits else wrong).append(f"{name} {version}")
    if wrong:
        return Finding("FAIL", "libraries", f"not as needed: {', '.join(wrong)}", _INSTALL)
    return Finding("ok", "libraries", ", ".join(there))


def _fits(version: str, constraint: str) -> bool:
    """Whether a version fits bounds such as `>=3.11,<4`, the only ones that pyproject.toml has."""
    for operator, bound in re.findall(r"(>=|<)\s*([0-9.]+)", constraint):
        if (_numbers(version) >= _numbers(bound)) is not (operator == ">="):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"[0-9]+(\.[0-9]+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def files(data: Path, secrets: Path | None) -> Iterator[Finding]:
    """The modes of the data folder, its database and the file of secrets beside the config."""
    if not data.is_dir():
        yield Finding("note", "data", f"{data} is not there", "the first start makes it")
    else:
        names = sorted([data, *data.glob("*.db*")])
        yield from _modes("data", names) or [Finding("ok", "data", f"{data} is yours alone")]
    if secrets is not None and secrets.is_file():
        yield from _modes("secrets", [secrets]) or [
            Finding("ok", "secrets", f"{secrets} is yours alone")
        ]


def config_file(path: Path, secrets: Iterable[str]) -> list[Finding]:
    """What is wrong with the mode of the configuration: others may read it where no secret is written
    in it, and never change it."""
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8", errors="replace")
    found = _modes("config", [path]) if Redactor(secrets).clean(text) != text else []
    mode = path.stat().st_mode & 0o777
    if not found and mode & stat.S_IWOTH:
        said = f"others can change {path} (mode {mode:04o})"
        found = [Finding("FAIL", "config", said, f"chmod o-w '{path}'")]
    return found


def _modes(subject: str, paths: Iterable[Path]) -> list[Finding]:
    return [
        Finding(
            "FAIL", subject, f"others can use {path} (mode {path.stat().st_mode & 0o777:04o})",
            f"chmod go= '{path}'",
        )
        for path in paths
        if path.stat().st_mode & _OTHERS
    ]  # fmt: skip


async def database(path: Path, size: int | None) -> Finding:
    """Whether the database opens, and is whole; `size` in bytes, None when there is none."""
    if size is None:
        return Finding("note", "database", f"{path} is not there", "the first start makes it")
    try:
        opened = await Database.open_beside(path)
        try:
            verdicts = [str(row[0]) for row in await opened.read("PRAGMA integrity_check(3)")]
        finally:
            await opened.close()
    except StoreTooOld as error:
        return Finding("note", "database", str(error))
    except StoreError as error:
        return Finding("FAIL", "database", str(error))
    if verdicts != ["ok"]:
        fix = "stop the bot and restore the folder from a backup"
        return Finding("FAIL", "database", f"{path} is damaged ({'; '.join(verdicts)})", fix)
    return Finding("ok", "database", f"{path} is whole, {size / 1e6:.1f} MB")


async def moved_chats(path: Path, config: Config) -> list[Finding]:
    """Chats that the configuration lists under an id which they do not have any more."""
    opened = await Database.open_beside(path)
    try:
        chats = Chats(opened)
        await chats.load()
        return [
            Finding("note", "chats", f"{move.old} has become {move.new}", advice(move))
            for move in outdated(access_rules(config), chats)
        ]
    finally:
        await opened.close()


async def backups(data: Path, settings: BackupSettings, now: datetime) -> Finding:
    """How old the newest backup by the clock is, and whether the last one failed."""
    rows = [row for row in await stored(data / DATABASE) if row.kind == BACKUP_JOB]
    newest = newest_time(data / BACKUPS)
    fix = "galata jobs tells how the last one went, galata backup PATH makes one now"
    failed = [row for row in rows if row.outcome not in (None, "done", "interrupted")]
    if failed:
        return Finding("FAIL", "backup", f"the last one failed: {outcome(failed[0])}", fix)
    if newest is None:
        return Finding(
            "note", "backup", f"none is in {data / BACKUPS} yet", "leave the bot running"
        )
    at = f"{newest:%Y-%m-%d %H:%M} UTC"
    if now - newest > OLDEST_BACKUP[settings.every]:
        return Finding("FAIL", "backup", f"the last good one is of {at}", fix)
    if now - newest > NEWER_THAN:
        often = "write `every: day` under `backup`, or galata backup PATH makes one now"
        return Finding("note", "backup", f"the last good one is of {at}", often)
    return Finding("ok", "backup", f"the last one is of {at}")


def backups_by_hand(data: Path, now: datetime) -> Finding:
    """Where no section switches them on: what is there all the same, and how to have them."""
    fix = (
        "write `backup: {every: day, keep: 7}` into the configuration; "
        "galata backup PATH makes one now"
    )
    newest = newest_time(data / BACKUPS)
    if newest is None:
        return Finding("note", "backup", "no backups are made", fix)
    at = f"the last one is of {newest:%Y-%m-%d %H:%M} UTC"
    if now - newest > NEWER_THAN:
        return Finding("note", "backup", f"{at}, and none is made by the clock", fix)
    return Finding("ok", "backup", f"{at}, made by hand")
