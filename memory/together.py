"""The chats that a memory belongs to: one, or the groups that share it."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace

from memory.scopes import SHARED, ChatScope


def chats_of(connection: sqlite3.Connection, chat: ChatScope) -> list[ChatScope]:
    """The scope once for each of its chats that has a conversation, `chat` itself among them (where it
    names one)."""
    if chat.scope != SHARED:
        return [chat]
    rows = connection.execute(
        "SELECT DISTINCT channel, account, chat FROM sessions WHERE (channel, chat) IN"
        " (SELECT value ->> 0, value ->> 1 FROM json_each(?)) ORDER BY channel, account, chat",
        (json.dumps(sorted(chat.together)),),
    )
    found = [replace(chat, channel=row[0], account=row[1], chat=row[2]) for row in rows]
    return found if chat in found or not chat.chat else [chat, *found]


def drop_shared_index(
    connection: sqlite3.Connection, but: frozenset[tuple[str, str]] = frozenset()
) -> None:
    """Nothing of the shared memory is in the index, besides for the chats `but`: what chats have that
    share no more is read by nobody, and goes. For use inside a write."""
    connection.execute(
        "DELETE FROM memory_scopes WHERE scope GLOB ? AND (channel, chat) NOT IN"
        " (SELECT value ->> 0, value ->> 1 FROM json_each(?))",
        (f"{SHARED}:*", json.dumps(sorted(but))),
    )
