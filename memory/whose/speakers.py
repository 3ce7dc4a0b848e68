"""Whether one person has said a note of a day and an entry of `MEMORY.md`: by the platform's ids, since
everybody picks their own name."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from memory.database import Database
from memory.markdown.facts import Fact
from memory.markdown.lines import said
from memory.notes.flush import Note
from memory.scopes import PERSON, ChatScope
from memory.text.own_names import OwnName, own_names
from memory.together import chats_of
from memory.tombstones import hash_of
from memory.whose.concerned import askers_of

Person = tuple[str, str]
"""Channel and id."""


class Speakers:
    """Of all memories."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def strangers(
        self, chat: ChatScope, entries: Sequence[Fact], notes: Mapping[int, Note]
    ) -> frozenset[tuple[int, int]]:
        """Numbers of entries, each with the key of a note under a name of the entry, of which it is not
        known that one person has said both. Nobody is a stranger in a chat of one, and a note without
        messages is by the hand of whoever has the files."""
        if chat.scope.startswith(PERSON):
            return frozenset()

        def look(connection: sqlite3.Connection) -> frozenset[tuple[int, int]]:
            known = _Known(connection, chat)
            return frozenset(
                (entry.number, key)
                for key, note in notes.items()
                if note.messages
                for entry in entries
                if _names(entry.who) & _names(note.who) and not known.have_said(note, entry)
            )

        return await self._database.look(look)


class _Known:
    """What is stored of who has said what in a memory."""

    def __init__(self, connection: sqlite3.Connection, chat: ChatScope) -> None:
        self._connection = connection
        self._chat = chat
        self._chats = chats_of(connection, chat)
        self._askers: dict[tuple[int, ...], set[Person]] = {}
        self._own: dict[Person, tuple[OwnName, ...]] = {}

    def have_said(self, note: Note, entry: Fact) -> bool:
        """Whether all whose note it is have said the entry."""
        if note.messages not in self._askers:
            self._askers[note.messages] = askers_of(self._connection, self._chats, note.messages)
        askers = self._askers[note.messages]
        authors = self._authors(entry)
        if authors:
            return bool(askers) and {person for _, person in askers} <= authors
        return bool(askers) and all(self._signs(person, entry) for person in askers)

    def _authors(self, entry: Fact) -> set[str]:
        """Those who have had it written; nobody where a night or a hand has."""
        rows = self._connection.execute(
            "SELECT DISTINCT person FROM memory_changes WHERE scope = ? AND hash = ?"
            " AND kind <> 'forgotten'",
            (self._chat.scope, hash_of(said(entry.text))),
        )
        return {str(row[0]) for row in rows}

    def _signs(self, person: Person, entry: Fact) -> bool:
        if person not in self._own:
            self._own[person] = own_names(self._connection, self._chats, *person, ())
        names = self._own[person]
        return any(name.signs(who, entry.day) for name in names for who in _names(entry.who))


def _names(who: str) -> set[str]:
    return {name.strip() for name in who.split(",")}
