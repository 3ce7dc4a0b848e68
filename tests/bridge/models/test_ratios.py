"""Token estimates learn from what providers report, per model, and remember it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from agent.calls import ModelCall
from agent.provider import Usage
from agent.testing import ScriptedProvider
from bridge.models.ratios import WORTH_STORING, Ratios
from memory.costs.token_ratios import TokenRatios
from memory.database import Database
from tests.bridge.bed import chat_model


async def test_an_estimate_follows_the_reports_and_survives_a_restart(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "galata.db")
    try:
        ratios = Ratios(TokenRatios(database))
        await ratios.load()
        model = chat_model(ScriptedProvider())
        assert ratios.corrected(model).sizes.ratio == 1
        for _ in range(6):
            current = ratios.corrected(model)
            estimated = round(1_000 * current.sizes.ratio)
            usage = Usage(input_tokens=1_500)
            await ratios.learn(ModelCall(1, current, usage, "completed", estimated))
        assert abs(ratios.corrected(model).sizes.ratio - 1.5) < 0.1
        again = Ratios(TokenRatios(database))
        await again.load()
        remembered = again.corrected(model).sizes.ratio
        assert abs(remembered - ratios.corrected(model).sizes.ratio) < WORTH_STORING
    finally:
        await database.close()


async def test_calls_that_nobody_counted_teach_nothing(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "galata.db")
    try:
        ratios = Ratios(TokenRatios(database))
        model = chat_model(ScriptedProvider())
        counted = ModelCall(1, model, Usage(input_tokens=9_000), "completed", 1_000)
        await ratios.learn(replace(counted, usage=Usage(9_000, estimated=True)))
        await ratios.learn(replace(counted, outcome="failed"))
        assert ratios.corrected(model).sizes.ratio == 1
    finally:
        await database.close()
