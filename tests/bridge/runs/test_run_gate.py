"""What the installation may spend is looked at before each step, once for the first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path
from unittest.mock import Mock

import pytest

from agent.errors import LimitReached
from bridge.limits.gate import MonthlyGate, Spending
from bridge.runs.run_gate import FRESH_S, AtBegin, RunGate
from memory.database import Database
from memory.usage import UsageStore


def gate_of(installation: MonthlyGate, spending: Sequence[Spending], age_s: float) -> RunGate:
    began = AtBegin(spending, asyncio.get_running_loop().time() - age_s)
    return RunGate(Mock(), installation, began, Mock(), Mock(), str, 1, "scope")


async def test_the_first_step_goes_by_what_was_read_when_the_run_began(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "galata.db")
    try:
        full = MonthlyGate(UsageStore(database), limit_usd=0, zone=UTC)
        found = await full.spending()
        await gate_of(full, [], 0).check(1)
        for gate, step in (
            (gate_of(full, found, 0), 1),
            (gate_of(full, [], 0), 2),
            (gate_of(full, [], FRESH_S + 1), 1),  # it waited, or summed up its context
        ):
            with pytest.raises(LimitReached) as caught:
                await gate.check(step)
            assert caught.value.limit == "month_none"
    finally:
        await database.close()
