"""SQLite through aiosqlite: one writer with group commit, one reader, numbered migrations.

A write is `def op(connection) -> T`, carried out on the connection's thread. Operations that wait
together share a transaction and one trip to that thread, each in a savepoint of its own, so that one
that fails takes nothing else with it. Nobody else begins, commits or uses the writing connection: a
statement of another task would fall into the open transaction and vanish with its rollback. A queued
write is carried out even when the task that waits for it is cancelled; therefore every write can be
repeated.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import traceback
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, cast

import aiosqlite

from memory.errors import IndexDamaged, StoreDamaged, StoreUnavailable
from memory.storage.frozen import Frozen, frozen
from memory.storage.integrity import is_damage, is_index_damage, lost_content
from memory.storage.migrate import migrate, require_newest

log = logging.getLogger(__name__)

T = TypeVar("T")
Operation = Callable[[sqlite3.Connection], T]
_Execute = Callable[[Operation[T], sqlite3.Connection], Awaitable[T]]

BUSY_TIMEOUT_MS = 2_000  # Slack waits three seconds for an acknowledgement
MOST_IN_A_GROUP = 100  # operations in one transaction
MERGED_PAGES = (
    100  # of the search index in one step; measured on 100,000 entries: 30 ms, 60 at most
)
CHECKPOINT_AGAIN_S = (0.1, 0.5, 1.0)  # after each try to empty the write-ahead log


@dataclass(slots=True)
class _Write:
    operation: Operation[Any]
    done: asyncio.Future[Any]


class Database:
    """The database of one data folder. `open` it, `close` it; in between read and write."""

    def __init__(self, writer: _Connection, reader: _Connection, path: Path) -> None:
        self._path = path
        self._file = _identity(path)
        self._writer = writer
        self._reader = reader
        self.damaged = asyncio.Event()  # SQLite has met damage; from then on nothing is written
        self._built_anew = False  # the index of the search, once
        self._copy: TemporaryDirectory[str] | None = None  # the file's folder: it goes at the end
        self._queue: asyncio.Queue[_Write | None] = asyncio.Queue()
        self._task = asyncio.create_task(self._write_all(), name="database writer")

    @classmethod
    async def open(cls, path: Path) -> Database:
        """Open or create the file (mode 0600) and bring its schema up to date.

        Raises `StoreUnavailable` (locked, damaged, not writable) and `StoreTooNew`.
        """
        return await cls._opened(path, os.O_RDWR | os.O_CREAT, "rw", migrate)

    @classmethod
    async def open_beside(cls, path: Path, *, to_write: bool = False) -> Database:
        """Open a database that may belong to a running bot, maybe of another version: it is made by
        nobody here, and its schema stays. Without `to_write` nothing in the file changes, also not
        through its write-ahead log, and every `write` raises.

        Raises `StoreUnavailable` (also when it is not there), `StoreTooOld` and `StoreTooNew`.
        """
        if to_write:
            return await cls._opened(path, os.O_RDWR, "rw", require_newest)
        try:
            still = await asyncio.to_thread(frozen, path) or Frozen(path, "ro")
        except OSError as error:
            raise StoreUnavailable(f"{path}: the database cannot be read ({error})") from error
        try:
            opened = await cls._opened(still.path, os.O_RDONLY, still.mode, require_newest)
        except BaseException:
            if still.copy is not None:
                still.copy.cleanup()
            raise
        opened._copy = still.copy
        return opened

    @classmethod
    async def _opened(
        cls, path: Path, flags: int, mode: str, prepare: Callable[[sqlite3.Connection, Path], None]
    ) -> Database:
        fault = lost_content(path)
        if fault is not None:
            raise StoreUnavailable(f"{path} is damaged ({fault}): nothing is done with it")
        connections: list[_Connection] = []
        try:
            os.close(os.open(path, flags, 0o600))
            writer = await _connect(path, mode, connections)
            await writer.run(lambda connection: prepare(connection, path))
            reader = await _connect(path, mode, connections)
            await reader.execute("PRAGMA query_only = ON")
        except (sqlite3.Error, OSError) as error:
            await _close_all(connections)
            raise StoreUnavailable(
                f"{path}: the database cannot be opened ({error}); is another galata running on "
                f"this data folder, is the disk full, or is the folder read-only?"
            ) from error
        except BaseException:
            await _close_all(connections)
            raise
        return cls(writer, reader, path)

    async def write(self, operation: Operation[T]) -> T:
        """Carry out `operation` in a transaction; returns when it is committed.

        Raises what `operation` raises, and `StoreUnavailable` when the commit fails.
        """
        self._check_open()
        if self.damaged.is_set():  # the next start sets the file aside, with all that is in it
            raise StoreDamaged("the database is damaged: nothing more is written")
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait(_Write(operation, done))
        return await done

    def _check_open(self) -> None:
        if self._task.done():
            raise StoreUnavailable("the database is closed")

    async def read(self, sql: str, parameters: Iterable[Any] = ()) -> list[sqlite3.Row]:
        """All rows of one query, from the reading connection. Raises `StoreUnavailable`."""
        self._check_open()
        try:
            return list(await self._reader.execute_fetchall(sql, parameters))
        except sqlite3.Error as error:
            raise self._failed("reading", error) from error

    async def look(self, operation: Operation[T]) -> T:
        """What several queries find together, at one instant and in one trip. Raises what `operation`
        raises, and `StoreUnavailable`."""
        self._check_open()
        try:
            return await self._reader.run(lambda connection: _at_once(connection, operation))
        except sqlite3.Error as error:
            raise self._failed("reading", error) from error

    async def scrub(self) -> bool:
        """After something was erased: its words leave the search index, and its pages the write-ahead
        log (in the file itself they are overwritten as they are freed). In small steps, so that no
        other write waits long. False where a reader was in the way: the log is emptied later.

        Raises `StoreUnavailable`."""
        await self.write(lambda connection: merge(connection, everything=True))
        while await self.write(merge):
            pass
        for wait_s in CHECKPOINT_AGAIN_S:
            try:
                if await self._writer.run(_emptied):
                    return True
            except sqlite3.Error as error:
                raise self._failed("writing", error) from error
            await asyncio.sleep(wait_s)
        return False

    async def close(self) -> None:
        """Carry out what is queued, then close. Idempotent."""
        if not self._task.done():
            self._queue.put_nowait(None)
            await self._task
            await _close_all([self._reader, self._writer])
            if self._copy is not None:
                await asyncio.to_thread(self._copy.cleanup)

    async def _write_all(self) -> None:
        while True:
            group = [await self._queue.get()]
            while len(group) < MOST_IN_A_GROUP and not self._queue.empty():
                group.append(self._queue.get_nowait())
            writes = [write for write in group if write is not None]
            if writes:
                await self._commit(writes)
            if len(writes) < len(group):
                return

    async def _commit(self, writes: list[_Write]) -> None:
        operations = [write.operation for write in writes]
        results: list[Any]
        try:
            results = await self._writer.run(
                lambda connection: self._in_place(connection, operations)
            )
        except sqlite3.Error as error:
            results = [self._failed("writing", error)] * len(writes)
        for result in results:
            self._note(result)
        damage = next((one for one in results if isinstance(one, StoreDamaged)), None)
        if damage is not None:
            # What was committed beside it goes with the file: it is to come again.
            results = [damage] * len(writes)
        for write, result in zip(writes, results, strict=True):
            if write.done.done():
                continue  # whoever waited was cancelled; the write stands
            if isinstance(result, BaseException):
                write.done.set_exception(result)
            else:
                write.done.set_result(result)

    def _in_place(
        self, connection: sqlite3.Connection, operations: Sequence[Operation[Any]]
    ) -> list[Any]:
        """What is written into a file without a name is gone with the process."""
        if _identity(self._path) != self._file:
            gone = StoreDamaged(f"{self._path} was taken away or replaced while it was in use")
            return [gone] * len(operations)
        return _transaction(connection, operations)

    def _failed(self, what: str, error: sqlite3.Error) -> StoreUnavailable:
        failure = _failure(what, error)
        self._note(failure)
        return failure

    def _note(self, result: Any) -> None:
        """Damage has its consequences."""
        if isinstance(result, StoreDamaged):
            self.damaged.set()
        elif isinstance(result, IndexDamaged) and not self._built_anew:
            log.error("the index of the search is damaged, and is built anew")
            self._built_anew = True
            done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            done.cancel()  # nobody waits for it; a failure shows at the next search
            self._queue.put_nowait(_Write(_build_anew, done))


class _Connection(aiosqlite.Connection):
    """A connection that carries out whole functions on its thread: aiosqlite's own methods make one
    trip there for each statement, which took most of a write's time."""

    async def run(self, function: Operation[T]) -> T:
        """What `function` returns or raises."""
        # aiosqlite does not annotate it, and has no public way to carry out a function.
        execute = cast("_Execute[T]", self._execute)  # pyright: ignore[reportUnknownMemberType]
        return await execute(function, self._conn)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file that is; None: there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def merge(connection: sqlite3.Connection, *, everything: bool = False) -> bool:
    """One step towards a search index that holds nothing of what was deleted; whether there is more
    to do. `everything`: the first step, by which all parts of the index become one. For use inside
    a write."""
    before = connection.total_changes
    connection.execute(
        "INSERT INTO search_words (search_words, rank) VALUES ('merge', ?)",
        (-MERGED_PAGES if everything else MERGED_PAGES,),
    )
    return connection.total_changes - before >= 2  # as FTS5 tells it


