"""Private conversations: sessions of their own, in which nothing is kept, and which go at their end."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memory.chats.erasing import erase_sessions
from memory.chats.reach import ChatPlace
from memory.clock import stamp
from memory.database import Database
from memory.scopes import MARK

END: Final = "private_end"  # the job


@dataclass(frozen=True, slots=True)
class Talk:
    """One that has not ended. `token` is the end of its sessions' keys."""

    place: ChatPlace
    token: str
    until: datetime


class Talks:
    """Of all private chats."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[Talk]:
        """Those that have not ended."""
        rows = await self._database.read(
            "SELECT channel, account, chat, token, until FROM private_talks"
        )
        return [
            Talk(ChatPlace(*row[:3]), str(row[3]), datetime.fromisoformat(row[4])) for row in rows
        ]

    async def begin(self, talk: Talk, job_scope: str) -> None:
        """Keep it, with the job that ends it."""
        place, until = talk.place, stamp(talk.until)

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO private_talks VALUES (?, ?, ?, ?, ?)",
                (place.channel, place.account, place.chat, talk.token, until),
            )
            connection.execute(
                "INSERT INTO jobs (kind, scope, due_at) VALUES (?, ?, ?) ON CONFLICT (kind, scope)"
                " DO UPDATE SET due_at = excluded.due_at, tries = 0",
                (END, job_scope, until),
            )
            connection.execute("DELETE FROM notices WHERE key = ?", (_over(place),))

        await self._database.write(op)

    async def session_keys(self, talk: Talk) -> list[str]:
        """The keys of its sessions."""
        rows = await self._database.read(
            "SELECT key FROM sessions WHERE channel = ? AND account = ? AND chat = ?"
            " AND key GLOB ?",
            (*_place(talk), f"*{MARK}{talk.token}"),
        )
        return [str(row[0]) for row in rows]

    async def tell_over(self, place: ChatPlace) -> bool:
        """Whether one has ended there by time and nobody was told yet; from now on somebody was."""
        key = (_over(place),)
        if not await self._database.read("SELECT 1 FROM notices WHERE key = ?", key):
            return False
        return await self._database.write(
            lambda c: c.execute("DELETE FROM notices WHERE key = ?", key).rowcount == 1
        )

    async def end(self, talk: Talk, *, by_time: bool) -> None:
        """Everything of it goes; what it cost stays as sums without a person. Idempotent. Where it ends
        `by_time`, the chat is still to be told."""

        def op(connection: sqlite3.Connection) -> None:
            rows = connection.execute(
                "SELECT id FROM sessions WHERE channel = ? AND account = ? AND chat = ?"
                " AND key GLOB ?",
                (*_place(talk), f"*{MARK}{talk.token}"),
            )
            erase_sessions(connection, [int(row[0]) for row in rows.fetchall()], alive=True)
            connection.execute(
                "DELETE FROM private_talks WHERE channel = ? AND account = ? AND chat = ?"
                " AND token = ?",
                (*_place(talk), talk.token),
            )
            if by_time:
                connection.execute(
                    "INSERT OR REPLACE INTO notices VALUES (?, ?)", (_over(talk.place), stamp())
                )

        await self._database.write(op)
        await self._database.scrub()


def _place(talk: Talk) -> tuple[str, str, str]:
    return talk.place.channel, talk.place.account, talk.place.chat


def _over(place: ChatPlace) -> str:
    """The notice that one has ended there."""
    return f"private_over:{place.channel}:{place.account}:{place.chat}"
