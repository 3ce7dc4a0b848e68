"""The memory as it stands in a prompt: bounded, quoted, and the same for as long as a session's context
begins at the same place, so that a provider can cache it.

It is made anew when the context gets another beginning (`/new`, a compaction), and after a change of
memory that a person wants to see at once (`drop_snapshots`).
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory.clock import stamp
from memory.database import Database
from memory.markdown.facts import MOST_CHARACTERS, MOST_ENTRIES, Line, parse, size
from memory.markdown.files import names, read
from memory.markdown.headings import is_aside
from memory.scopes import FACTS, SHARED, ChatScope, day_of, scope_path
from memory.together import chats_of
from memory.tombstones import Forgotten, Tombstones

MOST_SNAPSHOT = 20_000  # characters, for a model with a large window
DAYS = 2  # the newest day files
SHARE_OF_DAYS = 0.2  # of the snapshot
_LEFT_OUT = "({count} older ones do not fit here; memory_search finds them)"
_OF_SEVERAL = (
    "(Several groups have this memory together: what stands here may have been said in another one, by"
    " people who are not here.)"
)
_OUTDATED = -1  # no boundary has that id
_TAG = re.compile(r"<(?=\s*[/!?]?\s*[A-Za-z])")


@dataclass(frozen=True, slots=True)
class Shown:
    """What the session's last answer saw of the memory, made for the context that begins with this
    boundary."""

    boundary_id: int
    text: str


class Snapshots:
    """`folder`: that of all memory files."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database = database
        self._folder = folder
        self._tombstones = Tombstones(database)

    async def of(self, chat: ChatScope, session: int, boundary_id: int, most: int) -> str:
        """The session's snapshot, of at most `most` characters and some words; empty when nothing is
        known. One of a memory that the chat shares no more, or did not share yet, does not count.
        Raises `StoreError` and `OSError`."""
        shown = await self.shown(chat, session)
        if shown is not None and shown.boundary_id == boundary_id:
            return shown.text
        return await self.made(chat, session, boundary_id, most)

    async def made(self, chat: ChatScope, session: int, boundary_id: int, most: int) -> str:
        """The session's snapshot, made anew. Raises as `of`."""
        newest = await self._database.read(
            "SELECT COALESCE(MAX(id), 0) FROM memory_changes WHERE scope = ?", (chat.scope,)
        )
        text = await self.now(chat, most)
        values = {
            "session": session,
            "boundary": boundary_id,
            "text": text,
            "at": stamp(),
            "scope": chat.scope,
            "newest": newest[0][0],
            "shared": int(chat.scope == SHARED),
        }

        def op(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM memory_snapshots WHERE session_id = :session", values)
            # What changed while the files were read may not be in it.
            connection.execute(
                "INSERT INTO memory_snapshots (session_id, boundary_id, text, made_at, shared)"
                " SELECT :session, :boundary, :text, :at, :shared WHERE :newest ="
                " (SELECT COALESCE(MAX(id), 0) FROM memory_changes WHERE scope = :scope)",
                values,
            )

        await self._database.write(op)
        return text

    async def now(self, chat: ChatScope, most: int) -> str:
        """The snapshot as one would be made now. Raises as `of`."""
        forgotten = await self._tombstones.of(chat.scope)
        folder = scope_path(self._folder, chat.scope)
        text = await asyncio.to_thread(_made, folder, forgotten, min(most, MOST_SNAPSHOT))
        return f"{_OF_SEVERAL}\n\n{text}" if text and chat.scope == SHARED else text

    async def shown(self, chat: ChatScope, session: int) -> Shown | None:
        """What the session's last answer saw; None where something of it was forgotten since, or the
        memory is another one now."""
        return await self._database.look(lambda c: shown_in(c, chat.scope, session))


def shown_in(connection: sqlite3.Connection, scope: str, session: int) -> Shown | None:
    """As `Snapshots.shown`, inside a look or a write."""
    row = connection.execute(
        "SELECT boundary_id, text FROM memory_snapshots WHERE session_id = ? AND shared = ?"
        " ORDER BY id DESC LIMIT 1",
        (session, int(scope == SHARED)),
    ).fetchone()
    return None if row is None else Shown(int(row["boundary_id"]), str(row["text"]))


def drop_snapshots(connection: sqlite3.Connection, chat: ChatScope) -> None:
    """The next turn of each session of the memory's chats sees it as it is then. For use inside a
    write."""
    for each in chats_of(connection, chat):
        connection.execute(
            "DELETE FROM memory_snapshots WHERE session_id IN"
            " (SELECT id FROM sessions WHERE channel = ? AND account = ? AND chat = ?)",
            (each.channel, each.account, each.chat),
        )


def outdate_snapshots(connection: sqlite3.Connection, chat: ChatScope) -> None:
    """The same, where what the last answer saw may still be shown. For use inside a write."""
    for each in chats_of(connection, chat):
        connection.execute(
            "UPDATE memory_snapshots SET boundary_id = ? WHERE session_id IN"
            " (SELECT id FROM sessions WHERE channel = ? AND account = ? AND chat = ?)",
            (_OUTDATED, each.channel, each.account, each.chat),
        )


def quoted(lines: Iterable[str]) -> str:
    """Lines as a quotation: none can pass for a heading, a tag or the end of it."""
    return "\n".join(
        f"> {_TAG.sub('‹', ''.join(c if c.isprintable() else ' ' for c in part))}"
        for line in lines
        for part in line.splitlines()
    )


def is_within(shown: str, now: str) -> bool:
    """Whether each line that one snapshot quotes stands in the other too."""
    return _quotations(shown) <= _quotations(now)


def _quotations(text: str) -> set[str]:
    return {line for line in text.split("\n") if line.startswith("> ")}


def snapshot(
    facts: Sequence[Line], days: Sequence[tuple[str, str]], forgotten: Forgotten, most: int
) -> str:
    """`MEMORY.md` and days (name and text, the newest first) in at most `most` characters of them; of
    both the newest stay. Empty when there is nothing."""
    parts: list[str] = []
    for_days = round(most * SHARE_OF_DAYS)
    known = [line.raw for line in facts if line.raw.strip()]
    # An entry in other words than what was forgotten has been left by whoever chose among them.
    shown = _newest([line for line in known if not forgotten.repeats_line(line)], most - for_days)
    if shown:
        taken = size(facts)
        parts.append(
            f"Known for good ({taken.entries} of {MOST_ENTRIES} entries, "
            f"{taken.characters:,} of {MOST_CHARACTERS:,} characters):\n{quoted(shown)}"
        )
    for name, text in days:
        said = list(_said(text))
        kept = _newest(forgotten.without(said), for_days)
        for_days -= sum(map(len, kept))
        if kept:
            parts.append(f"From {name.removesuffix('.md')}:\n{quoted(kept)}")
    return "\n\n".join(parts)


def _said(text: str) -> Iterator[str]:
    """A day's lines, without what tools, pages, quotes and forwards said."""
    aside = False
    for line in text.splitlines():
        if line.startswith("#"):
            aside = is_aside(line)
        if line.strip() and not aside:
            yield line


def _newest(lines: Sequence[str], room: int) -> list[str]:
    kept: list[str] = []
    for line in reversed(lines):
        room -= len(line)
        if room < 0:
            break
        kept.append(line)
    kept.reverse()
    if kept and len(kept) < len(lines):
        kept.insert(0, _LEFT_OUT.format(count=len(lines) - len(kept)))
    return kept


def _made(folder: Path, forgotten: Forgotten, most: int) -> str:
    facts = parse(_text(folder / FACTS))
    days = sorted((name for name in names(folder) if day_of(name) is not None), reverse=True)[:DAYS]
    return snapshot(facts, [(name, _text(folder / name)) for name in days], forgotten, most)


def _text(path: Path) -> str:
    return read(path).decode("utf-8", "replace")