def _build_anew(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO search_words (search_words) VALUES ('rebuild')")


def _emptied(connection: sqlite3.Connection) -> bool:
    """Whether the write-ahead log could be written into the file and emptied."""
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def _transaction(connection: sqlite3.Connection, operations: Sequence[Operation[Any]]) -> list[Any]:
    """Each operation's result, or what it raised. Raises `sqlite3.Error` when nothing is written."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        results = [_attempt(connection, operation) for operation in operations]
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    return results


def _at_once(connection: sqlite3.Connection, operation: Operation[T]) -> T:
    connection.execute("BEGIN")
    try:
        return operation(connection)
    except BaseException as error:
        # A cursor half read, kept alive by the trace, would keep the connection at this instant.
        traceback.clear_frames(error.__traceback__)
        raise
    finally:
        connection.execute("ROLLBACK")


def _attempt(connection: sqlite3.Connection, operation: Operation[Any]) -> Any:
    connection.execute("SAVEPOINT operation")
    try:
        result = operation(connection)
    except Exception as error:  # it goes to whoever waits for this operation
        if isinstance(error, sqlite3.Error) and not connection.in_transaction:
            raise  # on a full disk SQLite itself has rolled back everything
        connection.execute("ROLLBACK TO operation")
        result = _as_store_error(error)
    connection.execute("RELEASE operation")
    return result


def _as_store_error(error: Exception) -> Exception:
    if isinstance(error, sqlite3.OperationalError) or (
        isinstance(error, sqlite3.Error) and (is_damage(error) or is_index_damage(error))
    ):
        return _failure("writing", error)
    return error


def _failure(what: str, error: sqlite3.Error) -> StoreUnavailable:
    kind = StoreDamaged if is_damage(error) else StoreUnavailable
    failure = (IndexDamaged if is_index_damage(error) else kind)(f"{what} failed: {error}")
    failure.__cause__ = error
    return failure


async def _connect(path: Path, mode: str, opened: list[_Connection]) -> _Connection:
    def connector() -> sqlite3.Connection:
        uri = f"{path.absolute().as_uri()}?mode={mode}"
        timeout_s = BUSY_TIMEOUT_MS / 1000
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=timeout_s)
        connection.row_factory = sqlite3.Row
        return connection

    connection = _Connection(connector, iter_chunk_size=64)
    await connection
    opened.append(connection)
    if mode == "rw":
        await connection.execute("PRAGMA journal_mode = WAL")
        # What is deleted is overwritten, so that nobody finds it in the file's free pages.
        await connection.execute("PRAGMA secure_delete = ON")
    await connection.execute("PRAGMA synchronous = FULL")
    await connection.execute("PRAGMA foreign_keys = ON")
    await connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    return connection


async def _close_all(connections: Iterable[_Connection]) -> None:
    for connection in connections:
        await connection.close()
