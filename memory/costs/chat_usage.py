"""What one chat has used, by day and by cause: for the people in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from memory.clock import stamp
from memory.costs.days import ITS_IDS, RESERVED, TOKENS, Place, named
from memory.database import Database

Cause = Literal["person", "model", "purpose"]

_SUM = "COALESCE(SUM(cost_microusd), 0), COALESCE(SUM(tokens), 0)"
# Without what running calls have only reserved.
_HERE = (
    "FROM (SELECT day, person, cost_microusd, tokens FROM usage_days"  # noqa: S608
    f" WHERE channel = :channel AND account = :account AND {ITS_IDS} UNION ALL"
    f" SELECT d.day, d.person, -u.cost_microusd, -({TOKENS}) {RESERVED})"
)
_BY: Final = {
    cause: (
        f"SELECT {what} AS cause, COALESCE(SUM(u.cost_microusd), 0) AS cost, SUM({TOKENS}) AS tokens"  # noqa: S608
        " FROM usage u JOIN sessions s ON s.id = u.session_id"
        f" WHERE s.channel = :channel AND s.account = :account AND s.{ITS_IDS}"
        " AND u.created_at >= :since AND u.outcome <> 'reserved'"
        f" GROUP BY cause ORDER BY cost DESC, tokens DESC LIMIT :most"
    )
    for cause, what in (
        ("person", "IIF(u.person GLOB 'erased:*', 'erased', u.person)"),
        ("model", "u.model"),
        ("purpose", "u.purpose"),
    )
}


@dataclass(frozen=True, slots=True)
class Part:
    """What one day or cause has used: micro-dollars, and tokens of all kinds."""

    name: str
    cost: int
    tokens: int


class ChatUsage:
    """Questions about one chat (channel, account, id)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def days(self, place: Place, first: str) -> list[Part]:
        """Its days from the local date `first` on in which anything was used."""
        rows = await self._database.read(
            f"SELECT day, {_SUM} {_HERE} WHERE day >= :first GROUP BY day ORDER BY day",
            {**named(place), "first": first},
        )
        return [Part(str(row[0]), int(row[1]), int(row[2])) for row in rows]

    async def own(self, place: Place, person: str, first: str) -> Part:
        """What the person has used in it since that date."""
        rows = await self._database.read(
            f"SELECT {_SUM} {_HERE} WHERE day >= :first AND person = :person",
            {**named(place), "first": first, "person": person},
        )
        return Part(person, int(rows[0][0]), int(rows[0][1]))

    async def causes(
        self, place: Place, cause: Cause, since: datetime, most: int
    ) -> Sequence[Part]:
        """The `most` that have used most since then."""
        values = {**named(place), "since": stamp(since), "most": most}
        rows = await self._database.read(_BY[cause], values)
        return [Part(str(row[0]), int(row[1]), int(row[2])) for row in rows]
