"""Transcripts: a stored conversation as lines to read, and snapshots of it as files.

The store keeps every message, so what the model and the operator read is made from it. A snapshot
is a copy for people, written when an emergency leaves most of a context behind:
`transcripts/<session>/<time>.jsonl` in the data folder, and `latest` beside it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.messages import Message, encode
from memory.audit import record
from memory.conversations import SessionPlace
from memory.database import Database
from memory.markdown.files import FRESH
from memory.rendering import Record, Renderer, wrap
from memory.scopes import scope_folder
from memory.stored_messages import readable

log = logging.getLogger(__name__)

LATEST = "latest"
_UNFINISHED = "unfinished"
_PAGE = 20  # messages in one query: images can make them large, and others read in between
READING = "history.read"  # in the audit table, and what the control socket is asked


@dataclass(frozen=True, slots=True)
class Mark:
    """Before message `start_id` a context began: `kind` as in the table of boundaries."""

    kind: str
    start_id: int
    created_at: str


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """A session in the list: its number and key, messages, and when the last one was stored."""

    number: int
    key: str
    messages: int
    last_at: str | None


@dataclass(frozen=True, slots=True)
class Said:
    """A message, and when it was stored."""

    message: Message
    at: datetime


class History:
    """Reads what is stored of all sessions, all of it: boundaries are marks in it, and no more."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, session: int, after: int, *, left_out: bool = True) -> list[Record]:
        """The session's next messages after row `after`, oldest first; none when there is no more.
        `left_out` false: without runs that somebody took out of the context."""
        rows = await self._database.read(
            "SELECT id, role, body, created_at FROM messages"
            " WHERE session_id = :s AND id > :after AND (:left_out OR run_id NOT IN"
            " (SELECT run_id FROM left_out WHERE session_id = :s)) ORDER BY id LIMIT :page",
            {"s": session, "after": after, "left_out": left_out, "page": _PAGE},
        )
        return [Record(*row) for row in rows]

    async def marks(self, session: int) -> list[Mark]:
        """The session's boundaries, oldest first."""
        rows = await self._database.read(
            "SELECT kind, start_id, created_at FROM boundaries WHERE session_id = ? ORDER BY id",
            (session,),
        )
        return [Mark(*row) for row in rows]

    async def said(self, session: int, person: str | None) -> list[Said]:
        """The conversation since the last `/new`, without what was taken out of it, oldest first. With
        `person` only the runs that this person has asked for."""
        rows = await self._database.read(
            "SELECT m.body, m.created_at FROM messages m WHERE m.session_id = :s"
            " AND m.id >= COALESCE((SELECT MAX(start_id) FROM boundaries"
            " WHERE session_id = :s AND kind = 'new'), 0)"
            " AND m.run_id NOT IN (SELECT run_id FROM left_out WHERE session_id = :s)"
            " AND (:person IS NULL OR m.run_id IN (SELECT run_id FROM inbox"
            " WHERE session_id = :s AND person = :person AND run_id IS NOT NULL))"
            " ORDER BY m.id",
            {"s": session, "person": person},
        )
        return [Said(readable(row[0]), datetime.fromisoformat(row[1])) for row in rows]

    async def newest_of(self, place: SessionPlace, person: str) -> int | None:
        """The session in which the person has asked last in this chat."""
        rows = await self._database.read(
            "SELECT session_id FROM inbox WHERE channel = ? AND account = ? AND chat = ?"
            " AND person = ? AND kind = 'turn' AND session_id IS NOT NULL ORDER BY id DESC LIMIT 1",
            (place.channel, place.account, place.chat, person),
        )
        return int(rows[0][0]) if rows else None

    async def sessions(self, name: str | None = None) -> list[SessionEntry]:
        """All sessions, the one that was used last first; or the one of that key or number."""
        rows = await self._database.read(
            "SELECT s.id, s.key,"
            " (SELECT COUNT(*) FROM messages WHERE session_id = s.id),"
            " (SELECT created_at FROM messages WHERE session_id = s.id ORDER BY id DESC LIMIT 1)"
            " FROM sessions s"
            " WHERE :name IS NULL OR s.key = :name OR CAST(s.id AS TEXT) = :name"
            " ORDER BY 4 DESC, 1 DESC",
            {"name": name},
        )
        return [SessionEntry(*row) for row in rows]

    async def record_reading(self, actor: str, key: str) -> None:
        """Note in the audit table that `actor` reads the session `key`."""

        def op(connection: sqlite3.Connection) -> None:
            record(connection, actor, READING, key)

        await self._database.write(op)


