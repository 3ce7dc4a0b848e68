"""`galata people`, `galata approve CODE`, `galata revoke ID`: handed to the process that runs; without
one they are done here, and what is to be told is told at the next start."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.cli.options import FAILED, FINE, CommandFailed, Options, say, tell
from bridge.cli.running import NotRunning, ask_running
from bridge.operation.data_folder import FolderRefused, held
from memory.errors import StoreError

if TYPE_CHECKING:
    from bridge.access.outcome import Outcome
    from bridge.access.policy import ChannelAccess
    from bridge.access.stores import AccessStores

    Rules = dict[str, ChannelAccess]
    Work = Callable[[AccessStores, Callable[[], Rules]], Awaitable[Outcome]]


def people(options: Options) -> int:
    """Who may talk, and who asks to. Raises `CommandFailed`."""
    from bridge.access.verbs import people_alone

    return _done(options, "people", lambda stores, rules: people_alone(stores, rules()))


def approve(options: Options) -> int:
    """Let in whoever has told their code. Raises `CommandFailed`."""
    from bridge.access.verbs import approve_alone

    code = options.code
    return _done(options, "approve", lambda stores, _: approve_alone(stores, code), code=code)


def revoke(options: Options) -> int:
    """Take a right back, at once. Raises `CommandFailed`."""
    from bridge.access.verbs import revoke_alone

    target = options.target
    return _done(
        options,
        "revoke",
        lambda stores, rules: revoke_alone(stores, rules(), target),
        target=target,
    )


def _done(options: Options, verb: str, alone: Work, **arguments: Any) -> int:
    try:
        answer = ask_running(options.data, verb, **arguments)
        text, done = str(answer["text"]), bool(answer["done"])
    except NotRunning:
        tell(f"no galata runs on {options.data}: this is done in what is stored there")
        outcome = _alone(options, alone)
        text, done = outcome.text, outcome.done
    say(_plain(text))
    return FINE if done else FAILED


def _alone(options: Options, work: Work) -> Outcome:
    from bridge.operation.data_folder import DATABASE
    from bridge.registry import access_rules

    path = options.data / DATABASE
    if not path.is_file():
        raise CommandFailed(f"{path} is not there: which --data does the bot run on?")

    def rules() -> Rules:
        return access_rules(options.load_config())

    try:
        with held(options.data):  # nothing may begin to run meanwhile: it would not see the change
            return asyncio.run(_on_stores(path, rules, work))
    except (StoreError, FolderRefused) as failure:
        raise CommandFailed(str(failure)) from None


async def _on_stores(path: Path, rules: Callable[[], Rules], work: Work) -> Outcome:
    from bridge.access.stores import AccessStores
    from memory.database import Database

    database = await Database.open_beside(path, to_write=True)
    try:
        return await work(AccessStores.of(database), rules)
    finally:
        await database.close()


def _plain(markdown: str) -> str:
    """Without the marks of Markdown that our texts have, and commands as they are typed here."""
    plain = markdown.replace("`", "")
    for name in ("people", "approve", "revoke"):
        plain = plain.replace(f"/{name}", f"galata {name}")
    return plain
