"""Until when messages of an account have come as they were sent: after it they may have been missed."""

from __future__ import annotations

from datetime import UTC, datetime

from memory.clock import stamp
from memory.database import Database


class Connected:
    """A time of each account, in the table of notices."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def until(self, channel: str, account: str) -> datetime | None:
        """None where it has never been connected."""
        rows = await self._database.read(
            "SELECT told_at FROM notices WHERE key = ?", (_key(channel, account),)
        )
        return datetime.fromisoformat(rows[0][0]).astimezone(UTC) if rows else None

    async def note(self, channel: str, account: str, at: datetime) -> None:
        """It was, at that time."""
        await self._database.write(
            lambda connection: connection.execute(
                "INSERT INTO notices VALUES (?, ?)"
                " ON CONFLICT (key) DO UPDATE SET told_at = excluded.told_at",
                (_key(channel, account), stamp(at)),
            )
        )


def _key(channel: str, account: str) -> str:
    return f"connected:{channel}:{account}"
