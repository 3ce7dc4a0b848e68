"""`/healthz`, `/readyz` and `/metrics` on a port of 127.0.0.1, for programs that watch the bot."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

from bridge.operation.metrics import metrics_text
from bridge.operation.status import LiveStatus
from bridge.operation.watch import ChannelWatch
from memory.errors import StoreError

log = logging.getLogger(__name__)

_HOST = "127.0.0.1"
_CLOSE_S = 1.0
_STORE_S = 3.0  # for the database to answer whether it can be written


class HealthServer:
    """`stored()` returns when the database could be written; `damaged()`: whether its file was found
    to be damaged; `month_cost()` is this month's cost in
    micro-dollars."""

    def __init__(
        self,
        watch: ChannelWatch,
        status: LiveStatus,
        stored: Callable[[], Awaitable[None]],
        damaged: Callable[[], bool],
        month_cost: Callable[[], Awaitable[int]],
        data: Path,
    ) -> None:
        self._watch = watch
        self._status = status
        self._stored = stored
        self._damaged = damaged
        self._month_cost = month_cost
        self._data = data

    async def run(self, port: int) -> None:
        """Serve until cancelled. A port that cannot be had is logged, and the bot runs without."""
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._metrics)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_CLOSE_S)
        await runner.setup()
        try:
            await web.TCPSite(runner, _HOST, port).start()
        except OSError as error:
            log.error("health.port: %d: %s", port, error.strerror or type(error).__name__)
        else:
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    async def _healthz(self, _: web.Request) -> web.Response:
        """Whether each channel receives, and the database is whole as far as is known."""
        return _answer(self._faults())

    async def _readyz(self, _: web.Request) -> web.Response:
        """Whether a message that came now would be stored and answered."""
        faults = self._faults()
        try:
            async with asyncio.timeout(_STORE_S):
                await self._stored()
        except StoreError as error:
            faults.append(f"database: {error}")
        except TimeoutError:
            faults.append("database: it does not answer")
        return _answer(faults)

    async def _metrics(self, _: web.Request) -> web.Response:
        try:
            status, cost = await self._status.get(), await self._month_cost()
        except StoreError as error:
            return web.Response(status=503, text=f"database: {error}\n")
        tasks = len(asyncio.all_tasks())
        text = await asyncio.to_thread(metrics_text, status, cost, tasks, self._data)
        return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4"})

    def _faults(self) -> list[str]:
        faults = [
            f"{state.name}: {state.reason}" for state in self._watch.look() if not state.receiving
        ]
        return [*faults, "database: it is damaged"] if self._damaged() else faults


def _answer(faults: list[str]) -> web.Response:
    """200 and `ok`, or 503 with a line for each fault."""
    text = "\n".join(faults) or "ok"
    return web.Response(status=503 if faults else 200, text=f"{text}\n")
