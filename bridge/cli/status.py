"""`galata status`: what the running bot does, or what is stored when none runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bridge.cli.options import FAILED, FINE, CommandFailed, Options, say, tell
from bridge.cli.running import NotRunning, ask_running


def show(options: Options) -> int:
    """Print it. 1 when nothing runs, or when a channel does not receive. Raises `CommandFailed`."""
    try:
        status = ask_running(options.data, "status")
    except NotRunning as error:
        tell(f"{error}; this is what is stored:")
        status = _stored(options.data)
    if options.as_json:
        say(json.dumps(status, indent=2))
    else:
        for line in lines(status, datetime.now(UTC)):
            say(line)
    receives = all(channel["receiving"] for channel in status["channels"])
    return FINE if status["pid"] is not None and receives else FAILED


def lines(status: Any, now: datetime) -> Iterator[str]:
    """The status for a person. It is what `Status.to_json` gave, maybe of another version."""
    if status["pid"] is None:
        yield f"galata {status['version']}, not running"
    else:
        up = _span(now - datetime.fromisoformat(status["started"]))
        yield f"galata {status['version']}, process {status['pid']}, up {up}"
    for channel in status["channels"]:
        yield f"{channel['name']}: {_state(channel)}; last message {_time(channel['last_message'])}"
    if status["queues"]:
        yield "at work:"
    for queue in status["queues"]:
        yield (
            f"  {queue['session']}: {queue['running']} running, {queue['waiting']} waiting, "
            f"{queue['undelivered']} undelivered, since {_time(queue['since'])}"
        )
    if status.get("refused"):
        yield "the configuration has faults; what held before holds on:"
        yield from (f"  {fault}" for fault in status["refused"])
    if status.get("faulty_limits"):
        yield "files of chats' limits have faults; what held before holds on:"
        yield from (f"  {fault}" for fault in status["faulty_limits"])
    if status.get("restart"):
        yield f"changed in the configuration, needs a restart: {', '.join(status['restart'])}"
    errors = status["errors"]
    newest = f" (galata error ID: {', '.join(errors['newest'])})" if errors["newest"] else ""
    yield f"errors in the last hour: {errors['count']}{newest}"


def _state(channel: Any) -> str:
    if channel["receiving"] is None:
        return "not running"
    if channel["receiving"]:
        return f"receives since {_time(channel['since'])}"
    again = "gave up" if channel["gave_up"] else "is tried again"
    return f"DOWN since {_time(channel['since'])}, {again}: {channel['reason']}"


def _time(at: str | None) -> str:
    return "-" if at is None else f"{at[:19].replace('T', ' ')} UTC"


def _span(time: timedelta) -> str:
    minutes = int(time.total_seconds() // 60)
    days, hours = minutes // 1440, minutes // 60 % 24
    return f"{days} d {hours} h {minutes % 60} min" if days else f"{hours} h {minutes % 60} min"


def _stored(data: Path) -> Any:
    """The status of a folder on which nothing runs. Raises `CommandFailed`."""
    from bridge.operation.data_folder import DATABASE
    from memory.errors import StoreError

    path = data / DATABASE
    if not path.is_file():
        raise CommandFailed(f"{path} is not there: which --data does the bot run on?")
    try:
        return asyncio.run(_read(path))
    except StoreError as error:
        raise CommandFailed(str(error)) from None


async def _read(path: Path) -> Any:
    from bridge.operation.status import stored_status
    from memory.database import Database
    from memory.operators.overview import Overview

    database = await Database.open_beside(path)
    try:
        return (await stored_status(Overview(database))).to_json()
    finally:
        await database.close()
