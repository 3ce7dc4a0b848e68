"""`python -m tests.crash [--kills 500]`: rounds of kills, each on fresh servers and data.

The seed is printed; the environment's `SEED` repeats one. `ROUND` runs that round alone.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.crash.nursery import Nursery
from tests.crash.plan import OUTAGE_S, POINTS, STOP_POINTS, lives
from tests.crash.round import Round

IN_A_ROUND = 25
LARGE = 10  # each of so many rounds has 100 chats
OUTAGES = 5  # each of so many has long outages


async def main(kills: int, seed: str) -> int:
    """The exit code."""
    print(f"SEED={seed}", flush=True)
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # connections that were cut
    points = [*POINTS, *STOP_POINTS]
    random.Random(seed).shuffle(points)
    deaths: Counter[str] = Counter()
    counted: Counter[str] = Counter()
    only = os.environ.get("ROUND")
    wrong = 0
    async with Nursery() as nursery:
        for number in range(kills // IN_A_ROUND):
            if only is not None and number != int(only):
                continue
            large, outages = number % LARGE == LARGE - 1, number % OUTAGES == 1
            named = [_point(points, number * IN_A_ROUND + i) for i in range(IN_A_ROUND)]
            folder = Path(tempfile.mkdtemp(prefix="galata-crash-"))
            began = time.monotonic()
            pace_s = 0.03 if large else 0.1 if outages else 0.3
            drawn = lives(f"{seed}:{number}", named, pace_s=pace_s, outages=outages)
            made = Round(
                nursery,
                folder,
                private=49 if large else 3 if outages else 6,
                outage_s=OUTAGE_S if outages else None,
            )
            found = await made.run(drawn)
            deaths += found.deaths
            counted += found.findings.counted
            print(
                f"round {number}: {found.deaths.total()} kills, {found.asked} questions,"
                f" {time.monotonic() - began:.0f} s",
                flush=True,
            )
            if found.findings.wrong:
                print(f"SEED={seed} ROUND={number}, last at {found.last}, {folder}")
                print(found.findings.told(), flush=True)
                wrong += 1
    print(f"{deaths.total()} kills, {wrong} rounds with findings")
    for name, count in [*deaths.most_common(), *counted.most_common()]:
        print(f"{count:6} {name}")
    missed = [point for point in points if not deaths[point]]
    print(f"never killed at: {', '.join(missed) or 'none of them'}")
    return int(wrong > 0)


def _point(points: Sequence[str], number: int) -> str | None:
    """The points in their order; every fourth death comes at an instant."""
    return None if number % 4 == 3 else points[(number - number // 4) % len(points)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    options = parser.parse_args()
    sys.exit(asyncio.run(main(options.kills, os.environ.get("SEED") or secrets.token_hex(4))))
