"""`galata jobs`: what is done by the clock, when it comes next, and how it went."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from bridge.cli.options import FINE, CommandFailed, Options, say
from memory.errors import StoreError
from memory.jobs import JobRow, Jobs


def show(options: Options) -> int:
    """Print the list. Raises `CommandFailed`."""
    from bridge.operation.data_folder import DATABASE

    path = options.data / DATABASE
    if not path.is_file():
        raise CommandFailed(f"{path} is not there: which --data does the bot run on?")
    try:
        rows = asyncio.run(stored(path))
    except StoreError as failure:
        raise CommandFailed(str(failure)) from None
    if not rows:
        say("nothing is planned: the bot plans its jobs when it starts")
    for line in lines(rows):
        say(line)
    return FINE


async def stored(path: Path) -> list[JobRow]:
    """Every job in the database `path`. Raises `StoreError`."""
    from memory.database import Database

    database = await Database.open_beside(path)
    try:
        return await Jobs(database).all()
    finally:
        await database.close()


def lines(rows: list[JobRow]) -> Iterator[str]:
    """A table for a person; times in UTC."""
    if not rows:
        return
    names = [f"{row.kind} {row.scope}".rstrip() for row in rows]
    width = max(map(len, ("job", *names)))
    yield f"{'job':<{width}}  {'next':<20}  {'last':<20}  outcome"
    for name, row in zip(names, rows, strict=True):
        yield f"{name:<{width}}  {_time(row.due_at)}  {_time(row.last_at)}  {outcome(row)}".rstrip()


def outcome(row: JobRow) -> str:
    """How the last run went, and whether one is under way."""
    words = [] if row.outcome is None else [row.outcome.replace("_", " ")]
    if row.detail:
        words = [f"{words[0]}: {row.detail}"] if words else [row.detail]
    if row.began_at is not None:
        words.append(f"running since {_time(row.began_at)}")
    return "; ".join(words) or "-"


def _time(moment: datetime | None) -> str:
    return f"{'-':<20}" if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"
