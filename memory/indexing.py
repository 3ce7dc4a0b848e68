"""Keeps what can be searched up to date: memory files by what changed of them, messages by their ids.

The index is derived: it can be thrown away and is built again. Written in small steps, each of which
is carried out only while what it builds on still stands, so that two that catch up at once double
nothing, and no other write waits long.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice
from pathlib import Path
from weakref import WeakValueDictionary

from agent.messages import MessageFormatError, TextBlock, decode
from memory.database import Database
from memory.markdown.files import names, read
from memory.markdown.pieces import Piece, entry_pieces, pieces
from memory.scopes import FACTS, MARK, ChatScope, day_of, scope_of_index, scope_path

FILES_AT_ONCE = 20  # in one write; measured: 15 ms for day files of 4,000 characters
MESSAGES_AT_ONCE = 100
RACY_NS = 2_000_000_000
"""A file that was written so shortly before it was read may be changed again without another time."""
LOOKED_AT_ALWAYS = 300  # files whose times are looked at before each search: a few milliseconds
LOOK_EVERY_S = 30.0  # at all files of a scope that has more, and when one was created
NEWEST = 3  # of those the newest are looked at before each search


@dataclass(frozen=True, slots=True)
class Owner:
    """A scope as the index knows it. `word` stands with every entry of it."""

    id: int
    upto: int

    @property
    def word(self) -> str:
        """A word that no text has by itself in its column."""
        return f"s{self.id}"

    def asking(self, wanted: str) -> str:
        """FTS5's query for what is wanted of the words, in this scope alone."""
        return f'owner : "{self.word}" AND words : ({wanted})'


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as it was indexed: bytes, time, SHA-256 of its bytes, lines that are whole."""

    size: int
    mtime_ns: int
    hash: bytes
    lines: int


@dataclass(frozen=True, slots=True)
class _Entry:
    """What is to be found, and where it stands."""

    piece: Piece
    day: int
    message_id: int | None = None
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class _Change:
    """A file whose entries are to be replaced, or (`appended`) to be added to."""

    name: str
    before: FileState | None
    after: FileState | None
    appended: bool
    entries: tuple[_Entry, ...]


@dataclass(frozen=True, slots=True)
class _Look:
    """When all files of a scope were looked at, and the time of its folder, in which a new file
    shows."""

    at: float
    folder: int


class Indexer:
    """For the memory files below `folder` and the messages in `database`."""

    def __init__(
        self, database: Database, folder: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._folder = folder
        self._clock = clock
        self._looked: dict[int, _Look] = {}  # by owner
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def catch_up(self, chat: ChatScope, *, everything: bool = False) -> Owner:
        """Bring the scope's part of the index up to date. `everything`: look at all files now. Raises
        `StoreError` and `OSError`."""
        lock = self._locks.setdefault(chat.index, asyncio.Lock())
        async with lock:
            owner = await self._owner(chat)
            await self._files(chat.scope, owner, everything=everything)
            await self._messages(chat, owner)
        return owner

    async def reindex(self, each: Callable[[str], None] = lambda scope: None) -> int:
        """Build the whole index anew; how many scopes it has. `each` is told the scope that comes."""
        known = await self._database.read(
            "SELECT scope, channel, account, chat FROM memory_scopes ORDER BY id"
        )
        for row in known:
            name, channel, account, place = map(str, row)
            chat = ChatScope(scope_of_index(name), channel, account, place)
            each(name)
            await self._drop(name)
            await self.catch_up(chat, everything=True)
        return len(known)

    async def _drop(self, scope: str) -> None:
        """The scope's part goes, a few entries at a time."""

        def op(connection: sqlite3.Connection) -> int:
            whose = "(SELECT id FROM memory_scopes WHERE scope = ?)"
            connection.execute(f"DELETE FROM search_files WHERE owner = {whose}", (scope,))  # noqa: S608
            connection.execute("UPDATE memory_scopes SET upto = 0 WHERE scope = ?", (scope,))
            return connection.execute(
                "DELETE FROM search_entries WHERE id IN"  # noqa: S608
                f" (SELECT id FROM search_entries WHERE owner = {whose} LIMIT 500)",
                (scope,),
            ).rowcount

        while await self._database.write(op):
            pass

    async def _owner(self, chat: ChatScope) -> Owner:
        rows = await self._database.read(
            "SELECT id, upto FROM memory_scopes WHERE scope = ?", (chat.index,)
        )
        if rows:
            return Owner(int(rows[0][0]), int(rows[0][1]))
        return await self._database.write(lambda connection: register(connection, chat))

    # Files ----------------------------------------------------------------------------------------

    async def _files(self, scope: str, owner: Owner, *, everything: bool) -> None:
        folder = scope_path(self._folder, scope)
        look = _Look(self._clock(), await asyncio.to_thread(_folder_time, folder))
        last = self._looked.get(owner.id)
        due = last is None or last.folder != look.folder or look.at - last.at >= LOOK_EVERY_S
        few = await self._known(owner, LOOKED_AT_ALWAYS + 1)
        everything = everything or due or len(few) <= LOOKED_AT_ALWAYS
        if everything:
            self._looked[owner.id] = look
            known = few if len(few) <= LOOKED_AT_ALWAYS else await self._known(owner, -1)
        else:
            known = dict(islice(few.items(), NEWEST + 1))
        found = await asyncio.to_thread(_stale, folder, known, everything=everything)
        for start in range(0, len(found), FILES_AT_ONCE):
            some = found[start : start + FILES_AT_ONCE]
            changes = await asyncio.to_thread(_changes, folder, some, known)
            await self._database.write(_storing(owner, changes))

    async def _known(self, owner: Owner, most: int) -> dict[str, FileState]:
        """The files as they were indexed: `MEMORY.md`, then the newest first; -1: all."""
        rows = await self._database.read(
            "SELECT name, size, mtime_ns, hash, lines FROM search_files WHERE owner = ?"
            " ORDER BY name DESC LIMIT ?",
            (owner.id, most),
        )
        return {str(row[0]): FileState(*row[1:]) for row in rows}

    # Messages -------------------------------------------------------------------------------------

    async def _messages(self, chat: ChatScope, owner: Owner) -> None:
        upto = owner.upto
        while True:
            rows = await self._database.read(
                "SELECT id, run_id, body, created_at FROM messages WHERE session_id IN"  # noqa: S608
                " (SELECT id FROM sessions WHERE channel = ? AND account = ? AND chat = ?"
                f" AND key NOT GLOB '*{MARK}*')"
                " AND id > ? ORDER BY id LIMIT ?",
                (chat.channel, chat.account, chat.chat, upto, MESSAGES_AT_ONCE),
            )
            if not rows:
                return
            entries = await asyncio.to_thread(_of_messages, rows)
            newest = int(rows[-1][0])
            await self._database.write(_storing_messages(owner, upto, newest, entries))
            upto = newest


