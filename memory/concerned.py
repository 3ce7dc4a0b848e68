"""Whether a line of a memory is by a person or about them, so that they may have it forgotten.

By the platform's id wherever that is known. A name counts only when nobody else in the chat has
used it, and when the person had it before the line was written: whoever takes another's name gains
nothing. Nor does who takes a word for a name: it must stand as a name does."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from datetime import date

from memory.database import Database
from memory.lines import said
from memory.scopes import ChatScope
from memory.telling import is_ordinary
from memory.together import chats_of
from memory.tombstones import hash_of
from memory.words import normalised

SOURCES = re.compile(r"\[([0-9, ]+)\]\s*$")
_SHORTEST = 2  # letters of a name
_NO_NAME_AFTER = re.compile(r"\b(?:the|an?|on|at|in|this|next|last|every|each|no|my|our)\s+$", re.I)


class Concerned:
    """For the lines of all chats."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def are(self, chat: ChatScope, person: str, text: str, day: date) -> bool:
        """Whether the line `text`, written on that day, is by or about the person."""

        def look(connection: sqlite3.Connection) -> bool:
            return _rests_on(connection, chat, person, text) or _names(
                connection, chat, person, text, _written(connection, chat, text, day)
            )

        return await self._database.look(look)


def stands_in(name: str, text: str) -> bool:
    """As a word with a capital that follows no article and no preposition of place or time; in scripts
    without spaces between words wherever it stands. One letter tells nothing, nor does a word of every
    text."""
    if len(name) < _SHORTEST or name[0].islower() or is_ordinary(name):
        return False
    if not name.isascii():
        return name in text
    found = re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text)
    return any(_NO_NAME_AFTER.search(text[: each.start()]) is None for each in found)


def _written(connection: sqlite3.Connection, chat: ChatScope, text: str, day: date) -> str:
    """When; of what a night or a hand has written only that it was not before its day."""
    (at,) = connection.execute(
        "SELECT MIN(at) FROM memory_changes WHERE scope = ? AND hash = ? AND kind <> 'forgotten'",
        (chat.scope, hash_of(said(text))),
    ).fetchone()
    return str(at) if at is not None else day.isoformat()


def _rests_on(connection: sqlite3.Connection, chat: ChatScope, person: str, text: str) -> bool:
    """Whether all messages that a note of a day rests on, as far as they are stored, are the person's
    own questions and the answers to them."""
    found = SOURCES.search(text)
    ids = [int(number) for number in re.findall("[0-9]+", found[1] if found else "")]
    askers = [
        (each.channel, str(row[0]))
        for each in chats_of(connection, chat)
        for id_ in ids
        for row in connection.execute(
            "SELECT i.person FROM messages m JOIN sessions s ON s.id = m.session_id"
            " JOIN inbox i ON i.run_id = m.run_id"
            " WHERE m.id = ? AND s.channel = ? AND s.account = ? AND s.chat = ?",
            (id_, each.channel, each.account, each.chat),
        )
    ]
    return set(askers) == {(chat.channel, person)}


def _names(
    connection: sqlite3.Connection, chat: ChatScope, person: str, text: str, before: str
) -> bool:
    """Whether a name that is theirs alone, and was before that time, stands in it."""
    mine = names_alone(connection, chats_of(connection, chat), chat.channel, person)
    return any(since < before and stands_in(name, text) for name, since in mine.items())


def names_alone(
    connection: sqlite3.Connection, chats: Iterable[ChatScope], channel: str, person: str
) -> dict[str, str]:
    """The names that the person, and nobody else, has used in these chats, and since when."""
    mine, others = dict[str, str](), set[str]()
    for each in chats:
        rows = connection.execute(
            "SELECT json_extract(body, '$.sender.name') AS name, person, MIN(received_at) FROM inbox"
            " WHERE channel = ? AND account = ? AND chat = ? AND json_valid(body) GROUP BY 1, 2",
            (each.channel, each.account, each.chat),
        )
        for name, who, since in rows:
            if (each.channel, who) != (channel, person):
                others.add(normalised(str(name)))
            elif name:
                mine[str(name)] = min(str(since), mine.get(str(name), str(since)))
    return {name: since for name, since in mine.items() if normalised(name) not in others}
