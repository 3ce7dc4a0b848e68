"""What model calls used, one row each. Sums are queries: there are no counters beside the facts."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agent.provider import Usage
from memory.clock import stamp
from memory.database import Database


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One model call. `number` counts from 1 in its run. `cost_microusd` is None where the model
    has no price. `outcome` is `completed`, `cancelled` or `failed`; `purpose` is `answer`."""

    run_id: str
    number: int
    session: int
    person: str
    model: str
    purpose: str
    outcome: str
    usage: Usage
    cost_microusd: int | None


class UsageStore:
    """All model calls."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def book(self, rows: Sequence[UsageRow]) -> None:
        """Store calls. Idempotent on (run, number)."""
        now = stamp()
        values = [
            (
                row.run_id,
                row.number,
                row.session,
                row.person,
                row.model,
                row.purpose,
                row.outcome,
                row.usage.input_tokens,
                row.usage.output_tokens,
                row.usage.cache_read_tokens,
                row.usage.cache_write_tokens,
                int(row.usage.estimated),
                row.cost_microusd,
                now,
            )
            for row in rows
        ]

        def op(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (run_id, number) DO NOTHING",
                values,
            )

        await self._database.write(op)

    async def cost_since(self, start: datetime) -> int:
        """What all calls since `start` cost together, in micro-dollars."""
        rows = await self._database.read(
            "SELECT COALESCE(SUM(cost_microusd), 0) FROM usage WHERE created_at >= ?",
            (stamp(start),),
        )
        return int(rows[0][0])

    async def calls_of(self, run_id: str) -> int:
        """The number of calls that are booked for a run."""
        rows = await self._database.read(
            "SELECT COALESCE(MAX(number), 0) FROM usage WHERE run_id = ?", (run_id,)
        )
        return int(rows[0][0])

    async def of_session(self, session: int) -> tuple[int, Usage]:
        """The number of calls for a session, and their tokens together."""
        rows = await self._database.read(
            "SELECT COUNT(*), COALESCE(SUM(input_tokens), 0), COALESCE(SUM(output_tokens), 0),"
            " COALESCE(SUM(cache_read_tokens), 0), COALESCE(SUM(cache_write_tokens), 0),"
            " COALESCE(MAX(estimated), 0) FROM usage WHERE session_id = ?",
            (session,),
        )
        calls, *counts = (int(value) for value in rows[0])
        return calls, Usage(counts[0], counts[1], counts[2], counts[3], bool(counts[4]))
