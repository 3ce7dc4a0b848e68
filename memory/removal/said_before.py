"""The messages and commands that said what was forgotten. They have left search and every model's
context when it was forgotten; whether they are deleted too is for people to decide."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from memory.database import Database
from memory.forgotten.resting import Run, said_by_others
from memory.forgotten.withdrawn import commands_that_say
from memory.removal.forgetting import sources
from memory.scopes import ChatScope
from memory.search import Search
from memory.tombstones import Forgotten, forgotten_of


@dataclass(frozen=True, slots=True)
class Said:
    """Runs, with their sessions, and commands, as rows of the inbox."""

    runs: frozenset[Run] = frozenset()
    commands: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """How many messages people would miss."""
        return len(self.runs) + len(self.commands)


class SaidBefore:
    """Changes are rows of `memory_changes`, of one act of forgetting: from `first` to `last`.
    Methods may raise `OSError` and `StoreError`."""

    def __init__(self, database: Database, search: Search) -> None:
        self._database = database
        self._search = search

    async def said(self, chat: ChatScope, first: int, last: int, *, person: str | None) -> Said:
        """What said it; with `person` only what they have asked or commanded."""
        forgotten, by = await self._forgotten(chat, first, last)
        left_out = await self._left_out(chat, first, last)
        runs = await self._runs(chat, forgotten, left_out, person)
        # What somebody has forgotten of themselves others may have had remembered of themselves.
        whose = person or (by if forgotten.whose else None)
        commands = await self._database.look(
            lambda c: commands_that_say(c, chat, forgotten, whose) if forgotten.sayings else []
        )
        return Said(frozenset(runs), tuple(commands))

    async def _forgotten(
        self, chat: ChatScope, first: int, last: int
    ) -> tuple[Forgotten, str | None]:
        """What it was, and who had it forgotten."""
        rows = await self._database.read(
            "SELECT t.words, t.whose, c.person FROM memory_changes c JOIN tombstones t"
            " ON t.scope = c.scope AND t.hash = c.hash"
            " WHERE c.id BETWEEN ? AND ? AND c.scope = ? AND c.kind = 'forgotten'",
            (first, last, chat.scope),
        )
        return forgotten_of(rows), next((str(row["person"]) for row in rows), None)

    async def _left_out(self, chat: ChatScope, first: int, last: int) -> set[Run]:
        """What has left the context at that instant: notes led there that are gone by now."""
        rows = await self._database.read(
            "SELECT DISTINCT l.run_id, l.session_id FROM memory_changes c JOIN left_out l"
            " ON l.at = c.at WHERE c.id BETWEEN ? AND ? AND c.scope = ? AND c.kind = 'forgotten'",
            (first, last, chat.scope),
        )
        return {(str(row[0]), int(row[1])) for row in rows}

    async def _runs(
        self, chat: ChatScope, forgotten: Forgotten, known: set[Run], person: str | None
    ) -> set[Run]:
        words = forgotten.sayings
        found = known | await self._search.runs_that_say(chat, words, besides=None)
        found |= set(await self._database.look(lambda c: sources(c, chat, words, None)))
        found -= await self._database.look(lambda c: said_by_others(c, found, forgotten))
        # Where groups share a memory, each decides about its own conversations.
        here = await self._database.read(
            "SELECT id FROM sessions WHERE channel = ? AND account = ? AND chat = ?",
            (chat.channel, chat.account, chat.chat),
        )
        sessions = {int(row[0]) for row in here}
        found = {run for run in found if run[1] in sessions}
        if person is None:
            return found
        own = await self._database.read(
            "SELECT DISTINCT run_id FROM inbox WHERE channel = ? AND account = ? AND chat = ?"
            " AND person = ? AND run_id IS NOT NULL",
            (chat.channel, chat.account, chat.chat, person),
        )
        theirs = {str(row[0]) for row in own}
        return {run for run in found if run[0] in theirs}

    async def conversations(self, said: Said) -> list[str]:
        """The keys of the sessions in which it was said; copies of these hold it too."""
        sessions = {session for _, session in said.runs}
        rows = await self._database.read("SELECT id, key FROM sessions")
        return [str(key) for id_, key in rows if int(id_) in sessions]

    async def delete(self, said: Said) -> int:
        """The messages and answers go for good; how many runs and commands. A run that is under way
        stays."""
        ids = [(run_id,) for run_id, _ in said.runs]
        commands = [(id_,) for id_ in said.commands]

        def op(connection: sqlite3.Connection) -> int:
            settled = [
                one
                for one in ids
                if not connection.execute(
                    "SELECT 1 FROM runs WHERE run_id = ? AND state <> 'settled'", one
                ).fetchone()
            ]
            connection.executemany("DELETE FROM messages WHERE run_id = ?", settled)
            connection.executemany("DELETE FROM outbox WHERE key = ?", settled)
            connection.executemany("UPDATE inbox SET body = NULL WHERE run_id = ?", settled)
            connection.executemany("UPDATE inbox SET body = NULL WHERE id = ?", commands)
            connection.executemany("DELETE FROM outbox WHERE key = 'act:' || ?", commands)
            return len(settled) + len(commands)

        deleted = await self._database.write(op)
        await self._database.scrub()
        return deleted
