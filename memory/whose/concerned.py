"""Whether a line of a memory is by a person or about them, so that they may have it forgotten.

By the platform's id wherever that is known. A name counts only as far as `memory.text.own_names` says
that it proves something: whoever takes another's name, or a word for a name, gains nothing."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Iterable
from datetime import date
from pathlib import Path

from memory.database import Database
from memory.markdown.lines import dated_lines, said
from memory.scopes import ChatScope, scope_path
from memory.text.own_names import own_names
from memory.together import chats_of
from memory.tombstones import hash_of

SOURCES = re.compile(r"\[([0-9, ]+)\]\s*$")


class Concerned:
    """For the lines of all chats."""

    def __init__(self, database: Database, folder: Path) -> None:
        """`folder`: that of all memory files."""
        self._database = database
        self._folder = folder

    async def are(self, chat: ChatScope, person: str, text: str, day: date, who: str) -> bool:
        """Whether the line `text`, written on that day, is by or about the person. `who`: the name of
        the one who is said to have said it; that counts only where no id tells. Raises `OSError`."""
        lines = await asyncio.to_thread(dated_lines, scope_path(self._folder, chat.scope))

        def look(connection: sqlite3.Connection) -> bool:
            found = SOURCES.search(text)
            ids = [int(number) for number in re.findall("[0-9]+", found[1] if found else "")]
            askers = askers_of(connection, chats_of(connection, chat), ids)
            if askers == {(chat.channel, person)}:
                return True
            at = _written(connection, chat, text)
            names = own_names(connection, chats_of(connection, chat), chat.channel, person, lines)
            if not askers and at is None and any(name.signs(who, day) for name in names):
                return True
            # Of what a night or a hand has written only its day is known.
            return any(name.stands_in(text, at or day.isoformat()) for name in names)

        return await self._database.look(look)


def _written(connection: sqlite3.Connection, chat: ChatScope, text: str) -> str | None:
    """When somebody had it written; None where nobody is known to."""
    (at,) = connection.execute(
        "SELECT MIN(at) FROM memory_changes WHERE scope = ? AND hash = ? AND kind <> 'forgotten'",
        (chat.scope, hash_of(said(text))),
    ).fetchone()
    return str(at) if at is not None else None


def askers_of(
    connection: sqlite3.Connection, chats: Iterable[ChatScope], ids: Iterable[int]
) -> set[tuple[str, str]]:
    """Whose questions the messages are, or answer, that a note of a day rests on, as far as they are
    stored: channels and ids."""
    numbers = list(ids)
    return {
        (each.channel, str(row[0]))
        for each in chats
        for id_ in numbers
        for row in connection.execute(
            "SELECT i.person FROM messages m JOIN sessions s ON s.id = m.session_id"
            " JOIN inbox i ON i.run_id = m.run_id"
            " WHERE m.id = ? AND s.channel = ? AND s.account = ? AND s.chat = ?",
            (id_, each.channel, each.account, each.chat),
        )
    }