class Transcripts:
    """Stored conversations to read; snapshots go below `folder` (mode 0700, files 0600)."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.history = History(database)
        self._folder = folder
        # Of threads: a snapshot goes on when the task that waits for it is cancelled.
        self._writing = threading.Lock()

    async def lines(self, session: int) -> list[str]:
        """The conversation since the last `/new`, in lines of at most `WIDTH` characters.

        Later messages only add lines at the end. What was taken back is not in it: a model that was
        to look at it no longer would else find it here.
        """
        new = [mark.start_id for mark in await self.history.marks(session) if mark.kind == "new"]
        after = new[-1] - 1 if new else 0
        renderer, lines = Renderer(), list[str]()
        while page := await self.history.page(session, after, left_out=False):
            lines += await asyncio.to_thread(_wrapped_lines, renderer, page)
            after = page[-1].id
        return lines

    async def snapshot(
        self, session: int, session_key: str, messages: Sequence[Message], now: datetime
    ) -> str:
        """Write `messages` to a file, one `encode(message)` a line, and point `latest` at it.

        Returns the file's path within the data folder; it is never that of an older snapshot.
        Raises `OSError` when it cannot be written.
        """
        folder = self._folder / scope_folder(session_key)
        path, problem = await asyncio.to_thread(self._write, folder, messages, now.astimezone(UTC))
        if problem is not None:
            log.warning("session %d: %s was not renewed: %s", session, LATEST, problem)
        return path.relative_to(self._folder.parent).as_posix()

    async def clean(self, before: datetime, most_bytes: int) -> int:
        """Delete snapshots that were written before that, and the oldest of what is more than
        `most_bytes` together; how many. Raises `OSError`."""
        return await asyncio.to_thread(self._clean, before.timestamp(), most_bytes)

    def _clean(self, before: float, most_bytes: int) -> int:
        with self._writing:
            found = [(path, path.stat()) for path in self._folder.glob("*/*.jsonl")]
            newest_first = sorted(found, key=lambda one: one[1].st_mtime, reverse=True)
            total, deleted = 0, 0
            for path, facts in newest_first:
                total += facts.st_size
                if facts.st_mtime < before or total > most_bytes:
                    path.unlink()
                    deleted += 1
            for folder in self._folder.glob("*/"):
                if not any(folder.glob("*.jsonl")):
                    (folder / LATEST).unlink(missing_ok=True)
                    for left in (_UNFINISHED, FRESH):
                        (folder / left).unlink(missing_ok=True)
                    folder.rmdir()
        return deleted

    def _write(
        self, folder: Path, messages: Sequence[Message], now: datetime
    ) -> tuple[Path, OSError | None]:
        # A lone surrogate becomes `\ud800`, which is how JSON writes it.
        lines = (encode(message).encode("utf-8", "backslashreplace") for message in messages)
        data = b"".join(line + b"\n" for line in lines)
        with self._writing:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            path = _unused(folder, now)
            _write_file(path, data)
            try:
                _point(folder / LATEST, path.name)
            except OSError as error:  # the snapshot stands without it
                return path, error
            return path, None


def _wrapped_lines(renderer: Renderer, page: Sequence[Record]) -> list[str]:
    return [piece for stored in page for line in renderer.render(stored) for piece in wrap(line)]


def _unused(folder: Path, now: datetime) -> Path:
    """A name that sorts by time; a clock that was set back must not replace an older file."""
    while True:
        path = folder / f"{now:%Y-%m-%dT%H-%M-%S.%fZ}.jsonl"
        if not path.exists():
            return path
        now += timedelta(microseconds=1)


def _write_file(path: Path, data: bytes) -> None:
    """Write and sync under another name first; what a crash leaves under that is replaced."""
    fresh = path.with_name(_UNFINISHED)
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
    _sync(path.parent)  # a boundary that names the file will be stored next


def _point(link: Path, target: str) -> None:
    fresh = link.with_name(f"{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
