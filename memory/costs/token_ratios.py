"""How far each model's token estimate is off, kept so that a restart does not forget it."""

from __future__ import annotations

import sqlite3

from agent.estimate import Correction
from memory.clock import stamp
from memory.database import Database


class TokenRatios:
    """One correction for each model; `model` is whatever the caller names it by, always the same."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self) -> dict[str, Correction]:
        """All that is known, by model. A model without an entry has `Correction()`."""
        rows = await self._database.read("SELECT model, ratio, samples FROM token_ratios")
        return {str(row[0]): Correction(float(row[1]), int(row[2])) for row in rows}

    async def keep(self, model: str, correction: Correction) -> None:
        """Store a model's correction in place of the earlier one."""
        values = (model, correction.ratio, correction.samples, stamp())

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO token_ratios (model, ratio, samples, updated_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (model) DO UPDATE SET ratio = excluded.ratio,"
                " samples = excluded.samples, updated_at = excluded.updated_at",
                values,
            )

        await self._database.write(op)
