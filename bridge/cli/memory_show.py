"""`galata memory list` and `galata memory show SCOPE [DAY]`: what memories hold. A reading is
recorded in the audit table before anything is shown, and `/privacy` says that the operator can."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.cli.actor import actor
from bridge.cli.options import FINE, CommandFailed, Options, say
from bridge.cli.safely import say_safely
from memory.errors import StoreError

if TYPE_CHECKING:
    from memory.database import Database


def show_all(options: Options) -> int:
    """The list; nothing of what they hold. Raises `CommandFailed`."""
    lines = _run(options, _listed, to_write=False)
    for line in lines:
        say_safely(line)
    if not lines:
        say("no chat has a memory yet")
    return FINE


def show(options: Options) -> int:
    """`MEMORY.md` and the names of the days, or a day's notes. Raises `CommandFailed`."""
    for line in _run(options, _read, to_write=True):
        say_safely(line)
    return FINE


def _run(
    options: Options,
    work: Callable[[Database, Options], Awaitable[list[str]]],
    *,
    to_write: bool,
) -> list[str]:
    from bridge.operation.data_folder import DATABASE
    from memory.database import Database

    path = options.data / DATABASE
    if not path.is_file():
        raise CommandFailed(f"{path} is not there: which --data does the bot run on?")

    async def run() -> list[str]:
        database = await Database.open_beside(path, to_write=to_write)
        try:
            return await work(database, options)
        finally:
            await database.close()

    try:
        return asyncio.run(run())
    except (StoreError, OSError) as failure:
        told = "\nReading a memory is recorded in the database, which must be writable."
        raise CommandFailed(f"{failure}{told if to_write else ''}") from None


async def _listed(database: Database, options: Options) -> list[str]:
    from memory.markdown.facts import parse, size
    from memory.markdown.files import read
    from memory.scopes import FACTS, scope_path

    lines: list[str] = []
    for scope in await _scopes(database, options.data):
        folder = scope_path(_folder(options.data), scope)
        entries = size(parse(read(folder / FACTS).decode("utf-8", "replace"))).entries
        lines.append(f"{scope}  {entries} entries, {len(_days(folder))} days with notes")
    return lines


async def _read(database: Database, options: Options) -> list[str]:
    from memory.audit import record
    from memory.markdown.files import read
    from memory.scopes import FACTS, NoSuchName, scope_path

    wanted = options.scope or ""
    if wanted not in await _scopes(database, options.data):
        raise CommandFailed(
            f"there is no memory {wanted!r}; galata memory list names those that are"
        )
    folder = scope_path(_folder(options.data), wanted)
    try:
        name = f"{options.day}.md" if options.day else FACTS
        path = scope_path(_folder(options.data), wanted, name)
    except NoSuchName:
        raise CommandFailed(f"{options.day!r} is no day, such as 2026-11-30") from None
    await database.write(lambda c: record(c, actor(), "memory.read", wanted, options.day or None))
    lines = read(path).decode("utf-8", "replace").rstrip("\n").split("\n")
    days = [] if options.day else ["", "days with notes:", *_days(folder)]
    return [*lines, *days]


async def _scopes(database: Database, data: Path) -> list[str]:
    """Those of all chats, and the one that groups share, as far as they have a folder."""
    from bridge.session import memory_scope
    from channels.base import Address
    from memory.scopes import SHARED, scope_path

    rows = await database.read(
        "SELECT DISTINCT channel, account, chat FROM sessions ORDER BY channel, account, chat"
    )
    scopes = [
        memory_scope(Address(channel, account, chat, None, private))
        for channel, account, chat in rows
        for private in (True, False)
    ] + [SHARED]
    return [scope for scope in scopes if scope_path(_folder(data), scope).is_dir()]


def _folder(data: Path) -> Path:
    from memory.markdown.folders import MEMORY

    return data / MEMORY


def _days(folder: Path) -> list[str]:
    from memory.markdown.files import names
    from memory.scopes import day_of

    return sorted(name.removesuffix(".md") for name in names(folder) if day_of(name) is not None)
