"""Answers and commands that say what was forgotten: the answers are not sent again, and both are found
for whoever wants them deleted."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import cast

from memory.scopes import ChatScope
from memory.tombstones import Forgotten


def replies_that_say(
    connection: sqlite3.Connection, chat: ChatScope, says: Callable[[str], bool]
) -> list[int]:
    """The chat's replies that are dealt with and of which a part has a line that `says` it."""
    rows = connection.execute(
        "SELECT p.reply_id, p.body FROM outbox_parts p JOIN outbox o ON o.id = p.reply_id"
        " JOIN sessions s ON s.id = o.session_id WHERE o.state = 'done'"
        " AND s.channel = ? AND s.account = ? AND s.chat = ?",
        (chat.channel, chat.account, chat.chat),
    )
    found = (int(row[0]) for row in rows if _says(str(row[1]), says))
    return list(dict.fromkeys(found))


def withdraw(
    connection: sqlite3.Connection, replies: Iterable[int], run_ids: Iterable[str]
) -> None:
    """What these replies, and those of these runs, said is stored no more once they are dealt with:
    nothing of it is sent again. For use inside a write."""
    connection.executemany(
        "DELETE FROM outbox_parts WHERE reply_id = ?", [(reply,) for reply in replies]
    )
    connection.executemany(
        "DELETE FROM outbox_parts WHERE reply_id IN"
        " (SELECT id FROM outbox WHERE key = ? AND state = 'done')",
        [(run_id,) for run_id in run_ids],
    )


def commands_that_say(
    connection: sqlite3.Connection, chat: ChatScope, forgotten: Forgotten, person: str | None
) -> list[int]:
    """The chat's commands (rows of the inbox) that say it; with `person` only theirs."""
    rows = connection.execute(
        "SELECT id, body FROM inbox WHERE channel = ? AND account = ? AND chat = ?"
        " AND kind = 'act' AND state = 'done' AND body IS NOT NULL AND person = COALESCE(?, person)",
        (chat.channel, chat.account, chat.chat, person),
    )
    return [int(row[0]) for row in rows if _says(str(row[1]), forgotten.covers)]


def _says(body: str, says: Callable[[str], bool]) -> bool:
    try:
        document = json.loads(body)
    except ValueError:  # a channel of plain text
        document = body
    return any(says(line) for text in _texts(document) for line in text.split("\n"))


def _texts(document: object) -> Iterator[str]:
    """All texts in a document, whatever its shape: each channel has its own."""
    match document:
        case str():
            yield document
        case dict():
            yield from _texts(list(cast("dict[str, object]", document).values()))
        case list():
            for value in cast("list[object]", document):
                yield from _texts(value)
        case _:
            pass
