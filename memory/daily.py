"""Day files: what was said in a conversation is kept as plain Markdown.

`memory/<scope>/YYYY-MM-DD.md` in the data folder, named by the messages' date in the chat's zone.
Appended in one write under the folder's lock and synced, so that no crash and no second writer tears
or doubles an entry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path

from agent.messages import Message, TextBlock, ToolUseBlock
from memory.files import append, locked, read
from memory.flush import Entry
from memory.scopes import CHANGES, day_name, day_of, scope_path

MOST_CHARACTERS = 500  # of one message in a digest; the whole text stays in the database


class DailyFiles:
    """The day files below `folder` (created with mode 0700, files 0600). Every method may raise
    `OSError`, and what stands in the files is as it was then."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def flush(
        self, scope: str, messages: Sequence[Message], now: datetime, summary: str | None = None
    ) -> Path | None:
        """Append `summary`, or without one a digest of `messages`, to the day's file; None when
        there is nothing to keep.

        `now` is in the chat's zone. Raises `OSError` when it cannot be written.
        """
        text = digest(messages, now) if summary is None else _entry(summary, now)
        if not text:
            return None
        path = scope_path(self._folder, scope, day_name(now.date()))
        # Half a character alone is no reason to lose the rest.
        await asyncio.to_thread(_append, path, text.encode(errors="replace"))
        return path

    async def keep(self, scope: str, entry: Entry) -> bool:
        """Append the entry, unless it stands in its file already; whether it did not."""
        path = scope_path(self._folder, scope, day_name(entry.day))
        return await asyncio.to_thread(_keep, path, entry.text, entry.heading)

    async def read(self, scope: str, day: date) -> bytes:
        """What the day's file holds; nothing where there is none."""
        path = scope_path(self._folder, scope, day_name(day))
        return await asyncio.to_thread(read, path)

    async def days(self, scope: str) -> list[date]:
        """The days that have a file, the oldest first."""
        return await asyncio.to_thread(_days, scope_path(self._folder, scope))

    async def note_changes(self, scope: str, day: date, text: str) -> None:
        """Append to the day's file of what the nights have changed."""
        folder = scope_path(self._folder, scope)
        path = scope_path(self._folder, scope, f"{CHANGES}/{day_name(day)}")
        await asyncio.to_thread(_note, folder, path, text)


def _keep(path: Path, text: str, heading: str) -> bool:
    with locked(path.parent):
        if heading.encode() in read(path).splitlines():
            return False
        # Half a character alone is no reason to lose the rest.
        append(path, text.encode(errors="replace"))
        return True


def _days(folder: Path) -> list[date]:
    if not folder.is_dir():
        return []
    found = (day_of(path.name) for path in folder.iterdir())
    return sorted(day for day in found if day is not None)


def _note(folder: Path, path: Path, text: str) -> None:
    with locked(folder):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        append(path, text.encode(errors="replace"))


def digest(messages: Sequence[Message], now: datetime) -> str:
    """Plain lines of who said what; tool calls by name, without results. Empty when nothing was
    said."""
    lines = [line for message in messages for line in _lines(message)]
    if not lines:
        return ""
    return _entry("\n".join(lines), now)


def _entry(text: str, now: datetime) -> str:
    return f"\n## {now:%H:%M} · left the conversation\n\n{text}\n"


def _lines(message: Message) -> list[str]:
    lines: list[str] = []
    for block in message.blocks:
        if isinstance(block, TextBlock) and block.text.strip():
            words = " ".join(block.text.split())
            short = words if len(words) <= MOST_CHARACTERS else words[:MOST_CHARACTERS] + " …"
            lines.append(f"- **{message.role}**: {short}")
        elif isinstance(block, ToolUseBlock):
            lines.append(f"- **{message.role}** used the tool `{block.name}`")
    return lines


def _append(path: Path, data: bytes) -> None:
    with locked(path.parent):
        append(path, data)
