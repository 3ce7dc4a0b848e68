"""`galata erase --person CHANNEL:ID` or `--chat CHANNEL:ID`: what there is of them, then it goes.
By the process that runs on the data folder; where none runs, here."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from bridge.cli.actor import actor
from bridge.cli.options import FINE, CommandFailed, Options, say, tell
from bridge.cli.running import NotRunning, ask_running

WAIT_S = 600.0  # for large chats
CONFIRMED = "erase"  # what is typed


def erase(options: Options) -> int:
    """Show it, ask, erase it. Raises `CommandFailed`."""
    if bool(options.person) == bool(options.chat):
        raise CommandFailed("give --person or --chat, as telegram:42")
    asked = {"person": options.person, "chat": options.chat, "actor": actor()}
    found = _carry_out(options, {**asked, "really": False})
    if not found:
        say(f"nothing is stored of {options.person or options.chat}")
        return FINE
    for line in found:
        say(line)
    if not options.yes and not _confirmed():
        raise CommandFailed("nothing was erased")
    for line in _carry_out(options, {**asked, "really": True}):
        say(line)
    return FINE


def _confirmed() -> bool:
    tell("this goes for good, and what is used stays as sums without a name, with ids for two days")
    for question in ("type erase to erase it: ", "really? type erase once more: "):
        sys.stderr.write(question)
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() != CONFIRMED:
            return False
    return True


def _carry_out(options: Options, arguments: dict[str, Any]) -> list[str]:
    from bridge.chats.erase_verb import ERASE

    try:
        result = ask_running(options.data, ERASE, wait_s=WAIT_S, **arguments)
    except NotRunning:
        result = _here(options, arguments)
    return [str(line) for line in result["lines"]]


def _here(options: Options, arguments: dict[str, Any]) -> Any:
    """Holding the data folder, so that no process begins meanwhile."""
    from bridge.control import ControlRefused
    from bridge.operation.data_folder import DATABASE, FolderRefused, held
    from memory.errors import StoreError

    path = options.data / DATABASE
    if not path.is_file():
        raise CommandFailed(f"{path} is not there: which --data does the bot run on?")
    try:
        with held(options.data):
            return asyncio.run(_alone(options, arguments))
    except (FolderRefused, StoreError, ControlRefused) as failure:
        raise CommandFailed(str(failure)) from None


async def _alone(options: Options, arguments: dict[str, Any]) -> Any:
    from bridge.chats.erase_verb import EraseVerb
    from bridge.chats.erasing import Eraser, alone, shared_scope
    from bridge.configuration.storing import storing
    from bridge.operation.data_folder import DATABASE
    from memory.chats.reach import Chats
    from memory.database import Database
    from memory.markdown.folders import MEMORY, ChatFolders
    from memory.removal.person_traces import PersonTraces

    told = storing(options.load_config())
    database = await Database.open_beside(options.data / DATABASE, to_write=True)
    try:
        chats = Chats(database)
        await chats.load()
        traces = PersonTraces(database, options.data / MEMORY, shared_scope)
        eraser = Eraser(traces, chats, ChatFolders(options.data), alone)
        return await EraseVerb(eraser, told)(arguments)
    finally:
        await database.close()
