"""What was used, summed up by one thing: for operators."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memory.clock import stamp
from memory.database import Database

# What it can be summed up by, as SQL over the calls and their sessions. Days are those of UTC.
GROUPS: Final = {
    "chat": "COALESCE(s.channel || ':' || s.chat, 'erased')",
    "person": "COALESCE(s.channel || ':' ||"
    " IIF(u.person GLOB 'erased:*', 'erased', u.person), 'erased')",
    "channel": "COALESCE(s.channel, 'erased')",
    "model": "u.model",
    "purpose": "u.purpose",
    "day": "substr(u.created_at, 1, 10)",
    "run": "u.run_id",
}


@dataclass(frozen=True, slots=True)
class UsageSum:
    """One line of the report. Tokens: `read` anew, from the cache (`cached`), and `written`.
    `cost_microusd`: of the calls that have a price; `unpriced`: how many have none; `estimated`: how
    many were counted by estimate; `running`: how many go on, and count with what they may use."""

    name: str
    calls: int
    read: int
    cached: int
    written: int
    cost_microusd: int
    unpriced: int
    estimated: int
    running: int


class UsageReport:
    """Questions about all calls."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def by(self, group: str, since: datetime) -> list[UsageSum]:
        """All calls since then by one of `GROUPS`, what cost most first."""
        what = GROUPS[group]
        rows = await self._database.read(
            f"SELECT {what}, COUNT(*), SUM(u.input_tokens + u.cache_write_tokens),"  # noqa: S608
            " SUM(u.cache_read_tokens), SUM(u.output_tokens),"
            " COALESCE(SUM(u.cost_microusd), 0) AS cost, SUM(u.cost_microusd IS NULL),"
            " SUM(u.estimated), SUM(u.outcome = 'reserved')"
            " FROM usage u LEFT JOIN sessions s ON s.id = u.session_id WHERE u.created_at >= ?"
            f" GROUP BY {what} ORDER BY cost DESC, 2 DESC, 1",
            (stamp(since),),
        )
        return [UsageSum(str(row[0]), *map(int, row[1:])) for row in rows]
