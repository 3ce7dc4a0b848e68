"""What platforms and providers do to a bot, beside its deaths."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress

from memory.database import BUSY_TIMEOUT_MS
from tests.crash.points import FULL
from tests.crash.world import World
from tests.servers.llm import HttpReply

AWAY_S = 0.3


async def make_trouble(world: World, choice: int) -> None:
    """One of them; a request that may not be sent again is only cut after it has been carried out. A
    server that is away does not go away once more."""
    trouble = TROUBLES[choice % len(TROUBLES)]
    if trouble in world.under_way:
        return
    world.under_way.add(trouble)
    try:
        await trouble(world, choice // len(TROUBLES))
    finally:
        world.under_way.discard(trouble)


async def _flood(world: World, choice: int) -> None:
    chats = list(world.telegram.chats.values())
    world.telegram.flood(chats[choice % len(chats)], retry_after=1, count=2)


async def _telegram_fails(world: World, choice: int) -> None:
    for method, acted in (("editMessageText", False), ("sendMessage", True)):
        world.telegram.fail_next(method, status=502, html=bool(choice % 2), acted=acted)


async def _telegram_cuts(world: World, choice: int) -> None:
    for method, acted in (("editMessageText", bool(choice % 2)), ("sendMessage", True)):
        world.telegram.fail_next(method, drop=choice % 3 == 0, reset=choice % 3 != 0, acted=acted)


async def _telegram_poll_ends(world: World, choice: int) -> None:
    if choice % 2:
        world.telegram.end_poll()
    else:
        world.telegram.end_poll(502, "Bad Gateway")


async def _telegram_goes(world: World, choice: int) -> None:
    await world.telegram.stop()
    await asyncio.sleep(AWAY_S)
    await world.telegram.start()


async def _slack_limits(world: World, choice: int) -> None:
    world.slack.rate_limit(("chat.postMessage", "chat.update")[choice % 2], 1, count=2)


async def _slack_fails(world: World, choice: int) -> None:
    world.slack.fail_next("chat.update", html=True, status=503)
    world.slack.fail_next("chat.postMessage", html=True, status=503, acted=True)


async def _slack_cuts(world: World, choice: int) -> None:
    world.slack.fail_next("chat.update", drop=True, acted=bool(choice % 2))
    world.slack.fail_next("chat.postMessage", drop=True, acted=True)


async def _socket_ends(world: World, choice: int) -> None:
    if choice % 2:
        world.slack.socket.cut()
    else:
        world.slack.socket.disconnect()


async def _slack_goes(world: World, choice: int) -> None:
    port = int(world.slack.origin.rpartition(":")[2])
    await world.slack.stop()
    await asyncio.sleep(AWAY_S)
    await world.slack.start(port)


async def _model_fails(world: World, choice: int) -> None:
    status = (500, 529, 429, 503)[choice % 4]
    world.model.trouble.append(HttpReply(status, {"type": "error"}))


async def _model_cuts(world: World, choice: int) -> None:
    world.model.trouble.append("reset" if choice % 2 else "cut")


async def _model_goes(world: World, choice: int) -> None:
    port = world.llm.port
    talking = world.model.under_way()
    await world.llm.aclose()
    world.model.cut_off |= talking & world.model.under_way()  # what was not said to its end by then
    await asyncio.sleep(AWAY_S)
    await world.llm.start(port)


async def _store_is_held(world: World, choice: int) -> None:
    """Another program has the database, sometimes for longer than a write waits for it."""
    if not world.database.exists():
        return
    held_s = (0.2, BUSY_TIMEOUT_MS / 1000 + 0.2)[choice % 2]
    with (
        closing(sqlite3.connect(world.database, isolation_level=None, timeout=0.2)) as other,
        suppress(sqlite3.OperationalError),  # the bot has it at this moment
    ):
        other.execute("BEGIN IMMEDIATE")
        await asyncio.sleep(held_s)
        other.execute("ROLLBACK")


async def _disk_is_full(world: World, choice: int) -> None:
    """Nothing that is new fits into the database for a while (in the bot of `tests.crash.bot`)."""
    if not world.database.exists():
        return
    full = world.database.parent / FULL
    full.touch()
    try:
        await asyncio.sleep((0.3, 2.0)[choice % 2])
    finally:
        full.unlink()


TROUBLES: tuple[Callable[[World, int], Awaitable[None]], ...] = (
    _flood,
    _telegram_fails,
    _telegram_cuts,
    _telegram_poll_ends,
    _telegram_goes,
    _slack_limits,
    _slack_fails,
    _slack_cuts,
    _socket_ends,
    _slack_goes,
    _model_fails,
    _model_cuts,
    _model_goes,
    _store_is_held,
    _disk_is_full,
)
