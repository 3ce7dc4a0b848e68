"""Owners, the one-time link that makes the first one, and what somebody was told already."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from memory.access.codes import digest
from memory.audit import record
from memory.clock import stamp
from memory.database import Database

OWNER_LINK_LIFETIME = timedelta(minutes=10)
OWNER_PREFIX = "own_"


class People:
    """Who owns the bot. Owners from the configuration are not in here."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def owners(self) -> set[tuple[str, str]]:
        """All owners as (channel, person)."""
        rows = await self._database.read("SELECT channel, person FROM owners")
        return {(str(row[0]), str(row[1])) for row in rows}

    async def create_owner_link(self, channel: str) -> str:
        """A new code `own_…`: whoever sends it first on that channel within 10 minutes is an owner.
        Earlier unused codes of the channel end. Only a hash is stored."""
        code = OWNER_PREFIX + secrets.token_urlsafe(16)
        expires = stamp(datetime.now(UTC) + OWNER_LINK_LIFETIME)

        def op(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM owner_links WHERE channel = ?", (channel,))
            connection.execute(
                "INSERT INTO owner_links (code_hash, channel, expires_at) VALUES (?, ?, ?)",
                (digest(code), channel, expires),
            )

        await self._database.write(op)
        return code

    async def claim_ownership(self, channel: str, person: str, code: str) -> bool:
        """Use a code: true once, for the first who sends it in time."""
        now = stamp()

        def op(connection: sqlite3.Connection) -> bool:
            cursor = connection.execute(
                "UPDATE owner_links SET used_at = ? WHERE code_hash = ? AND channel = ?"
                " AND used_at IS NULL AND expires_at > ?",
                (now, digest(code), channel, now),
            )
            if cursor.rowcount != 1:
                return False
            connection.execute(
                "INSERT INTO owners VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (channel, person, now)
            )
            record(connection, f"{channel}:{person}", "owner.added", f"{channel}:{person}")
            return True

        return await self._database.write(op)

    async def is_known(self, channel: str, person: str) -> bool:
        """Whether somebody by that id has ever written, or was let in, shut out or made an owner."""
        rows = await self._database.read(
            "SELECT 1 FROM inbox WHERE channel = :channel AND person = :person UNION ALL"
            " SELECT 1 FROM admissions WHERE channel = :channel AND person = :person UNION ALL"
            " SELECT 1 FROM pairings WHERE channel = :channel AND person = :person UNION ALL"
            " SELECT 1 FROM owners WHERE channel = :channel AND person = :person LIMIT 1",
            {"channel": channel, "person": person},
        )
        return bool(rows)

    async def language(self, channel: str, person: str) -> str | None:
        """What the person's client has said last, as far as a message of theirs is stored."""
        rows = await self._database.read(
            "SELECT json_extract(body, '$.sender.language') FROM inbox WHERE channel = ?"
            " AND person = ? AND body IS NOT NULL AND json_valid(body) ORDER BY id DESC LIMIT 1",
            (channel, person),
        )
        return str(rows[0][0]) if rows and rows[0][0] else None

    async def timezone(self, channel: str, account: str, chat: str) -> str | None:
        """What the profile of who writes in a private chat has said last."""
        rows = await self._database.read(
            "SELECT json_extract(body, '$.sender.timezone') FROM inbox WHERE channel = ?"
            " AND account = ? AND chat = ? AND body IS NOT NULL AND json_valid(body)"
            " AND json_extract(body, '$.sender.timezone') IS NOT NULL ORDER BY id DESC LIMIT 1",
            (channel, account, chat),
        )
        return str(rows[0][0]) if rows else None

    async def tell_anew(self, begins: str, of: Callable[[str], bool]) -> None:
        """What was told under a key that begins so, and is one `of` those that are meant, counts as not
        told."""

        def op(connection: sqlite3.Connection) -> None:
            keys = connection.execute(
                "SELECT key FROM notices WHERE key >= ? AND key < ?",
                (begins, f"{begins}\U0010ffff"),
            ).fetchall()
            meant = [(key,) for (key,) in keys if of(str(key))]
            connection.executemany("DELETE FROM notices WHERE key = ?", meant)

        await self._database.write(op)

    async def tell_once(self, key: str, every: timedelta) -> bool:
        """Whether to tell now: true when `key` was not told within the last `every`. A time that is
        still to come is none: the clock was set back."""
        now = datetime.now(UTC)

        def op(connection: sqlite3.Connection) -> bool:
            cursor = connection.execute(
                "INSERT INTO notices VALUES (?, ?) ON CONFLICT (key)"
                " DO UPDATE SET told_at = excluded.told_at WHERE told_at <= ? OR told_at > ?",
                (key, stamp(now), stamp(now - every), stamp(now)),
            )
            return cursor.rowcount == 1

        return await self._database.write(op)
