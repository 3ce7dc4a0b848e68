"""What was stored long ago is deleted, a few rows at a time, so that no other write waits for it.

Kept whatever its age: what is open (a message without an answer, an answer that was not delivered);
the context of a conversation that was used within the time, since the next question needs it (what
leaves the context goes with the next night); the audit table; who owns the bot. The keys of
messages stay for `KEYS_FOR` at least, without a text: a platform may deliver one again.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from agent.messages import (
    Block,
    ImageBlock,
    Message,
    MessageFormatError,
    TextBlock,
    ToolResultBlock,
    decode,
    encode,
)
from memory.access.pairings import REFUSED_FOR
from memory.chats.erasing import OPEN_FOR, forget_marks
from memory.clock import stamp
from memory.database import Database

KEYS_FOR = timedelta(days=30)  # Telegram keeps updates for a day; Slack's history goes back further
MONTH = timedelta(days=32)  # the month's limit of cost needs all calls of it
ROWS_AT_ONCE = 200  # looked at in one write; measured on 100,000 messages: 5 ms, 20 at most
BODIES_AT_ONCE = 50  # read in one query: pictures can make them large, and others read in between
PICTURES_AT_ONCE = 4  # messages rewritten in one write
PICTURE_GONE = "[A picture was here; it is not kept any longer.]"


@dataclass(frozen=True, slots=True)
class Keep:
    """How long, and how much at most of what is newest. Sizes are in bytes as stored."""

    messages: timedelta
    most_messages: int
    usage: timedelta
    most_usage: int
    pictures: timedelta
    most_picture_bytes: int


@dataclass(frozen=True, slots=True)
class _Sweep:
    """Rows of `table` that are `old`, and that nothing needs (`free`). With `in_time` the keys are in
    the order of time, so that the first young rows end it."""

    table: str
    key: str
    old: str
    free: str = "TRUE"
    in_time: bool = False
    action: str = "DELETE FROM {table}"
    counted: str = ""


# Whether a conversation needs a message: it stands in the context, and the conversation was used.
_IN_USE = (
    "(messages.id >= COALESCE((SELECT start_id FROM boundaries b"
    " WHERE b.session_id = messages.session_id ORDER BY b.id DESC LIMIT 1), 0)"
    " AND (SELECT n.created_at FROM messages n WHERE n.session_id = messages.session_id"
    " ORDER BY n.id DESC LIMIT 1) >= :{cutoff})"
)
_OPEN_RUN = (
    "(EXISTS (SELECT 1 FROM inbox i WHERE i.run_id = messages.run_id AND i.state = 'open')"
    " OR EXISTS (SELECT 1 FROM runs r WHERE r.run_id = messages.run_id AND r.state <> 'settled'))"
)
_NEWEST = "(SELECT MAX(n.id) FROM boundaries n WHERE n.session_id = boundaries.session_id{})"
_NO_MESSAGES = "NOT EXISTS (SELECT 1 FROM messages m WHERE m.session_id = boundaries.session_id)"
_NEWEST_BEGINNING = _NEWEST.format(" AND n.kind = 'new'")

_SWEEPS = (
    _Sweep(
        "outbox",
        "id",
        "created_at < :messages",
        "state = 'done'",
        in_time=True,
        counted="answers",
    ),
    _Sweep(
        "messages",
        "id",
        "(created_at < :messages OR id <= :message_cap)",
        f"NOT {_OPEN_RUN} AND NOT {_IN_USE.format(cutoff='messages')}",
        in_time=True,
        counted="messages",
    ),
    _Sweep(
        "boundaries",
        "id",
        "created_at < :messages",
        f"({_NO_MESSAGES} OR (id < {_NEWEST.format('')} AND id IS NOT {_NEWEST_BEGINNING}))",
        in_time=True,
    ),
    _Sweep(
        "left_out",
        "run_id",
        "at < :messages",
        "NOT EXISTS (SELECT 1 FROM messages m WHERE m.run_id = left_out.run_id)",
    ),
    _Sweep(
        "refused_images",
        "id",
        "at < :messages",
        "NOT EXISTS (SELECT 1 FROM messages m WHERE m.run_id = refused_images.run_id)",
    ),
    _Sweep(
        "inbox",
        "id",
        "(received_at < :messages OR id <= :inbox_cap)",
        "state = 'done' AND body IS NOT NULL",
        in_time=True,
        action="UPDATE {table} SET body = NULL, stopped_by = NULL",
    ),
    _Sweep(
        "inbox",
        "id",
        "received_at < :keys",
        "state = 'done' AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.key = 'act:' || inbox.id)",
        in_time=True,
    ),
    _Sweep("memory_snapshots", "id", "made_at < :messages"),
    _Sweep("runs", "run_id", "COALESCE(settled_at, began_at) < :messages", "state = 'settled'"),
    _Sweep("errors", "id", "at < :messages"),
    _Sweep("notices", "key", "told_at < :messages"),
    _Sweep("usage_days", "began_at", "began_at < :usage", in_time=True),
    _Sweep("owner_links", "code_hash", "expires_at < :messages"),
    _Sweep("pairings", "id", "asked_at < :asked"),
)


class Retention:
    """Deletes by `keep`; what was deleted is counted by name."""

    def __init__(self, database: Database, keep: Keep) -> None:
        self._database = database
        self._keep = keep

    async def clean(self, now: datetime) -> Counter[str]:
        """Delete what is too old or too much at `now`. May be interrupted and repeated."""
        deleted: Counter[str] = Counter()
        cutoffs = await self._cutoffs(now)
        for sweep in _SWEEPS:
            deleted[sweep.counted] += await self._sweep(sweep, cutoffs)
        deleted["calls"] += await self._sweep_usage(cutoffs["usage"])
        await self._database.write(lambda connection: _forget_jobs(connection, cutoffs))
        await self._forget_marks(now)
        deleted["pictures"] += await self._drop_pictures(cutoffs["pictures"])
        del deleted[""]
        return +deleted

    async def _forget_marks(self, now: datetime) -> None:
        """Looked for first: a look at all calls holds up no writer."""
        over = stamp(now - OPEN_FOR)
        found = await self._database.read(
            "SELECT 1 FROM usage WHERE person GLOB 'erased:*' AND created_at < ? UNION ALL"
            " SELECT 1 FROM usage_days WHERE person GLOB 'erased:*' AND began_at < ? LIMIT 1",
            (over, over),
        )
        if found:
            await self._database.write(lambda connection: forget_marks(connection, now))

    async def _cutoffs(self, now: datetime) -> dict[str, str | int]:
        keep = self._keep
        messages = now - keep.messages
        usage = await self._database.read(
            "SELECT created_at FROM usage ORDER BY created_at DESC LIMIT 1 OFFSET ?",
            (keep.most_usage,),
        )
        over = stamp(now - keep.usage)
        if usage:  # the newest call beyond the cap; it goes as well
            over = max(over, min(str(usage[0][0]) + "~", stamp(now - MONTH)))
        return {
            "messages": stamp(messages),
            "message_cap": await self._cap("messages"),
            "inbox_cap": await self._cap("inbox"),
            "keys": stamp(min(messages, now - KEYS_FOR)),
            "usage": over,
            "pictures": stamp(now - keep.pictures),
            "asked": stamp(now - REFUSED_FOR),
        }

    async def _cap(self, table: str) -> int:
        """The newest id that is beyond the most messages to keep, or 0."""
        rows = await self._database.read(f"SELECT COUNT(*) FROM {table}")  # noqa: S608 - our names
        beyond = int(rows[0][0]) - self._keep.most_messages
        if beyond <= 0:
            return 0
        rows = await self._database.read(
            f"SELECT id FROM {table} ORDER BY id LIMIT 1 OFFSET ?",  # noqa: S608
            (beyond - 1,),
        )
        return int(rows[0][0])

    async def _sweep(self, sweep: _Sweep, cutoffs: dict[str, str | int]) -> int:
        after: object = 0 if sweep.key == "id" and sweep.table != "errors" else ""
        total = 0
        while True:
            step = _step(sweep, cutoffs, after)
            after, count = await self._database.write(step)
            total += count
            if after is None:
                return total

    async def _sweep_usage(self, cutoff: str | int) -> int:
        def op(connection: sqlite3.Connection) -> int:
            return connection.execute(
                "DELETE FROM usage WHERE (run_id, number) IN (SELECT run_id, number FROM usage"
                " WHERE created_at < ? ORDER BY created_at LIMIT ?)",
                (cutoff, ROWS_AT_ONCE),
            ).rowcount

        total = 0
        while count := await self._database.write(op):
            total += count
        return total

    # Pictures -------------------------------------------------------------------------------------

    async def _drop_pictures(self, cutoff: str | int) -> int:
        """Replace pictures by a word, the newest `most_picture_bytes` of those within the time
        excepted; how many messages had some. What a conversation in use shows the model stays."""
        kept, dropped, before = 0, 0, None
        while True:
            rows = await self._database.read(
                "SELECT id, created_at,"
                ' IIF(instr(body, \'"type":"image"\'), LENGTH(body), 0) FROM messages'
                " WHERE id < COALESCE(?, 1 << 62) ORDER BY id DESC LIMIT ?",
                (before, BODIES_AT_ONCE),
            )
            if not rows:
                return dropped
            before = int(rows[-1][0])
            old: list[int] = []
            for id_, created_at, size in rows:
                kept += size
                if size and (created_at < str(cutoff) or kept > self._keep.most_picture_bytes):
                    old.append(int(id_))
            for start in range(0, len(old), PICTURES_AT_ONCE):
                some = old[start : start + PICTURES_AT_ONCE]
                dropped += await self._database.write(_drop(some, str(cutoff)))


def _step(
    sweep: _Sweep, cutoffs: dict[str, str | int], after: object
) -> Callable[[sqlite3.Connection], tuple[Any, int]]:
    """One write: the key that it came to (None at the end), and how many rows it changed."""
    table, key = sweep.table, sweep.key
    window = f"{key} > :after AND {key} <= :upto"
    action = sweep.action.format(table=table)

    def op(connection: sqlite3.Connection) -> tuple[Any, int]:
        (upto,) = connection.execute(
            f"SELECT MAX({key}) FROM (SELECT {key} FROM {table} WHERE {key} > ?"  # noqa: S608
            f" ORDER BY {key} LIMIT ?)",
            (after, ROWS_AT_ONCE),
        ).fetchone()
        if upto is None:
            return None, 0
        values = {**cutoffs, "after": after, "upto": upto}
        if sweep.in_time:
            (some,) = connection.execute(
                f"SELECT EXISTS (SELECT 1 FROM {table} WHERE {window} AND {sweep.old})",  # noqa: S608
                values,
            ).fetchone()
            if not some:
                return None, 0
        cursor = connection.execute(
            f"{action} WHERE {window} AND {sweep.old} AND {sweep.free}", values
        )
        return upto, cursor.rowcount

    return op


def _forget_jobs(connection: sqlite3.Connection, cutoffs: dict[str, str | int]) -> None:
    """Jobs that came once and are over."""
    connection.execute(
        "DELETE FROM jobs WHERE due_at IS NULL AND last_at < ?", (cutoffs["messages"],)
    )


def _lighter(body: str) -> str | None:
    """The message without its pictures; None where it cannot be read."""
    try:
        return encode(_without_pictures(decode(body)))
    except MessageFormatError:
        return None


def _drop(ids: list[int], cutoff: str) -> Callable[[sqlite3.Connection], int]:
    marks = ", ".join("?" for _ in ids)
    in_use = _IN_USE.replace(":{cutoff}", "?")

    def op(connection: sqlite3.Connection) -> int:
        rows = connection.execute(
            f"SELECT id, body FROM messages WHERE id IN ({marks}) AND NOT {in_use}"  # noqa: S608
            f" AND NOT {_OPEN_RUN}",
            (*ids, cutoff),
        ).fetchall()
        changed = [(lighter, id_) for id_, body in rows if (lighter := _lighter(body)) is not None]
        connection.executemany("UPDATE messages SET body = ? WHERE id = ?", changed)
        return len(changed)

    return op


def _without_pictures(message: Message) -> Message:
    return replace(message, blocks=tuple(map(_without_picture, message.blocks)))


def _without_picture(block: Block) -> Block:
    match block:
        case ImageBlock():
            return TextBlock(PICTURE_GONE)
        case ToolResultBlock():
            content = tuple(
                TextBlock(PICTURE_GONE) if isinstance(part, ImageBlock) else part
                for part in block.content
            )
            return replace(block, content=content)
        case _:
            return block
