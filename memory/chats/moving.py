"""A chat gets another id: what names the old one follows.

Rows that refer to a session follow with it. `CHAT_COLUMNS` lists the columns that name a chat
themselves, `OF_SESSION` what is joined when both ids have a session already; a test compares both
with the schema, so that a new table has to join them or say why not.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from typing import Final

from memory.costs.days import carry_days

CHAT_COLUMNS: Final = frozenset(
    {
        ("sessions", "key"),
        ("sessions", "chat"),
        ("inbox", "chat"),
        ("inbox", "event"),
        ("inbox", "body"),
        ("notices", "key"),
        ("jobs", "scope"),
        ("moved_chats", "chat"),
        ("gone_chats", "chat"),
        ("unread_places", "chat"),
        ("usage_days", "chat"),
        ("policies", "chat"),
        ("dialogues", "chat"),
        ("known_groups", "chat"),
        ("memory_scopes", "scope"),
        ("memory_scopes", "chat"),
        ("tombstones", "scope"),
        ("memory_changes", "scope"),
        ("read_days", "scope"),
        ("nights", "scope"),
        ("memory_off", "scope"),
    }
)
"""The columns that `carry` rewrites."""

OF_SESSION: Final = (
    "inbox",
    "messages",
    "boundaries",
    "usage",
    "left_out",
    "refused_images",
    "runs",
    "outbox",
    "memory_snapshots",
    "flushed",
)
"""Tables whose column `session_id` is simply set; `speakers` need numbers of their own."""

NAMES: Final = (
    ("notices", "key"),
    ("jobs", "scope"),
    ("tombstones", "scope"),
    ("memory_changes", "scope"),
    ("read_days", "scope"),
    ("nights", "scope"),
    ("memory_off", "scope"),
)
"""Columns with names such as `kind:channel:account:chat:…` or `channel:account:chat:…`."""

Account = tuple[str, str]  # channel, account


def former_event(old: str, event: str) -> str:
    """The name of an event of the chat `old` in the chat that it became, where the same number may
    name another one. It stays at a second move."""
    return event if event.startswith("moved:") else f"moved:{old}:{event}"


def carry(
    connection: sqlite3.Connection,
    account: Account,
    old: str,
    new: str,
    rekey: Callable[[str], str],
) -> None:
    """Let every row follow from `old` to `new`; for use inside a write. Repeats are harmless."""
    _sessions(connection, account, old, new, rekey)
    _inbox(connection, account, old, new)
    for table, column in NAMES:
        for name in names_of(connection, table, column, (*account, old)):
            renamed = name.replace(":".join((*account, old)), ":".join((*account, new)), 1)
            connection.execute(
                f"UPDATE OR REPLACE {table} SET {column} = ? WHERE {column} = ?",  # noqa: S608
                (renamed, name),
            )
    carry_days(connection, account, old, new)
    if is_indexed(connection, (*account, old)):  # then both: what is joined is indexed anew
        for chat in (old, new):
            drop_index(connection, (*account, chat))
    # A chat that has got limits under its new id already keeps those.
    connection.execute(
        "UPDATE OR IGNORE policies SET chat = ? WHERE channel = ? AND chat = ?",
        (new, account[0], old),
    )
    connection.execute("DELETE FROM policies WHERE channel = ? AND chat = ?", (account[0], old))
    # The buttons stand under messages of the old chat.
    connection.execute(
        "DELETE FROM dialogues WHERE channel = ? AND account = ? AND chat = ?", (*account, old)
    )
    # The platform tells of the move after the bot is in the new chat: what was decided counts.
    connection.execute(
        "UPDATE OR REPLACE known_groups SET chat = ?"
        " WHERE channel = ? AND account = ? AND chat = ?",
        (new, *account, old),
    )
    # The old id is left behind by the platform: that says nothing about the new one.
    connection.execute(
        "DELETE FROM gone_chats WHERE channel = ? AND account = ? AND chat = ?", (*account, old)
    )
    connection.execute(
        "UPDATE OR IGNORE unread_places SET chat = ?"
        " WHERE channel = ? AND account = ? AND chat = ?",
        (new, *account, old),
    )
    connection.execute(
        "DELETE FROM unread_places WHERE channel = ? AND account = ? AND chat = ?", (*account, old)
    )


def names_of(
    connection: sqlite3.Connection, table: str, column: str, place: tuple[str, str, str]
) -> list[str]:
    """The values of one of `NAMES` that name this chat."""
    found = connection.execute(
        f"SELECT DISTINCT {column} FROM {table} WHERE instr({column}, ?)",  # noqa: S608
        (":".join(place),),
    )
    whole = re.compile(rf"(?:[^:]*:)?{re.escape(':'.join(place))}(?::|$)")
    return [str(row[0]) for row in found if whole.match(str(row[0]))]


def is_indexed(connection: sqlite3.Connection, place: tuple[str, str, str]) -> bool:
    """Whether there is an index over the chat's memory and conversations."""
    rows = connection.execute(
        "SELECT 1 FROM memory_scopes WHERE channel = ? AND account = ? AND chat = ?", place
    )
    return rows.fetchone() is not None


