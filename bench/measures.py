"""The measures, each by its own processes. Goals are those that Galata has set itself."""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bench.machine import Machine
from bench.processes import Child
from bench.report import Measure, Measures, percentile

KINDS = ("anthropic", "openai")


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured."""

    starts: int = 5
    load_s: float = 30
    warm_s: float = 6
    per_second: float = 20
    turns: int = 2000
    turn_chats: int = 20
    chars: int = 32_000
    chunks: int = 8_000
    repeats: int = 3
    steady_s: float = 1.5  # memory unchanged for so long: all that is loaded behind is loaded
    stops: int = 300
    hanging: int = 15  # answers that hang at a time


SMALLEST = Size(1, 0.5, 0.2, 10, 8, 4, 400, 100, 1, 0.2, 2, 2)


class Bench:
    """Measures on one set of servers; `folder` takes configurations and data."""

    def __init__(self, servers: Child, folder: Path, size: Size) -> None:
        self._servers = servers
        self._folder = folder
        self._size = size
        self._facts = servers.told()
        self._numbers = 0
        for kind in KINDS:
            config = json.dumps(self._facts["configs"][kind])
            self._config(kind).write_text(config, encoding="utf-8")

    def start(self) -> Measures:
        """Until "ready", and memory then, with Telegram and Slack on."""
        ready, rss = [], []
        for _ in range(self._size.starts):
            with self._cli("anthropic") as bot:
                ready.append(bot.wait_ready())
                rss.append(bot.rss_at_ready_mb)
                bot.terminate()
        return {
            "ready_s": Measure(statistics.median(ready), "s", 1.2),
            "rss_ready_mb": Measure(statistics.median(rss), "MB", 90),
        }

    def memory(self) -> Measures:
        """With each provider's SDK loaded and nothing asked yet."""
        found: Measures = {}
        for kind in KINDS:
            with self._cli(kind) as bot:
                bot.wait_ready()
                found[f"rss_{kind}_mb"] = Measure(self._steady_rss(bot), "MB", 135)
                bot.terminate()
        return found

    def latency(self) -> Measures:
        """What the bot adds to a message on its way in and on its way out, many chats talking.

        With `load_others_cpu` above a tenth of a core, or much `load_waited_for_core`, the latencies
        are the machine's (see `bench.machine`). `load_gc_longest_ms`: the longest pause of the bot
        for its garbage.
        """
        size = self._size
        with self._bot("anthropic") as bot, Child("bench.idle") as idle:
            bot.wait_ready()
            self._steady_rss(bot)
            before = bot.ask()["cpu_s"]
            machine = Machine(bot, self._servers, idle)
            found = self._servers.ask(
                size.load_s + size.warm_s + 60,
                do="load",
                kind="anthropic",
                seconds=size.load_s,
                per_second=size.per_second,
                warm_s=size.warm_s,
                seed=1,
            )
            disturbed = machine.measures()
            used = bot.ask()
            rss_mb = bot.rss_mb
        return {
            "in_p50_ms": Measure(percentile(found["in"], 50), "ms", 10),
            "in_p99_ms": Measure(percentile(found["in"], 99), "ms", 30),
            "out_p50_ms": Measure(percentile(found["out"], 50), "ms", 10),
            "out_p99_ms": Measure(percentile(found["out"], 99), "ms", 30),
            "load_lost": Measure(found["lost"], "messages", 0),
            "load_cpu_per_turn_ms": Measure(1000 * (used["cpu_s"] - before) / found["asked"], "ms"),
            "load_gc_longest_ms": Measure(1000 * used["gc_longest_s"], "ms"),
            "load_rss_mb": Measure(rss_mb, "MB"),
            **disturbed,
        }

    def turns(self) -> Measures:
        """Turns a second of the bridge alone."""
        with Child("bench.turns", [str(self._size.turns), str(self._size.turn_chats)]) as child:
            return {"turns_per_s": Measure(child.told()["per_second"], "turns/s")}

    def streaming(self) -> Measures:
        """CPU of a long streamed answer in Telegram beyond the SDK's own on the same stream.

        `…_linear` is the cost of the whole answer over twice that of its half: 1 is linear.
        """
        found: Measures = {}
        for kind in KINDS:
            with self._bot(kind) as bot, Child("bench.sdk_alone") as sdk:
                bot.wait_ready()
                self._steady_rss(bot)
                self._cost(bot, 100, 20)
                chars, chunks = self._size.chars, self._size.chunks
                alone = self._alone(sdk, kind, chars, chunks)
                whole = self._cost(bot, chars, chunks)
                beyond = whole - alone
                half = self._cost(bot, chars // 2, chunks // 2)
            found[f"stream_{kind}_sdk_s"] = Measure(alone, "CPU s")
            found[f"stream_{kind}_beyond_s"] = Measure(beyond, "CPU s", 0.3)
            found[f"stream_{kind}_linear"] = Measure(whole / (2 * half), "ratio", 1.25)
        return found

    def cancel(self) -> Measures:
        """From /cancel to "Stopped." in the chat, when the provider has fallen silent in the middle
        of a stream and when a tool hangs (see `bench.cancel`)."""
        found: Measures = {}
        with self._bot("anthropic") as bot:
            bot.wait_ready()
            self._steady_rss(bot)
            for where in ("stream", "tool"):
                times = self._servers.ask(
                    60 + self._size.stops,
                    do="stops",
                    where=where,
                    count=self._size.stops,
                    at_a_time=self._size.hanging,
                    seed=1,
                )["latencies"]
                found[f"cancel_{where}_p50_ms"] = Measure(percentile(times, 50), "ms")
                found[f"cancel_{where}_p99_ms"] = Measure(percentile(times, 99), "ms", 100)
        return found

    def _cost(self, bot: Child, chars: int, chunks: int) -> float:
        """The least CPU seconds of a question in a chat of its own."""
        spent = []
        for _ in range(self._size.repeats):
            chat, self._numbers = self._numbers % 50, self._numbers + 1
            before = float(bot.ask()["cpu_s"])
            self._servers.ask(120, do="question", chars=chars, chunks=chunks, chat=chat)
            time.sleep(0.3)  # what comes after the last message: storing, closing
            spent.append(float(bot.ask()["cpu_s"]) - before)
        return min(spent)

    def _alone(self, sdk: Child, kind: str, chars: int, chunks: int) -> float:
        asked = {"kind": kind, **self._facts["llms"][kind], "chars": chars, "chunks": chunks}
        return min(float(sdk.ask(**asked)["cpu_s"]) for _ in range(self._size.repeats))

    def _steady_rss(self, bot: Child) -> float:
        """Memory once it has stopped growing."""
        last, since = bot.rss_mb, time.monotonic()
        while time.monotonic() - since < self._size.steady_s:
            time.sleep(0.1)
            if abs(bot.rss_mb - last) > 0.5:
                last, since = bot.rss_mb, time.monotonic()
        return last

    def _cli(self, kind: str) -> Child:
        """The bot as everybody starts it."""
        if find_spec("bridge.__main__") is None:
            return self._bot(kind)
        return Child("bridge", ["run", "--config", str(self._config(kind)), "--data", self._data()])

    def _bot(self, kind: str) -> Child:
        """The bot that tells what it uses."""
        return Child("bench.bot", [str(self._config(kind)), self._data()])

    def _config(self, kind: str) -> Path:
        return self._folder / f"{kind}.yaml"

    def _data(self) -> str:
        self._numbers += 1
        return str(self._folder / f"data{self._numbers}")
