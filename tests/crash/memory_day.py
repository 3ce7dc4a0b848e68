"""A day of a memory in processes that die: `python -m tests.crash.memory_day [--every 1]`.

People talk, the day is noted, a night tidies, something is remembered, something is forgotten. Each
process is killed with SIGKILL at another point (before and after a write to the database, a sync or a
replacement of a file), the next one does what a start does and takes the day up again. Then nothing may
be lost, doubled or revived, and nothing of a file in the making be left.

One warm process forks all others, so that a start takes no longer than its own work. Prints how many
were killed, and what is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

from agent.messages import Message, assistant_text, user_text
from agent.provider import ModelRequest
from memory import database
from memory.markdown.facts import FactsRefused, facts
from memory.markdown.leftovers import clear_leftovers
from memory.markdown.lines import Ref
from memory.notebook import Notebook
from memory.scopes import FACTS, ChatScope
from memory.whose.authors import Member
from tests.bridge.memory_bed import ANA, SCOPE, memory_bed
from tests.bridge.memory_models import faithful, notes

SAID = ("likes green tea", "the cat is called Pablo", "plays chess on Fridays")
REMEMBERED = "prefers window seats"
FORGOTTEN = "Pablo"
KEPT = (SAID[0], SAID[2], REMEMBERED)
DAY = date(2026, 11, 30)
CHAT = ChatScope(SCOPE, ANA.channel, ANA.account, ANA.chat)
FAILED = 3  # the exit code of a process that ended by an error


def _model(request: ModelRequest) -> Message | str:
    night = "<notes>" in request.messages[-1].text
    return faithful(request) if night else notes(request)


async def _always() -> bool:
    return True


async def live(folder: Path) -> None:
    """All of the day, as far as it is not done yet."""
    clear_leftovers(folder / "memory")
    async with memory_bed(folder, _model) as it:
        session = await it.session()
        for number, text in enumerate(SAID):
            await it.say(session, user_text(text), assistant_text("fine"), run=f"r{number}")
        await it.flush(session)
        await it.night(session, DAY)
        book, ana = Notebook(it.database, it.folder), Member("7", "Ana", _always)
        with suppress(FactsRefused):  # it is known already
            await book.remember(CHAT, ana, REMEMBERED, DAY)
        for fact in facts(await book.files.load(SCOPE)):
            if FORGOTTEN in fact.text:
                await book.forgetting.forget(CHAT, ana, [Ref(FACTS, fact.number)])


def wrong(folder: Path) -> Iterator[str]:
    """What does not hold when the day is over."""
    memory = folder / "memory"
    texts = {path: path.read_text() for path in memory.rglob("*") if path.is_file()}
    for path, text in texts.items():
        if FORGOTTEN.casefold() in text.casefold():
            yield f"{path.name} holds what was forgotten"
        if path.name.endswith(".fresh"):
            yield f"{path.name} is left"
    for name, known in ((FACTS, KEPT), (f"{DAY}.md", (SAID[0], SAID[2]))):
        (text,) = (text for path, text in texts.items() if path.name == name and _top(path))
        for saying in known:
            if text.count(saying) != 1:
                yield f"{name} has {text.count(saying)} times: {saying}"
    with sqlite3.connect(folder / "galata.db") as connection:
        left = connection.execute("SELECT run_id FROM left_out").fetchall()
        open_ = connection.execute("SELECT COUNT(*) FROM memory_snapshots").fetchone()[0]
    connection.close()
    if left != [("r1",)]:
        yield f"left out of the context are {left}"
    if open_:
        yield "a prompt still holds the memory as it was"


def _top(path: Path) -> bool:
    return path.parent.parent.name == "memory"


def _fork(folder: Path, kill_at: int | None) -> int:
    """The wait status of a process that lives the day; killed when it is for the n-th time at a
    point."""
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    code = FAILED
    try:
        if kill_at is not None:
            _install(kill_at)
        asyncio.run(live(folder))
        code = 0
    except BaseException as error:  # noqa: BLE001 - the border of the process: its status tells
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def _install(kill_at: int) -> None:
    left = kill_at

    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            point()
            result = function(*args, **kwargs)
            point()
            return result

        return wrapped

    def point() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    for owner, name in ((os, "fsync"), (os, "replace"), (database, "_transaction")):
        setattr(owner, name, around(getattr(owner, name)))


def run(every: int) -> tuple[int, list[str]]:
    """How many were killed, at every so many points, and what was wrong."""
    found: list[str] = []
    killed = 0
    for number in range(1, 10_000, every):
        with tempfile.TemporaryDirectory(prefix="galata-memory-") as made:
            folder = Path(made)
            status = _fork(folder, number)
            was_killed = os.WIFSIGNALED(status)
            killed += was_killed
            again = _fork(folder, None)
            if again or not (was_killed or status == 0):
                found.append(f"point {number}: a process ended with {status}, {again}")
            else:
                found += [f"point {number}: {what}" for what in wrong(folder)]
        if not was_killed:
            break
    return killed, found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    killed, found = run(parser.parse_args(arguments).every)
    print(f"{killed} processes killed in the midst of a memory's day, {len(found)} findings")
    print("\n".join(found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
