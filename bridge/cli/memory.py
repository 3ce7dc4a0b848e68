"""`galata memory reindex`: the search index over memory files and conversations is built anew.
`galata memory tidy`: the night's work on `MEMORY.md`, now."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bridge.cli.options import FINE, CommandFailed, Options, say, tell
from bridge.cli.running import ask_running
from memory.errors import StoreError

TIDY_WAIT_S = 3600.0  # for all chats together, one after another


def reindex(options: Options) -> int:
    """Build it, also while the bot runs. Raises `CommandFailed`."""
    from bridge.operation.data_folder import DATABASE

    path = options.data / DATABASE
    if not path.is_file():
        raise CommandFailed(f"{path} is not there: which --data does the bot run on?")
    try:
        scopes, entries = asyncio.run(_reindex(path, options.data))
    except (StoreError, OSError) as failure:
        raise CommandFailed(str(failure)) from None
    say(
        f"the index holds {entries} entries of {scopes} chats; what no chat has searched comes later"
    )
    return FINE


def tidy(options: Options) -> int:
    """Have the running bot do it for every chat. Raises `CommandFailed`."""
    from bridge.remembering.jobs import TIDY

    outcomes = ask_running(options.data, TIDY, wait_s=TIDY_WAIT_S)
    told = (f"{count} {name.replace('_', ' ')}" for name, count in sorted(outcomes.items()))
    say(", ".join(told) or "no chat has a memory yet")
    return FINE


async def _reindex(path: Path, data: Path) -> tuple[int, int]:
    """How many scopes, and how many entries."""
    from memory.database import Database
    from memory.indexing import Indexer
    from memory.markdown.folders import MEMORY

    database = await Database.open_beside(path, to_write=True)
    try:
        scopes = await Indexer(database, data / MEMORY).reindex(tell)
        rows = await database.read("SELECT COUNT(*) FROM search_entries")
        return scopes, int(rows[0][0])
    finally:
        await database.close()
