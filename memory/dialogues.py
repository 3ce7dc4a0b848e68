"""What people are in the midst of choosing, by buttons and replies: alive for some minutes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from memory.clock import stamp
from memory.database import Database

LIFE: Final = timedelta(minutes=10)
"""From the last step on."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Held with `person` in a chat. `body` is the bridge's."""

    id: int
    channel: str
    account: str
    chat: str
    person: str
    body: str


class Dialogues:
    """All that have not expired."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, place: tuple[str, str, str], person: str, body: str) -> int:
        """A new one at (channel, account, chat); its id."""

        def op(connection: sqlite3.Connection) -> int:
            connection.execute("DELETE FROM dialogues WHERE until < ?", (stamp(),))
            cursor = connection.execute(
                "INSERT INTO dialogues (channel, account, chat, person, body, until)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (*place, person, body, _until()),
            )
            assert cursor.lastrowid is not None  # noqa: S101 - an INSERT has one
            return cursor.lastrowid

        return await self._database.write(op)

    async def get(self, id_: int) -> Dialogue | None:
        """One that is alive."""
        rows = await self._database.read(
            f"{_SELECT} WHERE id = ? AND until >= ?",
            (id_, stamp()),
        )
        return _dialogue(rows[0]) if rows else None

    async def awaiting(self, place: tuple[str, str, str], message_id: str) -> Dialogue | None:
        """The one to which a reply to the bot's message belongs."""
        rows = await self._database.read(
            f"{_SELECT} WHERE channel = ? AND account = ? AND chat = ? AND awaits = ?"
            " AND until >= ? ORDER BY id DESC LIMIT 1",
            (*place, message_id, stamp()),
        )
        return _dialogue(rows[0]) if rows else None

    async def go_on(self, id_: int, body: str, awaits: str | None = None) -> None:
        """Its next step, from which on it lives as long again."""

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE dialogues SET body = ?, awaits = ?, until = ? WHERE id = ?",
                (body, awaits, _until(), id_),
            )

        await self._database.write(op)

    async def end(self, id_: int) -> bool:
        """It is over; false where it was already, so that nothing is done twice."""

        def op(connection: sqlite3.Connection) -> bool:
            return connection.execute("DELETE FROM dialogues WHERE id = ?", (id_,)).rowcount > 0

        return await self._database.write(op)


_SELECT = "SELECT id, channel, account, chat, person, body FROM dialogues"


def _dialogue(row: Sequence[Any]) -> Dialogue:
    id_, channel, account, chat, person, body = row
    return Dialogue(int(id_), str(channel), str(account), str(chat), str(person), str(body))


def _until() -> str:
    return stamp(datetime.now(UTC) + LIFE)
