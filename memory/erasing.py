"""Everything that is stored of one chat goes. What it used stays as totals without a person."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

from memory.audit import record
from memory.moving import NAMES, drop_index, names_of

OF_SESSION: Final = (
    "outbox",
    "memory_snapshots",
    "flushed",
    "runs",
    "messages",
    "boundaries",
    "left_out",
    "speakers",
    "inbox",
)
"""Tables whose rows of a session are deleted; a test compares them with the schema."""

_TOTALS = (
    "INSERT INTO usage (run_id, number, session_id, person, model, purpose, outcome, input_tokens,"
    " output_tokens, cache_read_tokens, cache_write_tokens, estimated, cost_microusd, created_at)"
    " SELECT 'erased:' || lower(hex(randomblob(8))), 1, NULL, '', model, purpose,"
    " outcome, SUM(input_tokens), SUM(output_tokens), SUM(cache_read_tokens),"
    " SUM(cache_write_tokens), estimated, SUM(cost_microusd), MAX(created_at)"
    " FROM usage WHERE session_id = ?"
    " GROUP BY model, purpose, outcome, estimated, substr(created_at, 1, 10)"
)


def erase(
    connection: sqlite3.Connection, place: tuple[str, str, str], names: Iterable[str]
) -> None:
    """Erase the chat that has or had these ids; for use inside a write. Repeats are harmless."""
    account = place[:2]
    ids = sorted(names)
    sessions = [id_ for name in ids for id_ in _sessions(connection, account, name)]
    for session in sessions:
        connection.execute(_TOTALS, (session,))
        connection.execute("DELETE FROM usage WHERE session_id = ?", (session,))
        for table in OF_SESSION:
            connection.execute(
                f"DELETE FROM {table} WHERE session_id = ?",  # noqa: S608 - our names
                (session,),
            )
        connection.execute("DELETE FROM sessions WHERE id = ?", (session,))
    for name in ids:
        _rest(connection, (*account, name))
    record(connection, "galata", "chat.erased", ":".join(place), f"{len(sessions)} conversations")


def _sessions(connection: sqlite3.Connection, account: tuple[str, str], chat: str) -> Sequence[int]:
    rows = connection.execute(
        "SELECT id FROM sessions WHERE channel = ? AND account = ? AND chat = ?", (*account, chat)
    )
    return [int(row[0]) for row in rows]


def _rest(connection: sqlite3.Connection, place: tuple[str, str, str]) -> None:
    """What names the chat itself. A move stays known: the configuration may name the old id."""
    where = "channel = ? AND account = ? AND chat = ?"
    connection.execute(f"DELETE FROM inbox WHERE {where}", place)  # noqa: S608 - no value in it
    connection.execute(f"DELETE FROM gone_chats WHERE {where}", place)  # noqa: S608
    connection.execute(f"DELETE FROM usage_days WHERE {where}", place)  # noqa: S608
    connection.execute(f"DELETE FROM dialogues WHERE {where}", place)  # noqa: S608
    connection.execute("DELETE FROM policies WHERE channel = ? AND chat = ?", (place[0], place[2]))
    drop_index(connection, place)
    for table, column in NAMES:
        for value in names_of(connection, table, column, place):
            connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (value,))  # noqa: S608
