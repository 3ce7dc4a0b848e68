"""`galata error ID`."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bridge.cli.options import FINE, CommandFailed, Options, say
from memory.errors import StoreError
from memory.operators.errorlog import ErrorLog, StoredError


def show(options: Options) -> int:
    """When and where the error happened, and its trace. Raises `CommandFailed`."""
    from bridge.operation.data_folder import DATABASE

    path = options.data / DATABASE
    if not path.is_file():
        raise CommandFailed(f"{path} is not there: which --data does the bot run on?")
    try:
        error = asyncio.run(_find(path, options.error_id.strip()))
    except StoreError as failure:
        raise CommandFailed(str(failure)) from None
    if error is None:
        raise CommandFailed(f"no error of that id is stored in {path}")
    say(f"error {error.id}\nat    {error.at}\nin    {error.place}\n\n{error.trace.rstrip()}")
    return FINE


async def _find(path: Path, error_id: str) -> StoredError | None:
    from memory.database import Database

    database = await Database.open_beside(path)
    try:
        return await ErrorLog(database).find(error_id)
    finally:
        await database.close()
