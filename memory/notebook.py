"""What a chat's memory can be told: remember, correct, forget, take back; and what is read of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from memory.database import Database
from memory.indexing import Indexer
from memory.markdown.fact_files import FactFiles, saying
from memory.markdown.facts import Fact, FactsRefused, Lines, facts, find
from memory.removal.forgetting import Forgetting
from memory.removal.said_before import SaidBefore
from memory.scopes import PERSON, ChatScope
from memory.search import Search
from memory.snapshots import Snapshots, outdate_snapshots
from memory.text.words import normalised
from memory.tombstones import Tombstones, bury, forgotten_in, hash_of, unearth
from memory.whose.authors import Authors, Member, Receipt, note


class Notebook:
    """The memories of all chats below `folder`. Methods may raise `OSError` and `StoreError`."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database = database
        self.folder = folder
        self.files = FactFiles(folder)
        self.indexer = Indexer(database, folder)
        self.search = Search(database, folder, self.indexer)
        self.snapshots = Snapshots(database, folder)
        self.authors = Authors(database)
        self.forgetting = Forgetting(database, folder, self.files, self.search, self.authors)
        self.said_before = SaidBefore(database, self.search)
        self.tombstones = Tombstones(database)

    async def remember(
        self,
        chat: ChatScope,
        by: Member,
        text: str,
        day: date,
        *,
        instead_of: int | None = None,
        made: Callable[[Receipt], None] = lambda receipt: None,
    ) -> Receipt:
        """One more entry, or another text for one. `made` hears of it as soon as it stands in the file.
        Raises `FactsRefused`. What was forgotten is written again only where the person does it
        themselves: without a run."""
        forgotten = await self.tombstones.of(chat.scope)
        again = forgotten.covers(text, by.name)
        if again and not await self._may_bring_back(chat, by, text):
            raise FactsRefused("forgotten")
        if instead_of is None:
            fact = await self.files.add(chat.scope, day, by.name, text)
            receipt = Receipt("remembered", fact.number, fact.text)
        else:
            old = find(await self.files.load(chat.scope), instead_of)
            await self.authors.check(chat, by, [(instead_of, normalised(old.text))])
            fact, _ = await self.files.correct(chat.scope, instead_of, day, by.name, text)
            receipt = Receipt("corrected", fact.number, fact.text)
        made(receipt)
        said = normalised(fact.text)

        def op(connection: sqlite3.Connection) -> Receipt | None:
            if by.run_id is None:
                unearth(connection, chat.scope, said, by.name)
            elif forgotten_in(connection, chat.scope).covers(said, by.name):
                return None  # meanwhile: what forgets it may not have seen the line
            return replace(receipt, changes=note(connection, chat, by, receipt, said))

        done = await self._database.write(op)
        if done is None:
            await self.files.forget(
                chat.scope, lambda line: line.fact is not None and saying(line) == said
            )
            raise FactsRefused("forgotten")
        return done

    async def _may_bring_back(self, chat: ChatScope, by: Member, text: str) -> bool:
        """Whoever had it forgotten, without a run; in a group its admins as well."""
        if by.run_id is not None:
            return False
        if chat.scope.startswith(PERSON):
            return True
        others = await self.tombstones.of_others(chat.scope, by.person)
        return not others.covers(text, by.name) or await by.may_change_all()

    async def take_back(self, chat: ChatScope, by: Member, change_id: int) -> None:
        """One change alone. Raises `FactsRefused`: it is somebody else's, or something was changed
        after it."""
        change = await self.authors.change(chat, change_id)
        if change is None or change.kind == "forgotten":
            raise FactsRefused("nothing_to_undo")
        if change.person != by.person and not await by.may_change_all():
            raise FactsRefused("not_yours", change.number)
        now = find(await self.files.load(chat.scope), change.number)
        if hash_of(normalised(now.text)) != change.hash:
            raise FactsRefused("changed_since")
        if change.kind == "remembered":
            await self.files.remove(chat.scope, [change.number])
            await self._bury(chat, [now])
        elif await self.authors.is_newest(chat, change):
            await self.files.undo(chat.scope)
        else:
            raise FactsRefused("changed_since")
        await self.refresh(chat)

    async def undo_night(
        self, chat: ChatScope, night: tuple[str, str] | None
    ) -> tuple[list[Fact], list[Fact]]:
        """As `undo`, all that a night has done (`Nights.traces`), as long as nothing came after it.
        Raises `FactsRefused`."""
        if night is None:
            raise FactsRefused("changed_since")
        return await self._undone(chat, await self.files.undo_to(chat.scope, *night))

    async def undo(self, chat: ChatScope) -> tuple[list[Fact], list[Fact]]:
        """Take the last change of `MEMORY.md` back: entries that are gone now, and those that are there
        again. Raises `FactsRefused`."""
        return await self._undone(chat, await self.files.undo(chat.scope))

    async def _undone(
        self, chat: ChatScope, changed: tuple[Lines, Lines]
    ) -> tuple[list[Fact], list[Fact]]:
        before, after = (facts(lines) for lines in changed)
        gone = [fact for fact in before if fact not in after]
        await self._bury(chat, gone)
        await self.refresh(chat)
        return gone, [fact for fact in after if fact not in before]

    async def _bury(self, chat: ChatScope, gone: Sequence[Fact]) -> None:
        """No night adds these again."""

        def op(connection: sqlite3.Connection) -> None:
            for fact in gone:
                whose = () if chat.scope.startswith(PERSON) else (fact.who,)
                bury(connection, chat.scope, [normalised(fact.text)], whose, undone=True)

        await self._database.write(op)

    async def refresh(self, chat: ChatScope) -> None:
        """The next turn of each of the chat's sessions sees the memory as it is then."""
        await self._database.write(lambda connection: outdate_snapshots(connection, chat))

    async def receipts(self, chat: ChatScope, run_id: str) -> list[Receipt]:
        """What a run has changed, as far as it still stands: for one that another process has begun."""
        known = {fact.number: fact.text for fact in facts(await self.files.load(chat.scope))}
        return [
            Receipt(kind, number, known.get(number, "") if kind != "forgotten" else "")
            for kind, number in await self.authors.receipts(run_id)
            if kind == "forgotten" or number in known
        ]
