"""What one chat keeps no longer than so many days: messages, answers, notes of days, transcripts.
What it knows for good stays, and who has used what."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from memory.chats.reach import ChatPlace
from memory.clock import stamp
from memory.database import Database
from memory.errors import Linked
from memory.markdown.files import names
from memory.markdown.folders import MEMORY, TRANSCRIPTS, ChatFolders
from memory.scopes import CHANGES, day_of, scope_path

log = logging.getLogger(__name__)

RUNS_AT_ONCE = 50  # deleted in one write

# A run goes as a whole, when its newest message is old. What is open stays.
_OLD_RUNS = (
    "SELECT m.run_id FROM messages m WHERE m.session_id IN ({sessions})"
    " AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.run_id = m.run_id AND r.state <> 'settled')"
    " GROUP BY m.run_id HAVING MAX(m.created_at) < ? LIMIT ?"
)


class ChatRetention:
    """`data`: the data folder. Methods may raise `OSError` and `StoreError`."""

    def __init__(self, database: Database, data: Path) -> None:
        self._database = database
        self._data = data
        self._folders = ChatFolders(data)

    async def chats(self) -> list[ChatPlace]:
        """All with a session."""
        rows = await self._database.read("SELECT DISTINCT channel, account, chat FROM sessions")
        return [ChatPlace(*row) for row in rows]

    async def clean(self, place: ChatPlace, scopes: Sequence[str], before: datetime) -> int:
        """What is older goes; how many runs and files. `scopes`: the chat's memories."""
        rows = await self._database.read(
            "SELECT id, key FROM sessions WHERE channel = ? AND account = ? AND chat = ?",
            (place.channel, place.account, place.chat),
        )
        sessions, keys = [int(row[0]) for row in rows], [str(row[1]) for row in rows]
        deleted = 0
        while runs := await self._database.write(lambda c: _delete(c, sessions, stamp(before))):
            deleted += runs
        await self._database.write(lambda c: _rest(c, sessions, scopes, before))
        return deleted + await asyncio.to_thread(self._files, keys, scopes, before)

    async def scrub(self) -> None:
        """After the last chat: nothing of it is found in the database's file any more."""
        await self._database.scrub()

    def _files(self, keys: Sequence[str], scopes: Sequence[str], before: datetime) -> int:
        old: list[Path] = []
        for scope in scopes:
            folder = scope_path(self._data / MEMORY, scope)
            for one in (folder, folder / CHANGES):
                for name in _own(one):
                    day = day_of(name)
                    if day is not None and day < before.date():
                        old.append(one / name)
        for key in keys:
            folder = self._folders.of(TRANSCRIPTS, key)
            old += [
                path
                for path in (folder.glob("*.jsonl") if folder.is_dir() else ())
                if path.stat().st_mtime < before.timestamp()
            ]
        for path in old:
            path.unlink(missing_ok=True)
        return len(old)


def _own(folder: Path) -> list[str]:
    """What lies elsewhere is no matter of this chat's."""
    try:
        return names(folder)
    except Linked as error:
        log.warning("%s", error)
        return []


def _delete(connection: sqlite3.Connection, sessions: Sequence[int], before: str) -> int:
    marks = ", ".join("?" for _ in sessions)
    found = connection.execute(
        _OLD_RUNS.format(sessions=marks), (*sessions, before, RUNS_AT_ONCE)
    ).fetchall()
    runs = [(str(row[0]),) for row in found]
    connection.executemany("DELETE FROM messages WHERE run_id = ?", runs)
    return len(runs)


def _rest(
    connection: sqlite3.Connection, sessions: Sequence[int], scopes: Sequence[str], before: datetime
) -> None:
    at = stamp(before)
    for session in sessions:
        for statement in (
            "DELETE FROM outbox WHERE session_id = ? AND state = 'done' AND created_at < ?",
            "UPDATE inbox SET body = NULL WHERE session_id = ? AND state = 'done' AND received_at < ?",
            "UPDATE boundaries SET note = NULL WHERE session_id = ? AND created_at < ?",
            "DELETE FROM memory_snapshots WHERE session_id = ? AND made_at < ?",
        ):
            connection.execute(statement, (session, at))
    for scope in scopes:
        connection.execute(
            "DELETE FROM read_days WHERE scope = ? AND day < ?", (scope, before.date().isoformat())
        )
