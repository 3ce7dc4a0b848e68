"""What a person has left in the chats that others share: found first, so that it can be shown, then
erased.

A line of a memory file is theirs when they had it written, when it rests on a message of theirs, or
when a name that proves it (`memory.text.own_names`) stands in it or before it. Somebody outside of the
chat sees none of its lines, and a name in what others have said counts for nothing then.
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced
from datetime import date
from pathlib import Path

from memory.chats.erasing import erase_in_session, erase_person, runs_of
from memory.chats.moving import drop_index
from memory.chats.reach import ChatPlace
from memory.database import Database
from memory.forgotten.copies import AllCopies, Bodies, Taken, copies_of, take_out, take_out_quotes
from memory.forgotten.repeated import (
    Repeated,
    drop_tombstones,
    repeats_of,
    take_out_repeated,
    words_of,
)
from memory.markdown import versions
from memory.markdown.files import locked, names, read, replace
from memory.markdown.lines import dated_lines, said
from memory.scopes import CHANGES, FACTS, SHARED, ChatScope, day_of, scope_path
from memory.text.own_names import names_of, own_names
from memory.together import drop_shared_index
from memory.tombstones import Forgotten
from memory.whose.about import About, repeated_of, said_by, tells_of, without_lines
from memory.whose.concerned import SOURCES

_Known = tuple[Bodies, int]  # as `copies_of` and `repeats_of` find them
TRIES = 5  # while somebody saves a file again and again


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody on a channel."""

    channel: str
    id: str


@dataclass(frozen=True, slots=True)
class Trace:
    """What there is in one shared chat: questions, and lines of memory files, which the person may see
    while `inside`."""

    place: ChatPlace
    questions: int
    lines: tuple[str, ...]
    inside: bool = True


