"""The measures, each by its own processes. Goals are those that Galata has set itself."""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bench.limits import limits
from bench.machine import Machine
from bench.processes import Child
from bench.recall import nights
from bench.report import Measure, Measures, percentile
from bench.search import search

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
    files: int = 10_000  # days in memory that are searched, and chats with limits of their own
    burst: int = 3000
    stored: int = 50_000  # turns, of two messages each
    sessions: int = 1000
    known: int = 10_000  # sessions


SMALLEST = Size(1, 0.5, 0.2, 10, 8, 4, 400, 100, 1, 0.2, 2, 2, 20, 100, 100, 10, 50)


class Bench:
    """Measures on one set of servers; `folder` takes configurations and data."""

    def __init__(self, servers: Child, folder: Path, size: Size) -> None:
        self.servers = servers
        self._folder = folder
        self.size = size
        self.facts = servers.told()
        self._numbers = 0
        for kind in KINDS:
            config = json.dumps(self.facts["configs"][kind])
            self.config(kind).write_text(config, encoding="utf-8")

    def start(self) -> Measures:
        """Until "ready", and memory then, with Telegram and Slack on."""
        ready, rss = [], []
        for _ in range(self.size.starts):
            with self.cli("anthropic") as bot:
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
            with self.cli(kind) as bot:
                bot.wait_ready()
                found[f"rss_{kind}_mb"] = Measure(self.steady_rss(bot), "MB", 135)
                bot.terminate()
        return found

    def latency(self) -> Measures:
        """What the bot adds to a message on its way in and on its way out, many chats talking.

        With `load_others_cpu` above a tenth of a core, or much `load_waited_for_core`, the latencies
        are the machine's (see `bench.machine`); `load_servers_late_p99_ms` is what the servers may
        have added to both (see `bench.load`). `load_gc_longest_ms`: the longest pause of the bot for
        its garbage.
        """
        size = self.size
        with self.bot("anthropic") as bot, Child("bench.idle") as idle:
            bot.wait_ready()
            self.steady_rss(bot)
            before = bot.ask()["cpu_s"]
            machine = Machine(bot, self.servers, idle)
            found = self.servers.ask(
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
            "load_servers_late_p99_ms": Measure(percentile(found["late"], 99), "ms"),
            **disturbed,
        }

    def turns(self) -> Measures:
        """Turns a second of the bridge alone."""
        with Child("bench.turns", [str(self.size.turns), str(self.size.turn_chats)]) as child:
            return {"turns_per_s": Measure(child.told()["per_second"], "turns/s")}

    def streaming(self) -> Measures:
        """CPU of a long streamed answer in Telegram beyond the SDK's own on the same stream.

        `…_linear` is the cost of the whole answer over twice that of its half: 1 is linear.
        """
        found: Measures = {}
        for kind in KINDS:
            with self.bot(kind) as bot, Child("bench.sdk_alone") as sdk:
                bot.wait_ready()
                self.steady_rss(bot)
                self._cost(bot, 100, 20)
                chars, chunks = self.size.chars, self.size.chunks
                alone = self._alone(sdk, kind, chars, chunks)
                whole = self._cost(bot, chars, chunks)
                beyond = whole - alone
                half = self._cost(bot, chars // 2, chunks // 2)
            found[f"stream_{kind}_sdk_s"] = Measure(alone, "CPU s")
            found[f"stream_{kind}_beyond_s"] = Measure(beyond, "CPU s", 0.3)
            found[f"stream_{kind}_linear"] = Measure(whole / (2 * half), "ratio", 1.25)
        return found

    def search(self) -> Measures:
        """Indexing the day files of one chat, and searching in them (see `bench.search`)."""
        return search(self.size.files)

    def limits(self) -> Measures:
        """What limits cost, beside as many chats' files (see `bench.limits`)."""
        return limits(self.size.files)

    def memory_nights(self) -> Measures:
        """The nights of many chats (see `bench.recall`)."""
        return nights(self.size.sessions)

    def cancel(self) -> Measures:
        """From /cancel to "Stopped." in the chat, when the provider has fallen silent in the middle
        of a stream and when a tool hangs (see `bench.cancel`)."""
        found: Measures = {}
        with self.bot("anthropic") as bot:
            bot.wait_ready()
            self.steady_rss(bot)
            for where in ("stream", "tool"):
                times = self.servers.ask(
                    60 + self.size.stops,
                    do="stops",
                    where=where,
                    count=self.size.stops,
                    at_a_time=self.size.hanging,
                    seed=1,
                )["latencies"]
                found[f"cancel_{where}_p50_ms"] = Measure(percentile(times, 50), "ms")
                found[f"cancel_{where}_p99_ms"] = Measure(percentile(times, 99), "ms", 100)
        return found

    def _cost(self, bot: Child, chars: int, chunks: int) -> float:
        """The least CPU seconds of a question in a chat of its own."""
        spent = []
        for _ in range(self.size.repeats):
            chat, self._numbers = self._numbers, self._numbers + 1
            before = float(bot.ask()["cpu_s"])
            self.servers.ask(120, do="question", chars=chars, chunks=chunks, chat=chat)
            time.sleep(0.3)  # what comes after the last message: storing, closing
            spent.append(float(bot.ask()["cpu_s"]) - before)
        return min(spent)

    def _alone(self, sdk: Child, kind: str, chars: int, chunks: int) -> float:
        asked = {"kind": kind, **self.facts["llms"][kind], "chars": chars, "chunks": chunks}
        return min(float(sdk.ask(**asked)["cpu_s"]) for _ in range(self.size.repeats))

    def steady_rss(self, bot: Child) -> float:
        """Memory once it has stopped growing."""
        last, since = bot.rss_mb, time.monotonic()
        while time.monotonic() - since < self.size.steady_s:
            time.sleep(0.1)
            if abs(bot.rss_mb - last) > 0.5:
                last, since = bot.rss_mb, time.monotonic()
        return last

    def cli(self, kind: str, data: Path | None = None) -> Child:
        """The bot as everybody starts it, on new data or on these."""
        folder = data or self.data()
        if find_spec("bridge.__main__") is None:
            return self.bot(kind, folder)
        return Child("bridge", ["run", "--config", str(self.config(kind)), "--data", str(folder)])

    def bot(self, kind: str, data: Path | None = None) -> Child:
        """The bot that tells what it uses."""
        return Child("bench.bot", [str(self.config(kind)), str(data or self.data())])

    def data(self) -> Path:
        """A data folder that is not there yet."""
        self._numbers += 1
        return self._folder / f"data{self._numbers}"

    def config(self, kind: str) -> Path:
        """The configuration with this kind of provider."""
        return self._folder / f"{kind}.yaml"
