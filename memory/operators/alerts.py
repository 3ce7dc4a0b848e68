"""Which causes of trouble the owners were told of, and which of those are not over."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime

from memory.clock import stamp
from memory.database import Database

_TOLD = "alert:"  # keys in the table of notices: when it was told last,
_OPEN = "alert-open:"  # and since when it has not been over


@dataclass(frozen=True, slots=True)
class StoredAlert:
    """A cause. `told_at`: when its owners were told last; `open`: its end is to be told."""

    cause: str
    told_at: datetime | None
    open: bool


class AlertStore:
    """All causes, so that a restart neither repeats an alert nor forgets to tell that it is over."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self) -> list[StoredAlert]:
        """Every cause that is known."""
        rows = await self._database.read(
            "SELECT key, told_at FROM notices WHERE key GLOB 'alert:*' OR key GLOB 'alert-open:*'"
        )
        told: dict[str, datetime] = {}
        open_: set[str] = set()
        for key, at in rows:
            if key.startswith(_OPEN):
                open_.add(key.removeprefix(_OPEN))
            else:
                told[key.removeprefix(_TOLD)] = datetime.fromisoformat(at).astimezone(UTC)
        return [StoredAlert(cause, told.get(cause), cause in open_) for cause in {*told, *open_}]

    async def save(self, alert: StoredAlert) -> None:
        """Keep what is known of a cause."""
        told_at = None if alert.told_at is None else stamp(alert.told_at)
        values = {
            _TOLD + alert.cause: told_at,
            _OPEN + alert.cause: stamp() if alert.open else None,
        }

        def op(connection: sqlite3.Connection) -> None:
            for key, at in values.items():
                if at is None:
                    connection.execute("DELETE FROM notices WHERE key = ?", (key,))
                else:
                    connection.execute(
                        "INSERT INTO notices VALUES (?, ?)"
                        " ON CONFLICT (key) DO UPDATE SET told_at = excluded.told_at",
                        (key, at),
                    )

        await self._database.write(op)