class PersonTraces:
    """`folder`: that of all memory files; `scope_of(place)`: the memory of a shared chat. Methods may
    raise `OSError` and `StoreError`."""

    def __init__(
        self, database: Database, folder: Path, scope_of: Callable[[ChatPlace], str]
    ) -> None:
        self._database = database
        self._folder = folder
        self._scope_of = scope_of

    async def chats(self, channel: str, person: str) -> tuple[list[ChatPlace], list[ChatPlace]]:
        """Their private chats with the bot, and the chats that they share with others."""
        rows = await self._database.read(
            "SELECT s.channel, s.account, s.chat, MAX(s.chat = :person OR EXISTS"
            " (SELECT 1 FROM outbox o WHERE o.session_id = s.id AND o.private = 1)) AS private"
            " FROM sessions s WHERE s.channel = :channel AND (s.chat = :person OR s.id IN"
            " (SELECT session_id FROM inbox WHERE channel = :channel AND person = :person)"
            " OR s.id IN (SELECT session_id FROM speakers WHERE person = :person))"
            " GROUP BY s.channel, s.account, s.chat ORDER BY MIN(s.id)",
            {"channel": channel, "person": person},
        )
        private = [ChatPlace(*row[:3]) for row in rows if row["private"]]
        return private, [ChatPlace(*row[:3]) for row in rows if not row["private"]]

    async def places(self, channel: str, chat: str) -> list[ChatPlace]:
        """The chats of that id with a session, on all accounts."""
        rows = await self._database.read(
            "SELECT DISTINCT channel, account, chat FROM sessions WHERE channel = ? AND chat = ?",
            (channel, chat),
        )
        return [ChatPlace(*row) for row in rows]

    async def session_keys(self, person: Person, place: ChatPlace) -> list[str]:
        """The keys of the shared chat's sessions in which they have spoken."""
        return [key for _, key in await self._sessions(person, place)]

    async def trace(self, person: Person, place: ChatPlace, *, inside: bool) -> Trace:
        """What there is of them in a shared chat."""
        about, questions = await self._about(person, place, inside=inside)
        scope = self._scope_of(place)
        lines = await asyncio.to_thread(self._lines, scope, about)
        return Trace(place, questions, lines, inside)

    async def together(self, person: Person, *, inside: bool) -> tuple[str, ...]:
        """The lines about them in the memory that groups share, whatever groups share it now."""
        about = await self._about_shared(person, inside=inside)
        return await asyncio.to_thread(self._lines, SHARED, about)

    async def erase_together(self, person: Person, *, inside: bool) -> None:
        """Those lines go: before the chats, whose messages tell whose they are."""
        about = await self._about_shared(person, inside=inside)
        lines = await asyncio.to_thread(self._lines, SHARED, about)
        copied = Taken(Forgotten(frozenset(filter(None, map(said, lines)))))
        repeated = Repeated(
            repeated_of(about, lines)
        )  # a name may be another one's in other groups

        def found(connection: sqlite3.Connection) -> list[tuple[ChatScope, _Known, _Known]]:
            return [
                (
                    chat,
                    copies_of(connection, chat, copied),
                    repeats_of(connection, chat, repeated),
                )
                for chat in _groups(connection)
            ]

        known = await self._database.look(found) if lines else []

        def out(connection: sqlite3.Connection) -> None:
            for chat, copies, answers in known:
                take_out(connection, chat, copied, *copies)
                take_out_repeated(connection, chat, repeated, *answers)
            called = names_of(connection, person.channel, person.id)
            drop_tombstones(connection, SHARED, repeated, called)

        await self._database.write(out)
        if not await asyncio.to_thread(self._drop, SHARED, about):
            return

        def op(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM memory_snapshots WHERE shared = 1")
            drop_shared_index(connection)

        await self._database.write(op)

    async def erase_in(self, person: Person, place: ChatPlace, *, inside: bool) -> None:
        """The lines of the files first: as long as the rows are there, it can be done again."""
        about, _ = await self._about(person, place, inside=inside)
        scope = self._scope_of(place)
        lines = await asyncio.to_thread(self._lines, scope, about)
        repeated = Repeated(repeated_of(about, lines), about.names if inside else ())
        here = ChatScope("", place.channel, place.account, place.chat)
        answers = await self._database.look(lambda c: repeats_of(c, here, repeated))
        await asyncio.to_thread(self._drop, scope, about)
        sessions = await self._sessions(person, place)

        def op(connection: sqlite3.Connection) -> None:
            for session, _ in sessions:
                erase_in_session(connection, session, person.id)
            # Others may have searched for it, and have quoted it.
            take_out(connection, here, AllCopies(), [], 0)
            take_out_quotes(connection, here)
            take_out_repeated(connection, here, repeated, *answers)
            called = names_of(connection, person.channel, person.id)
            drop_tombstones(connection, scope, repeated, called)
            drop_index(connection, (place.channel, place.account, place.chat))

        await self._database.write(op)

    async def finish(self, person: Person, by: str) -> None:
        """After all chats: what else names them; then the database holds nothing of it any more."""
        await self._database.write(
            lambda connection: erase_person(connection, person.channel, person.id, by)
        )
        await self._database.scrub()

    async def _sessions(self, person: Person, place: ChatPlace) -> list[tuple[int, str]]:
        rows = await self._database.read(
            "SELECT id, key FROM sessions WHERE channel = :channel AND account = :account"
            " AND chat = :chat AND (id IN (SELECT session_id FROM inbox WHERE person = :person"
            " AND channel = :channel) OR id IN (SELECT session_id FROM speakers"
            " WHERE person = :person)) ORDER BY id",
            {
                "channel": place.channel,
                "account": place.account,
                "chat": place.chat,
                "person": person.id,
            },
        )
        return [(int(row[0]), str(row[1])) for row in rows]

    async def _about(self, person: Person, place: ChatPlace, *, inside: bool) -> tuple[About, int]:
        sessions = await self._sessions(person, place)
        scope = self._scope_of(place)
        lines = await asyncio.to_thread(dated_lines, scope_path(self._folder, scope))

        def look(connection: sqlite3.Connection) -> tuple[About, int]:
            runs = {run for id_, _ in sessions for run in runs_of(connection, id_, person.id)}
            messages = {
                int(row[0])
                for run in runs
                for row in connection.execute("SELECT id FROM messages WHERE run_id = ?", (run,))
            }
            here = [ChatScope(scope, place.channel, place.account, place.chat)]
            known = connection.execute(
                "SELECT m.id FROM messages m JOIN sessions s ON s.id = m.session_id"
                " WHERE s.channel = ? AND s.account = ? AND s.chat = ?",
                (place.channel, place.account, place.chat),
            )
            every = frozenset(int(row[0]) for row in known)
            ids = frozenset(messages)
            about = _known(connection, here, person, ids, every, lines, inside=inside)
            return replaced(about, words=words_of(connection, runs)), len(runs)

        return await self._database.look(look)

    async def _about_shared(self, person: Person, *, inside: bool) -> About:
        """By their messages in all of the channel's chats: one may share no more."""
        cited = await asyncio.to_thread(self._cited, SHARED)
        lines = await asyncio.to_thread(dated_lines, scope_path(self._folder, SHARED))

        def look(connection: sqlite3.Connection) -> About:
            sessions = connection.execute(
                "SELECT id FROM sessions WHERE channel = ?", (person.channel,)
            ).fetchall()
            runs = {run for (id_,) in sessions for run in runs_of(connection, id_, person.id)}
            known = {
                int(row[0]): str(row[1])
                for row in connection.execute(
                    "SELECT id, run_id FROM messages WHERE id IN (SELECT value FROM json_each(?))",
                    (json.dumps(sorted(cited)),),
                )
            }
            messages = frozenset(id_ for id_, run in known.items() if run in runs)
            groups = _groups(connection)
            every = frozenset(known)
            about = _known(connection, groups, person, messages, every, lines, inside=inside)
            return replaced(about, words=words_of(connection, runs))

        return await self._database.look(look)

    def _cited(self, scope: str) -> set[int]:
        """The messages that lines of day files rest on."""
        texts = (read(path).decode("utf-8", "replace") for path in self._files(scope))
        found = (SOURCES.search(line) for text in texts for line in text.split("\n"))
        return {int(id_) for one in found if one for id_ in re.findall("[0-9]{1,18}", one[1])}

    def _files(self, scope: str) -> list[Path]:
        folder = scope_path(self._folder, scope)
        found = [folder / FACTS] if FACTS in names(folder) else []
        for one in (folder, folder / CHANGES):
            found += [one / name for name in sorted(names(one)) if day_of(name) is not None]
        return found

    def _lines(self, scope: str, about: About) -> tuple[str, ...]:
        found: list[str] = []
        told: list[str] = []  # what the nights have written of their changes
        for path in self._files(scope):
            lines = read(path).decode("utf-8", "replace").split("\n")
            day = day_of(path.name)
            found += [line.strip() for line in lines if about.covers(line, day)]
            told += lines if path.parent.name == CHANGES else []
        held = [
            read(version.path) for version in versions.versions(scope_path(self._folder, scope))
        ]
        earlier = (line for data in held for line in data.decode("utf-8", "replace").split("\n"))
        gone = said_by([*found, *(line for line in earlier if about.covers(line, None))])
        found += [line.strip() for line in told if tells_of(line, gone)]
        return tuple(dict.fromkeys(found))

    def _drop(self, scope: str, about: About) -> bool:
        """Whether there is such a memory."""
        folder = scope_path(self._folder, scope)
        if not folder.is_dir():
            return False
        gone = self._lines(scope, about)
        with locked(folder):
            for path in self._files(scope):
                if path.name != FACTS:
                    _rewrite(path, without_lines(path, about, gone))
            _rewrite_facts(folder, without_lines(folder / FACTS, about, gone))
        return True


def _known(
    connection: sqlite3.Connection,
    chats: Sequence[ChatScope],
    person: Person,
    messages: frozenset[int],
    every: frozenset[int],
    lines: Sequence[tuple[date, str]],
    *,
    inside: bool,
) -> About:
    """With what they had written there, and what only others had."""
    changes = connection.execute(
        "SELECT hash, person, MIN(at) FROM memory_changes WHERE scope = ? AND kind <> 'forgotten'"
        " GROUP BY hash, person",
        (chats[0].scope if chats else SHARED,),
    ).fetchall()
    mine = frozenset(str(hashed) for hashed, who, _ in changes if who == person.id)
    others = frozenset(str(hashed) for hashed, who, _ in changes if who != person.id) - mine
    written: dict[str, str] = {}
    for hashed, _, at in changes:
        written[str(hashed)] = min(str(at), written.get(str(hashed), str(at)))
    names_ = own_names(connection, chats, person.channel, person.id, lines)
    return About(names_, mine, others, messages, every, written, inside)


def _groups(connection: sqlite3.Connection) -> list[ChatScope]:
    """All chats that are no private ones."""
    rows = connection.execute(
        "SELECT DISTINCT channel, account, chat FROM sessions s WHERE NOT EXISTS"
        " (SELECT 1 FROM outbox o WHERE o.session_id = s.id AND o.private = 1)"
    )
    return [ChatScope(SHARED, *row) for row in rows]


def _rewrite(path: Path, change: Callable[[bytes], bytes]) -> tuple[bytes, bytes]:
    """What it held and holds. Raises `OSError` when somebody goes on changing the file."""
    for _ in range(TRIES):
        before = read(path)
        after = change(before)
        if after == before or replace(path, before, after):
            return before, after
    raise OSError(f"{path.name} is being edited: nothing more is erased")


def _rewrite_facts(folder: Path, change: Callable[[bytes], bytes]) -> None:
    """The same of `MEMORY.md` and its earlier versions: what others have changed can be taken back
    as before. A step that was about the person alone changes nothing any more, and goes."""
    before, after = _rewrite(folder / FACTS, change)
    versions.scrub(folder, before, after, change)
    for version in versions.versions(folder):
        if version.after == versions.digest(read(version.path)):
            version.path.unlink()
