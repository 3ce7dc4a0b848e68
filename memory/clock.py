"""Times as the store keeps them."""

from __future__ import annotations

from datetime import UTC, datetime


def stamp(moment: datetime | None = None) -> str:
    """ISO 8601 in UTC with microseconds (now, without a moment): text order is time order."""
    when = datetime.now(UTC) if moment is None else moment.astimezone(UTC)
    return when.isoformat(timespec="microseconds")
