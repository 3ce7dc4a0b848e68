"""What a session that has nothing to do costs: `python -m bench.sessions SESSIONS`.

As many turns as there will be sessions are made in 50 chats first, so that all that comes with turns
is there. Then each of `SESSIONS` new chats asks once, and all work ends. What the process has more by
then, it keeps for sessions that it only knows: memory, tasks, open files, and objects that still name
one of the new chats.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from bench.processes import MB
from bench.turns import FastBridge, fast_bridge
from bridge.limits.files import path_of

_AT_A_TIME = 20
_OLD_CHATS = 50
_MARK = "chat-nobody-else-names-"
# A cache with a bound of its own (`bridge.limits.files`); its memory is in `mb`.
_BOUNDED = frozenset({"PolicyPlace"})


async def idle_sessions(sessions: int, data: Path) -> dict[str, Any]:
    """`mb` (units of 1024² bytes), `tasks`, `files`: what there is more than before; `kept`: for each
    kind of object how many still name a chat."""
    async with fast_bridge(data) as fast:
        await _ask_each(fast, [str(number % _OLD_CHATS) for number in range(sessions)])
        await fast.settled(sessions)
        before = _used()
        await _ask_each(fast, [f"{_MARK}{number}" for number in range(sessions)])
        await fast.settled(2 * sessions)
        after = _used()
        more = {name: after[name] - before[name] for name in before}
        return {**more, "kept": Counter(_holders(_MARK))}


async def _ask_each(fast: FastBridge, chats: list[str]) -> None:
    """One question for each entry. Neighbours are different chats, so none waits for itself."""
    waiting = iter(chats)

    async def one_after_the_other() -> None:
        for chat in waiting:
            await fast.ask(chat, 1)

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_A_TIME):
            group.create_task(one_after_the_other())


def _used() -> dict[str, float]:
    gc.collect()
    process = psutil.Process()
    return {
        "mb": process.memory_info().rss / MB,
        "tasks": len(asyncio.all_tasks()),
        "files": process.num_fds(),
    }


def _holders(mark: str) -> Iterator[str]:
    """The type of every object that refers to a string with `mark` in it, but for those in caches
    that have a bound."""
    path_of.cache_clear()
    gc.collect()
    for holder in gc.get_objects():
        name = type(holder).__qualname__
        if name not in _BOUNDED and any(mark in t and t != mark for t in _strings(holder)):
            yield name


def _strings(holder: Any) -> Iterator[str]:
    """Those that it refers to, by itself or by tuples, which the collector does not list."""
    for one in gc.get_referents(holder):
        if type(one) is str:
            yield one
        elif type(one) is tuple and not gc.is_tracked(one):
            yield from _strings(one)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(idle_sessions(int(sys.argv[1]), Path(folder)))
    print(json.dumps(found), flush=True)
