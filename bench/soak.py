"""A long run of the bot as everybody starts it, under mixed load with faults: `make soak MINUTES=30`.

Prints a line a minute: the medians of what the process used in it. The end is a table; the exit code is
1 when memory, tasks or open files have grown (`bench.growth`), when an answer is missing after all has
come to rest, or when the bot has not ended in order.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import secrets
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from bench.crowd import Crowd, StallingModel
from bench.growth import LEAST, Sample, growth, middle, table
from bench.processes import MB, ROOT
from tests.crash.audit import DATABASE
from tests.crash.world import World

PRIVATE = 10  # chats on each platform, beside a group
_READY_S = 60.0
_EXIT_S = 40.0
_METRIC = re.compile(r"^galata_(tasks|chats_at_work) (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Plan:
    """How long, how often, and from which seed. `period_s`: one line of the table; `settle_s`: for the
    last answers, also behind a provider's pause of a minute."""

    seconds: float
    period_s: float
    seed: str
    questions_per_s: float = 2.0
    stops_per_s: float = 0.12
    repeats_per_s: float = 0.1
    troubles_per_s: float = 0.15
    sample_s: float = 1.0
    settle_s: float = 240.0


@dataclass(frozen=True, slots=True)
class Result:
    """What came of it. `wrong`: a line for each thing that must not be."""

    samples: list[Sample]
    idle: tuple[Sample, Sample]
    wrong: list[str]
    summary: str

    def told(self) -> str:
        """The table, and what stands below it."""
        before, after = self.idle
        return "\n".join(
            [
                table(self.samples),
                "idle before and after:",
                table([before, after]).partition("\n")[2],
                self.summary,
                *(f"WRONG: {line}" for line in self.wrong),
            ]
        )


