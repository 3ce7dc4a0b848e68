"""Where a platform's history has to be read: what was missed, as far as the store knows."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.audit import record
from memory.database import Database

RESTORED = "data.restored"  # the audit's word for a data folder that was made of a backup


@dataclass(frozen=True, slots=True)
class KnownPlace:
    """A chat, or one of its threads, and the platform's time from which on its history may hold what is
    not stored."""

    chat: str
    thread: str | None
    newest: datetime


class UnreadPlaces:
    """Per account (channel and account)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def known(self, channel: str, account: str) -> list[KnownPlace]:
        """The account's chats and threads: first those that were left unread, then those with a
        conversation, from the newest stored message on (or the conversation's begin, where there is
        none), those that were used last first."""
        left = await self._database.read(
            "SELECT chat, thread, since FROM unread_places WHERE channel = ? AND account = ?",
            (channel, account),
        )
        rows = await self._database.read(
            "SELECT s.chat, s.thread, COALESCE(MAX(i.sent_at), MAX(s.created_at)) AS newest"
            " FROM sessions s LEFT JOIN inbox i ON i.session_id = s.id AND i.event GLOB 'm:*'"
            " WHERE s.channel = ? AND s.account = ? GROUP BY s.chat, s.thread"
            " ORDER BY newest DESC",
            (channel, account),
        )
        found: dict[tuple[str, str | None], datetime] = {}
        for chat, thread, since in (*left, *rows):
            moment = datetime.fromisoformat(since)
            key = str(chat), str(thread) if thread else None
            found[key] = min(moment, found.get(key, moment))
        return [KnownPlace(chat, thread, newest) for (chat, thread), newest in found.items()]

    async def leave(self, channel: str, account: str, places: Sequence[KnownPlace]) -> None:
        """These are still to be read, and no others."""
        rows = [
            (channel, account, one.chat, one.thread or "", one.newest.isoformat()) for one in places
        ]

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "DELETE FROM unread_places WHERE channel = ? AND account = ?", (channel, account)
            )
            connection.executemany("INSERT INTO unread_places VALUES (?, ?, ?, ?, ?)", rows)

        await self._database.write(op)

    async def restored_at(self) -> datetime | None:
        """When the data folder was last made of a backup: what was answered between is not stored."""
        rows = await self._database.read("SELECT MAX(at) FROM audit WHERE action = ?", (RESTORED,))
        return datetime.fromisoformat(rows[0][0]) if rows[0][0] else None


def note_restore(connection: sqlite3.Connection, made_at: str) -> None:
    """For the audit table of a folder that was made of a backup of that time (ISO 8601)."""
    record(connection, "operator", RESTORED, "data folder", before=made_at)
