"""`galata usage`: what the models cost, by chat, person, model, purpose, day or run."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from bridge.cli.options import FINE, CommandFailed, Options, say
from memory.errors import StoreError

if TYPE_CHECKING:
    from memory.costs.usage_report import UsageSum

DAYS = 30  # without --since
_COLUMNS = ("calls", "read", "cached", "written", "cost_usd", "unpriced", "estimated", "running")


def show(options: Options) -> int:
    """Print it. Raises `CommandFailed`."""
    from bridge.operation.data_folder import DATABASE

    path = options.data / DATABASE
    if not path.is_file():
        raise CommandFailed(f"{path} is not there: which --data does the bot run on?")
    since = _since(options.since)
    try:
        sums = asyncio.run(_read(options, since))
    except StoreError as failure:
        raise CommandFailed(str(failure)) from None
    say(_WRITERS[options.format or "table"](options.by, sums))
    return FINE


async def _read(options: Options, since: datetime) -> list[UsageSum]:
    from bridge.operation.data_folder import DATABASE
    from memory.costs.usage_report import UsageReport
    from memory.database import Database

    database = await Database.open_beside(options.data / DATABASE)
    try:
        return await UsageReport(database).by(options.by, since)
    finally:
        await database.close()


def _since(written: str) -> datetime:
    if not written:
        return datetime.now(UTC) - timedelta(days=DAYS)
    try:
        day = date.fromisoformat(written)
    except ValueError:
        raise CommandFailed("--since must be a date such as 2026-11-30") from None
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _row(one: UsageSum) -> list[str]:
    cost = f"{one.cost_microusd / 1_000_000:.4f}"
    counts = (one.calls, one.read, one.cached, one.written)
    rest = (one.unpriced, one.estimated, one.running)
    return [one.name, *map(str, counts), cost, *map(str, rest)]


def _table(by: str, sums: Sequence[UsageSum]) -> str:
    rows = [[by, *_COLUMNS], *map(_row, sums)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    )


def _csv(by: str, sums: Sequence[UsageSum]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([[by, *_COLUMNS], *map(_row, sums)])
    return out.getvalue().rstrip("\n")


def _json(by: str, sums: Sequence[UsageSum]) -> str:
    names = (by, *_COLUMNS)
    rows = [dict(zip(names, _values(one), strict=True)) for one in sums]
    return json.dumps(rows, ensure_ascii=False, indent=2)


def _values(one: UsageSum) -> list[object]:
    counts = (one.calls, one.read, one.cached, one.written)
    cost = one.cost_microusd / 1_000_000
    return [one.name, *counts, cost, one.unpriced, one.estimated, one.running]


_WRITERS: dict[str, Callable[[str, Sequence[UsageSum]], str]] = {
    "table": _table,
    "csv": _csv,
    "json": _json,
}