def register(connection: sqlite3.Connection, chat: ChatScope) -> Owner:
    """The scope's row, made when it is new. For use inside a write."""
    rows = connection.execute(
        "INSERT INTO memory_scopes (scope, channel, account, chat) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (scope) DO UPDATE SET scope = excluded.scope RETURNING id, upto",
        (chat.index, chat.channel, chat.account, chat.chat),
    )
    id_, upto = next(iter(rows))
    return Owner(int(id_), int(upto))


def _folder_time(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _stale(folder: Path, known: Mapping[str, FileState], *, everything: bool) -> list[str]:
    """The names of files that may have changed since they were indexed, or are gone: of those that
    are known, or of `everything`."""
    if everything:
        times = dict(_listed(folder))
    else:
        times = {name: time for name in known for time in _time(folder / name)}
    same = {name for name, at in times.items() if name in known and at == _at(known[name])}
    return sorted((times.keys() | known.keys()) - same)


def _listed(folder: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    for name in names(folder):
        if name == FACTS or day_of(name) is not None:
            for at in _time(folder / name):
                yield name, at


def _time(path: Path) -> Iterator[tuple[int, int]]:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    yield status.st_size, status.st_mtime_ns


def _at(state: FileState) -> tuple[int, int]:
    return state.size, state.mtime_ns


def _changes(folder: Path, names: Iterable[str], known: Mapping[str, FileState]) -> list[_Change]:
    return [_change(folder, name, known.get(name)) for name in names]


def _change(folder: Path, name: str, before: FileState | None) -> _Change:
    """What is to be done about a file that may have changed. Raises `OSError`."""
    path = folder / name
    times = list(_time(path))
    data = read(path)
    if not times or not data:
        return _Change(name, before, None, False, ())
    fresh = time.time_ns() - times[0][1] < RACY_NS
    lines = data.decode("utf-8", "replace").split("\n")
    whole = len(lines) - 1  # the last one may go on
    state = FileState(len(data), 0 if fresh else times[0][1], hashlib.sha256(data).digest(), whole)
    if before is not None and before.hash == state.hash:
        return _Change(name, before, state, True, ())
    day = day_of(name)
    if day is None:
        return _Change(name, before, state, False, tuple(_of_facts("\n".join(lines))))
    appended = before is not None and _goes_on(data, before)
    first = before.lines if before is not None and appended else 0
    return _Change(name, before, state, appended, tuple(_of_day(lines[first:], first, day)))


def _goes_on(data: bytes, before: FileState) -> bool:
    """Whether the file is what it was and something after it, which begins a line of its own."""
    earlier = data[: before.size]
    return earlier.endswith(b"\n") and hashlib.sha256(earlier).digest() == before.hash


def _of_facts(text: str) -> Iterator[_Entry]:
    for piece in entry_pieces(text):
        yield _Entry(piece, 0)


def _of_day(lines: Sequence[str], first: int, day: date) -> Iterator[_Entry]:
    for piece in pieces(lines, first):
        yield _Entry(piece, day.toordinal())


def _of_messages(rows: Iterable[sqlite3.Row]) -> list[_Entry]:
    """What people and models said. Results of tools are somebody else's words, and long."""
    return [
        _Entry(
            piece,
            datetime.fromisoformat(created_at).toordinal(),
            int(id_),
            str(run_id),
        )
        for id_, run_id, body, created_at in rows
        for piece in pieces(said(body))
    ]


def said(body: str) -> list[str]:
    """The lines of a stored message's text; none where it cannot be read."""
    try:
        blocks = decode(body).blocks
    except MessageFormatError:
        return []
    texts = [block.text for block in blocks if isinstance(block, TextBlock)]
    return "\n".join(texts).splitlines()


# Writing --------------------------------------------------------------------------------------------


def _storing(owner: Owner, changes: Sequence[_Change]) -> Callable[[sqlite3.Connection], None]:
    def op(connection: sqlite3.Connection) -> None:
        for change in changes:
            key = (owner.id, change.name)
            row = connection.execute(
                "SELECT size, mtime_ns, hash, lines FROM search_files WHERE owner = ? AND name = ?",
                key,
            ).fetchone()
            if (FileState(*row) if row else None) != change.before:
                continue  # somebody else has caught up meanwhile
            if not change.appended:
                connection.execute("DELETE FROM search_entries WHERE owner = ? AND name = ?", key)
            connection.execute("DELETE FROM search_files WHERE owner = ? AND name = ?", key)
            if change.after is not None:
                after = change.after
                connection.execute(
                    "INSERT INTO search_files VALUES (?, ?, ?, ?, ?, ?)",
                    (*key, after.size, after.mtime_ns, after.hash, after.lines),
                )
                _insert(connection, owner, change.name, change.entries)

    return op


def _storing_messages(
    owner: Owner, upto: int, newest: int, entries: Sequence[_Entry]
) -> Callable[[sqlite3.Connection], None]:
    def op(connection: sqlite3.Connection) -> None:
        moved = connection.execute(
            "UPDATE memory_scopes SET upto = ? WHERE id = ? AND upto = ?",
            (newest, owner.id, upto),
        ).rowcount
        if moved:
            _insert(connection, owner, None, entries)

    return op


def _insert(
    connection: sqlite3.Connection, owner: Owner, name: str | None, entries: Iterable[_Entry]
) -> None:
    for entry in entries:
        piece = entry.piece
        cursor = connection.execute(
            "INSERT INTO search_entries (owner, name, message_id, run_id, line, lines, day)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (owner.id, name, entry.message_id, entry.run_id, piece.line, piece.lines, entry.day),
        )
        connection.execute(
            "INSERT INTO search_words (rowid, owner, words) VALUES (?, ?, ?)",
            (cursor.lastrowid, owner.word, piece.words),
        )
