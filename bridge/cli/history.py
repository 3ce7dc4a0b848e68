"""`galata history [SESSION]`: the list of conversations, or one of them as it is stored."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.cli.actor import actor
from bridge.cli.options import FINE, CommandFailed, Options, say
from bridge.cli.running import NotRunning, ask_running
from bridge.cli.safely import say_safely
from memory.errors import StoreError

if TYPE_CHECKING:
    from memory.transcripts import History, Mark, SessionEntry

_MARKS = {"new": "new conversation", "trim": "older messages left the context here"}


def show(options: Options) -> int:
    """Print it; a reading is recorded first, by the process that runs, if one does. Raises
    `CommandFailed`."""
    from bridge.operation.data_folder import DATABASE

    path = options.data / DATABASE
    if not path.is_file():
        raise CommandFailed(f"{path} is not there: which --data does the bot run on?")
    try:
        asyncio.run(_show(path, options.session))
    except StoreError as failure:
        recorded = "\nReading a conversation is recorded in the database, which must be writable."
        raise CommandFailed(f"{failure}{recorded if options.session else ''}") from None
    except BrokenPipeError:  # whoever read has seen enough: `galata history … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FINE


async def _show(path: Path, wanted: str | None) -> None:
    from memory.database import Database
    from memory.transcripts import History

    database = await Database.open_beside(path)
    try:
        history = History(database)
        if wanted is None:
            _list(await history.sessions(), path)
            return
        found = await history.sessions(wanted)
        if not found:
            raise CommandFailed(
                f"no session {wanted!r} is stored in {path}; galata history lists those that are"
            )
        await _record(path, found[0].key)
        await _print(history, found[0])
    finally:
        await database.close()


async def _record(path: Path, key: str) -> None:
    from memory.database import Database
    from memory.transcripts import READING, History

    try:
        await asyncio.to_thread(ask_running, path.parent, READING, actor=actor(), session=key)
    except NotRunning:
        database = await Database.open_beside(path, to_write=True)
        try:
            await History(database).record_reading(actor(), key)
        finally:
            await database.close()


def _list(entries: Sequence[SessionEntry], path: Path) -> None:
    if not entries:
        say(f"no conversation is stored in {path}")
        return
    say_safely("number  messages  last message             session")
    for entry in entries:
        last = f"{entry.last_at[:19].replace('T', ' ')} UTC" if entry.last_at else "-"
        say_safely(f"{entry.number:>6}  {entry.messages:>8}  {last:<23}  {entry.key}")


async def _print(history: History, entry: SessionEntry) -> None:
    """The whole conversation; messages are numbered anew where a new one began."""
    from memory.rendering import Renderer

    say_safely(f"session {entry.number}: {entry.key}, {entry.messages} messages")
    marks = sorted(await history.marks(entry.number), key=lambda mark: mark.start_id)
    renderer, after = Renderer(), 0
    while page := await history.page(entry.number, after):
        for stored in page:
            while marks and marks[0].start_id <= stored.id:
                mark = marks.pop(0)
                say_safely(_marked(mark))
                if mark.kind == "new":
                    renderer = Renderer()
            for line in renderer.render(stored):
                say_safely(line)
        after = page[-1].id
    for mark in marks:
        say_safely(_marked(mark))


def _marked(mark: Mark) -> str:
    at = mark.created_at[:19].replace("T", " ")
    return f"--- {_MARKS.get(mark.kind, mark.kind)} ({at} UTC) ---"