def drop_index(connection: sqlite3.Connection, place: tuple[str, str, str]) -> None:
    """It goes, and is made anew by the next search. For use inside a write."""
    connection.execute(
        "DELETE FROM memory_scopes WHERE channel = ? AND account = ? AND chat = ?", place
    )


def _sessions(
    connection: sqlite3.Connection,
    account: Account,
    old: str,
    new: str,
    rekey: Callable[[str], str],
) -> None:
    rows = connection.execute(
        "SELECT id, key FROM sessions WHERE channel = ? AND account = ? AND chat = ?",
        (*account, old),
    ).fetchall()
    for id_, key in rows:
        new_key = rekey(str(key))
        # Messages are known by number in the old chat only: another one has that number here.
        connection.execute(
            "UPDATE runs SET preview_id = NULL WHERE session_id = ? AND state <> 'settled'", (id_,)
        )
        connection.execute(
            "UPDATE outbox SET preview_id = NULL, reply_to = NULL"
            " WHERE session_id = ? AND state = 'open'",
            (id_,),
        )
        there = connection.execute("SELECT id FROM sessions WHERE key = ?", (new_key,)).fetchone()
        if there is not None:
            _join(connection, int(there[0]), int(id_))
        connection.execute(
            "UPDATE sessions SET key = ?, chat = ? WHERE id = ?", (new_key, new, id_)
        )


def _join(connection: sqlite3.Connection, newer: int, older: int) -> None:
    """The session that has begun under the new id becomes part of the older one."""
    for table in OF_SESSION:
        connection.execute(
            f"UPDATE {table} SET session_id = ? WHERE session_id = ?",  # noqa: S608 - our names
            (older, newer),
        )
    connection.execute(
        "INSERT INTO speakers (session_id, person, number) SELECT :older, person,"
        " (SELECT COALESCE(MAX(number), 0) FROM speakers WHERE session_id = :older)"
        " + ROW_NUMBER() OVER (ORDER BY number)"
        " FROM speakers WHERE session_id = :newer AND person NOT IN"
        " (SELECT person FROM speakers WHERE session_id = :older)",
        {"older": older, "newer": newer},
    )
    connection.execute("DELETE FROM speakers WHERE session_id = ?", (newer,))
    connection.execute("DELETE FROM sessions WHERE id = ?", (newer,))


def _inbox(connection: sqlite3.Connection, account: Account, old: str, new: str) -> None:
    """Events get names that no event of the new chat has. Their messages cannot be replied to: in
    the new chat another message has that number."""
    place = (*account, old)
    rows = connection.execute(
        "SELECT id, event FROM inbox WHERE channel = ? AND account = ? AND chat = ?", place
    ).fetchall()
    for id_, event in rows:
        renamed = former_event(old, str(event))
        # A redelivery during the move has come under the new name: the older row is the message.
        connection.execute(
            "DELETE FROM inbox WHERE channel = ? AND account = ? AND chat = ? AND event = ?",
            (*account, new, renamed),
        )
        connection.execute(
            "UPDATE inbox SET chat = :new, event = :event, body ="
            " IIF(json_valid(body), json_set(body, '$.address.chat', :new, '$.event', :event,"
            " '$.message_id', ''), body) WHERE id = :id",
            {"new": new, "event": renamed, "id": id_},
        )
