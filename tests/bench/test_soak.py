"""A soak of some seconds: that it runs, sees every answer, and stops the bot in order. Whether anything
grows cannot be seen in so short a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.growth import LEAST
from bench.soak import Plan, soak


@pytest.mark.timeout(240)
async def test_a_short_soak_misses_no_answer(tmp_path: Path) -> None:
    lines: list[str] = []
    plan = Plan(seconds=8.0, period_s=8.0 / LEAST, seed="short", sample_s=0.3, settle_s=120.0)
    result = await soak(plan, tmp_path, lines.append)
    grown = ("memory", "tasks", "open files")
    assert [line for line in result.wrong if not line.startswith(grown)] == [], result.told()
    assert len(lines) == len(result.samples) >= LEAST
    assert result.samples[-1].asked > 0
    assert result.summary in result.told()
