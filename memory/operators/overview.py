"""What an operator asks the database: who waits, what failed, when the last message came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.clock import stamp
from memory.database import Database

# A run that was withdrawn (an outage, a stop) waits again.
_TURNS = (
    "SELECT s.key, COUNT(DISTINCT CASE WHEN r.state IS NOT 'withdrawn' THEN i.run_id END),"
    " SUM(i.run_id IS NULL OR r.state IS 'withdrawn'), MIN(i.received_at)"
    " FROM inbox i JOIN sessions s ON s.id = i.session_id LEFT JOIN runs r ON r.run_id = i.run_id"
    " WHERE i.state = 'open' AND i.kind = 'turn' GROUP BY s.id ORDER BY MIN(i.received_at)"
)
_REPLIES = (
    "SELECT s.key, COUNT(*), MIN(o.created_at) FROM outbox o JOIN sessions s ON s.id = o.session_id"
    " WHERE o.state = 'open' GROUP BY s.id ORDER BY MIN(o.created_at)"
)


@dataclass(frozen=True, slots=True)
class ChatQueue:
    """What a session has to do: `running` runs, `waiting` messages, `undelivered` replies. `since`:
    the oldest of them, ISO 8601 in UTC."""

    session: str
    running: int
    waiting: int
    undelivered: int
    since: str


@dataclass(frozen=True, slots=True)
class LastRun:
    """How a job's last run ended: `outcome` as in the table of jobs, `at` ISO 8601 in UTC."""

    outcome: str
    detail: str
    at: str


class Overview:
    """Questions about everything that is stored."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def channels(self) -> list[str]:
        """The channels that anything has come from, by name."""
        rows = await self._database.read("SELECT DISTINCT channel FROM sessions ORDER BY channel")
        return [str(row[0]) for row in rows]

    async def last_message(self, channel: str) -> str | None:
        """When the newest message of the channel was stored, or None."""
        rows = await self._database.read(
            # From the newest backwards; by its index all of the channel's would be sorted.
            "SELECT (SELECT received_at FROM inbox NOT INDEXED WHERE channel = ?1"
            " ORDER BY id DESC LIMIT 1) WHERE EXISTS (SELECT 1 FROM inbox WHERE channel = ?1)",
            (channel,),
        )
        return str(rows[0][0]) if rows else None

    async def last_body(self, channel: str, person: str) -> str | None:
        """The newest message of a person that is still stored, as JSON, or None."""
        rows = await self._database.read(
            "SELECT body FROM inbox WHERE channel = ? AND person = ? AND body IS NOT NULL"
            " ORDER BY id DESC LIMIT 1",
            (channel, person),
        )
        return str(rows[0][0]) if rows else None

    async def queues(self) -> Sequence[ChatQueue]:
        """Every session that has something to do, the longest waiting first."""
        turns = {row[0]: row for row in await self._database.read(_TURNS)}
        replies = {row[0]: row for row in await self._database.read(_REPLIES)}
        found: list[ChatQueue] = []
        for key in {**turns, **replies}:
            _, running, waiting, came = turns.get(key, (key, 0, 0, ""))
            _, undelivered, made = replies.get(key, (key, 0, ""))
            since = min(at for at in (came, made) if at)
            found.append(ChatQueue(key, int(running), int(waiting), int(undelivered), since))
        return sorted(found, key=lambda queue: queue.since)

    async def last_run(self, kind: str) -> LastRun | None:
        """How the newest run of jobs of this kind ended; None before the first."""
        rows = await self._database.read(
            "SELECT outcome, COALESCE(detail, ''), last_at FROM jobs"
            " WHERE kind = ? AND outcome IS NOT NULL ORDER BY last_at DESC LIMIT 1",
            (kind,),
        )
        return LastRun(*rows[0]) if rows else None

    async def errors_since(self, start: datetime) -> list[str]:
        """The ids of the errors since then, the newest first."""
        rows = await self._database.read(
            "SELECT id FROM errors WHERE at >= ? ORDER BY at DESC", (stamp(start),)
        )
        return [str(row[0]) for row in rows]
