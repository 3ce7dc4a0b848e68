"""Corrections of the token estimate outlive a restart."""

from __future__ import annotations

from pathlib import Path

from agent.estimate import Correction
from memory.costs.token_ratios import TokenRatios
from memory.database import Database


async def test_the_newest_correction_of_each_model_outlives_a_restart(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "galata.db")
    ratios = TokenRatios(database)
    assert await ratios.load() == {}
    await ratios.keep("a/one", Correction(1.25, 3))
    await ratios.keep("b/two", Correction(0.9, 1))
    await ratios.keep("a/one", Correction(1.3, 4))
    await database.close()
    database = await Database.open(tmp_path / "galata.db")
    kept = await TokenRatios(database).load()
    await database.close()
    assert kept == {"a/one": Correction(1.3, 4), "b/two": Correction(0.9, 1)}
