"""How late the machine wakes a program that does nothing else: `python -m bench.idle`.

Each line of input is answered with the lateness in ms since the line before. What this loop is late,
any loop on the machine is: no program of ours can answer sooner.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

PERIOD_S = 0.005


async def main() -> None:
    """Answer until standard input ends."""
    late_ms: list[float] = []
    beating = asyncio.create_task(beat(late_ms))
    try:
        while await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps({"late_ms": late_ms}), flush=True)
            late_ms.clear()
    finally:
        beating.cancel()


async def beat(late_ms: list[float]) -> None:
    """Note, until cancelled, how late each wake-up of this loop is."""
    while True:
        due = time.monotonic() + PERIOD_S
        await asyncio.sleep(PERIOD_S)
        late_ms.append(1000 * (time.monotonic() - due))


if __name__ == "__main__":
    asyncio.run(main())
