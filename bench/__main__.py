"""Run every measure, print a table and write `bench/results/latest.json`: `make bench`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from bench.durable import Durable
from bench.estimate import estimate
from bench.measures import SMALLEST, Bench, Size
from bench.processes import Child
from bench.recall import memory_recall
from bench.repair import repair
from bench.report import LATEST, Measures, table, write
from bench.trim import trim


def run(size: Size, only: frozenset[str] = frozenset()) -> Measures:
    """Every measure, or those of the named groups: start, memory, latency, turns, streaming,
    cancel, durable, search, limits, memory_recall,
    memory_nights, repair, trim, estimate."""
    measures: Measures = {}
    with tempfile.TemporaryDirectory() as folder, Child("bench.servers") as servers:
        bench = Bench(servers, Path(folder), size)
        groups = [bench.start, bench.memory, bench.latency, bench.turns, bench.streaming]
        groups += [
            bench.cancel,
            Durable(bench).durable,
            bench.search,
            bench.limits,
            memory_recall,
            bench.memory_nights,
            repair,
            trim,
            estimate,
        ]
        for group in groups:
            if not only or group.__name__ in only:
                print(f"measuring: {group.__name__}", file=sys.stderr, flush=True)
                measures |= group()
        refused = servers.ask(do="refusals")["refusals"]
    if refused:
        raise SystemExit(f"a request was refused for its form: {refused[0]}")
    return measures


if __name__ == "__main__":
    names = frozenset(sys.argv[1:])
    found = run(SMALLEST if "smallest" in names else Size(), names - {"smallest"})
    print(table(found))
    if not names:  # a part is no result
        write(found, LATEST)
        print(f"written to {LATEST}")
