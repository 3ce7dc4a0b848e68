"""The named points at which the bot kills itself, and how they get into it.

A point is before, in or after: each kind of write (`in`: carried out, not committed), each kind of
request to a platform (`after`: answered, and nothing made of the answer yet), an acknowledgement to
Slack, a model call, the tool, and the steps of a start, of a settlement and of a graceful stop.
"""

from __future__ import annotations

import functools
import os
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.web.async_client import AsyncWebClient
from telegram.request import BaseRequest, HTTPXRequest

from agent.calls import ModelCalls
from bridge.agent_bridge import AgentBridge
from bridge.runs.delivery import Deliveries
from bridge.runs.turn import Turn
from channels.telegram.request import AiohttpRequest
from memory import database

Operation = Callable[[sqlite3.Connection], Any]
TRANSACTION = "_transaction"  # of the module `memory.database`: all that is written goes through it
KILLED = "killed at the point "
FULL = "disk-is-full"
"""While a file of this name lies in the data folder, the database cannot grow."""
_UNLIMITED = 1_073_741_823  # pages: SQLite's own most


class Points:
    """Kills the process when `point` is reached the `nth` time after `arm_s` seconds; None: never."""

    def __init__(self, point: str | None, nth: int, arm_s: float) -> None:
        self._point = point
        self._left = nth
        self._armed_at = time.monotonic() + arm_s
        self._reached: Counter[str] = Counter()

    def reach(self, name: str) -> None:
        """The process is at this point; it may be its last."""
        self._reached[name] += 1
        if name != self._point or time.monotonic() < self._armed_at:
            return
        self._left -= 1
        if self._left <= 0:
            os.write(2, f"{KILLED}{name}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)

    def tell(self) -> None:
        """On standard error: which points were reached, and how often."""
        for name, count in sorted(self._reached.items()):
            sys.stderr.write(f"reached {count} times: {name}\n")


def install(points: Points) -> None:
    """Put the points into the app's classes. For a process of its own."""
    _around_writes(points)
    _around_requests(points)
    steps = (
        (AgentBridge, "resume", "the start"),
        (AgentBridge, "close", "the stop"),
        (database.Database, "close", "closing"),
        (Turn, "settle", "settling"),
        (Deliveries, "deliver", "delivering"),
        (ModelCalls, "ask", "a model call"),
        (AsyncBaseSocketModeClient, "send_socket_mode_response", "acknowledging to Slack"),
    )
    for owner, name, what in steps:
        _wrap(points, owner, name, functools.partial(_always, what))


def fill_disk(data: Path) -> None:
    """SQLite's own SQLITE_FULL for what does not fit into its pages, while `FULL` is there. For a
    process of its own."""
    transaction: Callable[..., list[Any]] = getattr(database, TRANSACTION)

    def on_this_disk(connection: sqlite3.Connection, operations: Sequence[Operation]) -> list[Any]:
        most = 1 if (data / FULL).exists() else _UNLIMITED  # 1: as many as there are
        connection.execute(f"PRAGMA max_page_count = {most}").fetchall()
        return transaction(connection, operations)

    patch.object(database, TRANSACTION, on_this_disk).start()


def _around_writes(points: Points) -> None:
    transaction: Callable[..., list[Any]] = getattr(database, TRANSACTION)

    def carried_out(connection: sqlite3.Connection, operations: Sequence[Operation]) -> list[Any]:
        names = list(map(_name_of, operations))
        for name in names:
            points.reach(f"before {name}")
        inside = [
            functools.partial(_carry_out, points, name, op)
            for name, op in zip(names, operations, strict=True)
        ]
        results = transaction(connection, inside)
        for name in names:
            points.reach(f"after {name}")
        return results

    patch.object(database, TRANSACTION, carried_out).start()


def _carry_out(
    points: Points, name: str, operation: Operation, connection: sqlite3.Connection
) -> Any:
    result = operation(connection)
    points.reach(f"in {name}")
    return result


def _name_of(operation: Operation) -> str:
    """`Runs.settle` for what that method hands to the database."""
    return operation.__qualname__.partition(".<locals>")[0]


def _around_requests(points: Points) -> None:
    for requests in (HTTPXRequest, AiohttpRequest):
        _wrap(points, requests, "do_request", _telegram_method)
    _wrap(points, AsyncWebClient, "api_call", _slack_method)


def _telegram_method(_request: BaseRequest, url: str, *_: object, **__: object) -> str:
    return url.rpartition("/")[2].partition("?")[0]


def _slack_method(_client: AsyncWebClient, api_method: str, *_: object, **__: object) -> str:
    return api_method


def _always(name: str, *_: object, **__: object) -> str:
    return name


def _wrap(points: Points, owner: type, name: str, name_of: Callable[..., str]) -> None:
    function: Callable[..., Awaitable[Any]] = getattr(owner, name)

    @functools.wraps(function)
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        what = name_of(*args, **kwargs)
        points.reach(f"before {what}")
        result = await function(*args, **kwargs)
        points.reach(f"after {what}")
        return result

    patch.object(owner, name, wrapped).start()