class _Bot:
    """`galata run` as a process of its own; its log goes to a file."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path, port: int) -> None:
        self._process = process
        self._log = log
        self._status = psutil.Process(process.pid)
        self._client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=10)

    @classmethod
    async def start(cls, folder: Path, world: World) -> _Bot:
        """Until it is ready. Raises `TimeoutError`."""
        port = _free_port()
        config, log = folder / "config.json", folder / "bot.log"
        config.write_text(json.dumps({**world.config(), "health": {"port": port}}))
        with log.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bridge", "run"),
                *("--config", str(config), "--data", str(folder / "data")),
                cwd=ROOT,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        bot = cls(process, log, port)
        async with asyncio.timeout(_READY_S):
            while not await bot.metrics():  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.1)
        return bot

    async def metrics(self) -> dict[str, float]:
        """The tasks and the chats at work; nothing while it does not answer."""
        try:
            text = (await self._client.get("/metrics")).text
        except httpx.HTTPError:
            return {}
        return {name: float(value) for name, value in _METRIC.findall(text)}

    async def sample(self, began: float, crowd: Crowd) -> Sample | None:
        """The process now; None while it does not answer."""
        metrics = await self.metrics()
        if not metrics or self._process.returncode is not None:
            return None
        rss_mb, files = self._status.memory_info().rss / MB, self._status.num_fds()
        at_s = time.monotonic() - began
        return Sample(at_s, crowd.asked, crowd.answered, rss_mb, metrics["tasks"], files)

    async def end(self) -> int:
        """Stop it in order; its exit code."""
        await self._client.aclose()
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_EXIT_S):
                return await self._process.wait()
        except TimeoutError:
            self._process.kill()
            return await self._process.wait()

    def count(self, what: str) -> int:
        """How often that stands in its log."""
        return self._log.read_text("utf-8", "replace").count(what)


async def soak(plan: Plan, folder: Path, tell: Callable[[str], None]) -> Result:
    """All of it; `tell` gets a line for each period."""
    chance = random.Random(plan.seed)
    world = World(PRIVATE, folder / "data" / DATABASE)
    world.model = StallingModel(chance)
    world.llm.default = world.model.answer
    await world.start()
    try:
        bot = await _Bot.start(folder, world)
        try:
            result = await _watched(plan, bot, Crowd(world, chance), folder, tell)
        finally:
            code = await bot.end()
    finally:
        await world.stop()
    if code:
        result.wrong.append(f"the bot ended with {code}: {folder / 'bot.log'}")
    return result


async def _watched(
    plan: Plan, bot: _Bot, crowd: Crowd, folder: Path, tell: Callable[[str], None]
) -> Result:
    began = time.monotonic()
    before = await _idle(bot, crowd, began)
    samples: list[Sample] = []
    people = asyncio.create_task(_live(plan, crowd))
    for _ in range(round(plan.seconds / plan.period_s)):
        samples.append(await _period(plan, bot, crowd, began))
        tell(table(samples[-1:]).partition("\n")[2])
        if people.done():
            break
    people.cancel()
    with suppress(asyncio.CancelledError):
        await people  # raises what has ended it before its time
    waited_s = await _settled(plan, bot, crowd, folder / "data")
    after = await _idle(bot, crowd, began)
    wrong = [f"no answer to {one.text} in {one.place.name}" for one in crowd.waiting]
    wrong += growth(samples)
    summary = (
        f"{crowd.asked} asked, {crowd.answered} answered, {crowd.stopped} stopped, {crowd.uncertain}"
        f" uncertain; at rest after {waited_s:.0f} s; in the log {bot.count('Traceback')} tracebacks,"
        f" {bot.count(' ERROR ')} errors; SEED={plan.seed}"
    )
    return Result(samples, (before, after), wrong, summary)


async def _live(plan: Plan, crowd: Crowd) -> None:
    """Everything that people and platforms do, until cancelled."""
    chance = random.Random(f"{plan.seed} times")

    async def often(per_second: float, act: Callable[[], Awaitable[None] | None]) -> None:
        while True:
            await asyncio.sleep(chance.expovariate(per_second))
            done = act()
            if done is not None:
                await done

    async with asyncio.TaskGroup() as group:
        for per_second, act in (
            (plan.questions_per_s, crowd.ask),
            (plan.stops_per_s, crowd.stop),
            (plan.repeats_per_s, crowd.again),
            (plan.troubles_per_s, crowd.trouble),
        ):
            group.create_task(often(per_second, act))


async def _period(plan: Plan, bot: _Bot, crowd: Crowd, began: float) -> Sample:
    """One line of the table. Raises `AssertionError` when the bot has not answered at all."""
    end = time.monotonic() + plan.period_s
    found: list[Sample] = []
    while time.monotonic() < end:
        await asyncio.sleep(plan.sample_s)
        sample = await bot.sample(began, crowd)
        found += [] if sample is None else [sample]
    crowd.look()
    crowd.forget()
    if not found:
        raise AssertionError("the bot does not answer on its port")
    return middle(found)


async def _settled(plan: Plan, bot: _Bot, crowd: Crowd, data: Path) -> float:
    """Wait until every question is answered and nothing is at work; seconds."""
    began = time.monotonic()
    while time.monotonic() - began < plan.settle_s:
        crowd.look()
        crowd.excuse(data)
        if not crowd.waiting and (await bot.metrics()).get("chats_at_work") == 0:
            break
        await asyncio.sleep(0.5)
    return time.monotonic() - began


async def _idle(bot: _Bot, crowd: Crowd, began: float) -> Sample:
    found = [await bot.sample(began, crowd) for _ in range(3)]
    return middle([sample for sample in found if sample is not None])


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", default=None)
    options = parser.parse_args()
    seconds = 60 * options.minutes
    period_s = min(60.0, seconds / (2 * LEAST))
    plan = Plan(seconds, period_s, options.seed or secrets.token_hex(4))
    folder = Path(tempfile.mkdtemp(prefix="galata-soak-"))
    print(f"SEED={plan.seed}, {folder}\n{table([])}", flush=True)
    result = asyncio.run(soak(plan, folder, lambda line: print(line, flush=True)))
    print(result.told())
    return 1 if result.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
