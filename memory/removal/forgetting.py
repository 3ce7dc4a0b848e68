"""What is forgotten goes at once and everywhere: files, earlier versions, search, summaries, and the
context that a model sees. A tombstone keeps it from coming back.

The tombstone comes first: whatever a crash leaves behind is not found and not written again, and
forgetting it once more finishes the work.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memory.clock import stamp
from memory.conversations import LEAVE_OUT
from memory.daily import DailyFiles
from memory.database import Database
from memory.forgotten.copied_talks import bodies_of, scrub_transcripts, session_keys
from memory.forgotten.copies import Taken, copies_of, nameless, take_out
from memory.forgotten.resting import (
    Run,
    cited,
    drop_resting,
    messages_of,
    runs_cited,
    said_by_others,
    scrub_notes,
)
from memory.forgotten.withdrawn import replies_that_say, withdraw
from memory.markdown.fact_files import FactFiles
from memory.markdown.facts import Fact, FactsRefused, Line, facts
from memory.markdown.files import names
from memory.markdown.folders import TRANSCRIPTS
from memory.markdown.lines import Ref, drop, drop_saying, lines_of, said, sayings, speaker_of
from memory.night.read_days import ReadDays
from memory.scopes import CHANGES, FACTS, PERSON, ChatScope, day_of, scope_path
from memory.search import Search
from memory.snapshots import drop_snapshots
from memory.text.own_names import names_of
from memory.text.words import Phrase, normalised, phrases, searched
from memory.together import chats_of, drop_shared_index
from memory.tombstones import Forgotten, bury, hash_of
from memory.whose.authors import Authors, Member, Receipt, note
from memory.whose.concerned import Concerned

MOST_MATCHES = 20  # that are listed


@dataclass(frozen=True, slots=True)
class Match:
    """A line that could be forgotten."""

    ref: Ref
    text: str


class Forgetting:
    """In the memories below `folder`, which is in the data folder. Methods may raise `OSError` and
    `StoreError`."""

    def __init__(
        self, database: Database, folder: Path, files: FactFiles, search: Search, authors: Authors
    ) -> None:
        self._database = database
        self._folder = folder
        self._files = files
        self._search = search
        self._authors = authors
        self._concerned = Concerned(database, folder)
        self._days = ReadDays(database, DailyFiles(folder))

    async def matches(self, chat: ChatScope, query: str) -> list[Match]:
        """All lines that have all of the words: entries first, then those of the newest days."""
        asked = phrases(query)
        if not asked:
            return []
        files = await self._search.names(chat, asked)
        return await asyncio.to_thread(self._matches, chat, asked, files)

    async def forget(
        self,
        chat: ChatScope,
        by: Member,
        refs: Collection[Ref],
        made: Callable[[Receipt], None] = lambda receipt: None,
    ) -> Receipt:
        """Take these lines out, for good. `made` hears of it as soon as the files are without them.
        Raises `FactsRefused`: one is not there, or not theirs."""
        chosen = await asyncio.to_thread(self._chosen, chat, refs)
        await self._check(chat, by, chosen)
        whose = await self._whose(chat, by, chosen)
        chosen += await self._same(chat, by, chosen, own=bool(whose))
        before = await self._earlier(chat, by, chosen)
        told = [*(text for _, text in chosen), *(fact.text for fact in before)]
        words = [words for text in told for words in sayings(text)]
        forgotten = Forgotten(frozenset(words), dict.fromkeys(words, whose) if whose else {})
        await self._database.write(
            lambda connection: bury(connection, chat.scope, forgotten.sayings, whose)
        )
        # The lines themselves go last: as long as they are there, a command that a crash has cut off is
        # carried out anew as a whole.
        bare = await self._bare(chat, by, chosen, words)
        runs = await self._runs(chat, by, forgotten, bare)
        if whose:
            runs -= await self._database.look(lambda c: said_by_others(c, runs, forgotten))
        done_with = await self._days.prefixes(chat.scope)
        receipt = Receipt("forgotten", len({said(text) for _, text in chosen}))
        receipt = await self._take_out(chat, by, runs, receipt, (forgotten, bare))
        await self._drop(chat, [ref for ref, _ in chosen], forgotten)
        await self._days.carry(chat.scope, done_with)
        made(receipt)
        await self._database.write(lambda connection: drop_snapshots(connection, chat))
        return receipt

    async def _take_out(
        self,
        chat: ChatScope,
        by: Member,
        runs: Collection[Run],
        receipt: Receipt,
        what: tuple[Forgotten, Sequence[str]],
    ) -> Receipt:
        """The runs leave every context, and what rests on them or copies `what` is forgotten (and the
        same without names) goes."""
        forgotten, bare = what
        copied = Taken(replace(forgotten, sayings=forgotten.sayings | frozenset(bare)))
        chats = await self._database.look(lambda connection: chats_of(connection, chat))
        gone = await self._database.look(lambda connection: messages_of(connection, runs))
        folder = scope_path(self._folder, chat.scope)
        await asyncio.to_thread(drop_resting, folder, gone, forgotten)
        await self._scrub_transcripts(chats, runs, copied.forgotten)
        replies = await self._database.look(
            lambda connection: [
                reply
                for each in chats
                for reply in replies_that_say(connection, each, forgotten.covers)
            ]
        )
        copies = await self._database.look(
            lambda connection: {each: copies_of(connection, each, copied) for each in chats}
        )

        def op(connection: sqlite3.Connection) -> Receipt:
            # the same: by it `memory.removal.said_before` knows what was left out for what
            at = stamp()
            for run_id, session in runs:
                connection.execute(LEAVE_OUT, (run_id, session, at))
            withdraw(connection, replies, [run_id for run_id, _ in runs])
            for each in chats_of(connection, chat):
                scrub_notes(connection, each, gone, forgotten)
                take_out(connection, each, copied, *copies.get(each, ([], 0)))
            if chat.together:
                drop_shared_index(connection, but=chat.together)
            changes = note(connection, chat, by, receipt, *forgotten.sayings, at=at)
            return replace(receipt, changes=changes)

        return await self._database.write(op)

    async def _scrub_transcripts(
        self, chats: Sequence[ChatScope], runs: Collection[Run], forgotten: Forgotten
    ) -> None:
        keys = await self._database.look(lambda connection: session_keys(connection, chats))
        bodies = await self._database.look(lambda connection: bodies_of(connection, runs))
        folder = self._folder.parent / TRANSCRIPTS
        await asyncio.to_thread(scrub_transcripts, folder, keys, bodies, forgotten)

    async def _whose(
        self, chat: ChatScope, by: Member, chosen: Iterable[tuple[Ref, str]]
    ) -> frozenset[str]:
        """The names of the one among others who forgets what is their own; empty where it is to be
        forgotten whoever says it."""
        if chat.scope.startswith(PERSON):
            return frozenset()
        for each in chosen:
            if not await self._is_own(chat, by, *each):
                return frozenset()
        known = await self._database.look(lambda c: names_of(c, chat.channel, by.person))
        return frozenset(map(normalised, {by.name, *known})) - {""}

    async def _bare(
        self, chat: ChatScope, by: Member, chosen: Iterable[tuple[Ref, str]], words: Iterable[str]
    ) -> list[str]:
        """The sayings as the people said them whom they are about: without their names."""
        numbers = {ref.number for ref, _ in chosen if ref.number}
        whos = [
            fact.who for fact in facts(await self._files.load(chat.scope)) if fact.number in numbers
        ]
        names_ = [normalised(name) for name in (by.name, *whos)]
        return [nameless(saying, names_) for saying in words]

    async def _runs(
        self, chat: ChatScope, by: Member, forgotten: Forgotten, bare: Sequence[str]
    ) -> set[Run]:
        """Those in which it was said or remembered, besides the one that has it forgotten: by its
        words, and by the messages that notes rest on which say it."""
        folder = scope_path(self._folder, chat.scope)
        noted = await asyncio.to_thread(cited, folder, forgotten)
        words = forgotten.sayings

        def look(connection: sqlite3.Connection) -> tuple[list[ChatScope], set[Run]]:
            chats = chats_of(connection, chat)
            runs = set(sources(connection, chat, words, by.run_id))
            for each in chats:
                runs |= runs_cited(connection, each, noted, bare)
            return chats, runs

        chats, runs = await self._database.look(look)
        # In a group others say the same of themselves.
        said_so = {*words, *bare} if chat.scope.startswith(PERSON) else words
        for each in chats:
            runs |= await self._search.runs_that_say(each, said_so, besides=by.run_id)
        return {run for run in runs if run[0] != by.run_id}

    async def _same(
        self, chat: ChatScope, by: Member, chosen: Sequence[tuple[Ref, str]], *, own: bool
    ) -> list[tuple[Ref, str]]:
        """Entries that say just the same in other words, as far as they are their `own`, or those that
        they may forget too."""
        sayings = Forgotten(frozenset(said(text) for _, text in chosen))
        refs = {ref for ref, _ in chosen}
        found: list[tuple[Ref, str]] = []
        for fact in facts(await self._files.load(chat.scope)):
            ref, text = Ref(FACTS, fact.number), fact.text
            if ref in refs or not sayings.same(text, fact.who):
                continue
            if await self._is_own(chat, by, ref, text) or (not own and await by.may_change_all()):
                found.append((ref, text))
        return found

    async def _earlier(
        self, chat: ChatScope, by: Member, chosen: Iterable[tuple[Ref, str]]
    ) -> list[Fact]:
        """What chosen entries said before they were corrected, as far as it is theirs to forget and no
        other entry says it still."""
        numbers = {ref.number for ref, _ in chosen if ref.number}
        if not numbers:
            return []
        corrected = await self._authors.corrected(chat)
        found = await self._files.earlier(
            chat.scope, numbers, lambda fact: hash_of(normalised(fact.text)) in corrected
        )
        known = facts(await self._files.load(chat.scope))
        stays = [fact.text for fact in known if fact.number not in numbers]
        kept: list[Fact] = []
        for fact in found:
            ref, told = Ref(FACTS, fact.number), Forgotten(frozenset(sayings(fact.text)))
            if not any(map(told.repeats, stays)) and (
                await self._is_own(chat, by, ref, fact.text) or await by.may_change_all()
            ):
                kept.append(fact)
        return kept

    async def _check(self, chat: ChatScope, by: Member, chosen: Iterable[tuple[Ref, str]]) -> None:
        """Everybody may forget what they have said, and what is about them; admins everything."""
        for ref, text in chosen:
            if not await self._is_own(chat, by, ref, text) and not await by.may_change_all():
                raise FactsRefused("not_yours", ref.number)

    async def _is_own(self, chat: ChatScope, by: Member, ref: Ref, text: str) -> bool:
        """Whether they have said it, or it is about them; in a private chat all is."""
        if chat.scope.startswith(PERSON):
            return True
        if await self._authors.has_said(chat, by, said(text)):
            return True
        known = facts(await self._files.load(chat.scope)) if ref.number else []
        entry = next((fact for fact in known if fact.number == ref.number), None)
        day, who = (
            (entry.day, entry.who) if entry is not None else (day_of(ref.name), speaker_of(text))
        )
        return day is not None and await self._concerned.are(chat, by.person, text, day, who)

    async def _drop(self, chat: ChatScope, refs: Collection[Ref], forgotten: Forgotten) -> None:
        numbers = {ref.number for ref in refs if ref.number}
        marks = {ref for ref in refs if ref.name == FACTS and not ref.number}

        def chosen(line: Line) -> bool:
            if line.fact is not None:
                return line.fact.number in numbers
            return bool(marks) and Ref.of(FACTS, line.raw) in marks

        folder = scope_path(self._folder, chat.scope) / CHANGES
        await asyncio.to_thread(_drop_from_changes, folder, forgotten)
        for name in {ref.name for ref in refs} - {FACTS}:
            path = scope_path(self._folder, chat.scope, name)
            await asyncio.to_thread(drop, path, refs)
        if numbers or marks:
            await self._files.forget(chat.scope, chosen, forgotten.part)

    def _chosen(self, chat: ChatScope, refs: Iterable[Ref]) -> list[tuple[Ref, str]]:
        found: list[tuple[Ref, str]] = []
        for ref in refs:
            there = lines_of(scope_path(self._folder, chat.scope, ref.name))
            texts = [(each, text) for each, text in there if each == ref]
            if not texts:
                raise FactsRefused("no_entry", ref.number)
            found += texts
        return found

    def _matches(
        self, chat: ChatScope, asked: Sequence[Phrase], files: Sequence[str]
    ) -> list[Match]:
        found: list[Match] = []
        for name in (FACTS, *(name for name in files if name != FACTS)):
            for ref, text in lines_of(scope_path(self._folder, chat.scope, name)):
                if all(phrase.stands_in(searched(text)) for phrase in asked):
                    found.append(Match(ref, text))
        return found


def _drop_from_changes(folder: Path, forgotten: Forgotten) -> None:
    """What the nights have told of it goes too."""
    for name in sorted(names(folder)):
        if day_of(name) is not None:
            drop_saying(folder / name, forgotten.covers)


def sources(
    connection: sqlite3.Connection,
    chat: ChatScope,
    sayings: Iterable[str],
    besides: str | None,
) -> list[tuple[str, int]]:
    """The runs in which these were remembered, with their sessions."""
    return [
        (str(row[0]), int(row[1]))
        for words in sayings
        for row in connection.execute(
            "SELECT DISTINCT m.run_id, m.session_id FROM memory_changes c"
            " JOIN messages m ON m.run_id = c.run_id"
            " WHERE c.scope = ? AND c.hash = ? AND c.run_id IS NOT ?",
            (chat.scope, hash_of(words), besides),
        )
    ]
