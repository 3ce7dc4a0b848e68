"""The last good text of each chat's limits, and what was changed by whom (in the audit table)."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from memory.audit import record
from memory.clock import stamp
from memory.database import Database

CHANGED = "limits.changed"
FILE = "file"  # who changed it: whoever writes the files


@dataclass(frozen=True, slots=True)
class PolicyPlace:
    """A chat, or one of its topics ('' for the chat itself)."""

    channel: str
    chat: str
    topic: str = ""

    @property
    def target(self) -> str:
        """As the audit table names it."""
        return ":".join(filter(None, (self.channel, self.chat, self.topic)))


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """A text with its revision, from 1; 0 and an empty text where nothing is stored."""

    text: str = ""
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a chat's limits: when (ISO 8601 in UTC), by whom, and both texts."""

    at: str
    actor: str
    before: str
    after: str


class PolicyStore:
    """All of them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, place: PolicyPlace) -> StoredPolicy:
        """What is stored."""
        rows = await self._database.read(_GET, (place.channel, place.chat, place.topic))
        return StoredPolicy(str(rows[0][0]), int(rows[0][1])) if rows else StoredPolicy()

    async def put(
        self, place: PolicyPlace, text: str, actor: str, *, revision: int | None = None
    ) -> StoredPolicy | None:
        """Store a text, with a row in the audit table; the same text changes nothing. `revision`: the
        one that the change was made on; None, when another is stored by now."""

        def op(connection: sqlite3.Connection) -> StoredPolicy | None:
            key = (place.channel, place.chat, place.topic)
            row = connection.execute(_GET, key).fetchone()
            before = StoredPolicy(str(row[0]), int(row[1])) if row else StoredPolicy()
            if revision is not None and revision != before.revision:
                return None
            if text == before.text:
                return before
            connection.execute(
                "INSERT INTO policies VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (channel, chat, topic) DO UPDATE SET text = excluded.text,"
                " revision = excluded.revision, changed_at = excluded.changed_at",
                (*key, text, before.revision + 1, stamp()),
            )
            record(connection, actor, CHANGED, place.target, before.text, text)
            return StoredPolicy(text, before.revision + 1)

        return await self._database.write(op)

    async def changes(self, place: PolicyPlace, most: int) -> list[Change]:
        """The newest changes, the newest first; also those under ids that the chat had before."""
        rows = await self._database.read(
            "SELECT at, actor, before, after FROM audit WHERE action = :action AND target IN ("
            " SELECT :target UNION SELECT channel || ':' || old FROM moved_chats"
            " WHERE channel = :channel AND chat = :chat AND :topic = '')"
            " ORDER BY id DESC LIMIT :most",
            {
                "action": CHANGED,
                "target": place.target,
                "channel": place.channel,
                "chat": place.chat,
                "topic": place.topic,
                "most": most,
            },
        )
        return [Change(*map(str, row)) for row in rows]


class NothingStored(PolicyStore):
    """Where there is no database yet."""

    def __init__(self) -> None:
        """Nothing to be read from."""

    async def get(self, place: PolicyPlace) -> StoredPolicy:
        """Nothing."""
        return StoredPolicy()


_GET = "SELECT text, revision FROM policies WHERE channel = ? AND chat = ? AND topic = ?"
