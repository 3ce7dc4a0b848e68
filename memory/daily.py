"""Day files: what leaves a conversation's context is kept as plain Markdown.

`memory/<scope>/YYYY-MM-DD.md` in the data folder, named by the date in the chat's zone. Appended in
one write with O_APPEND and synced, so that no crash and no second writer tears an entry.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from agent.messages import Message, TextBlock, ToolUseBlock

MOST_CHARACTERS = 500  # of one message in a digest; the whole text stays in the database
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def scope_folder(scope: str) -> str:
    """A folder name for a scope: readable, injective, and never a path of its own.

    Every character beyond letters, digits, `_` and `-` becomes `-`; a hash of the whole scope keeps
    two scopes apart that then look the same.
    """
    readable = _UNSAFE.sub("-", scope).strip("-")[:60]
    return f"{readable}-{hashlib.sha256(scope.encode()).hexdigest()[:10]}"


class DailyFiles:
    """The day files below `folder` (created with mode 0700, files 0600)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = asyncio.Lock()

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
        path = self._folder / scope_folder(scope) / f"{now:%Y-%m-%d}.md"
        async with self._lock:
            await asyncio.to_thread(_append, path, text)
        return path


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


def _append(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        data = text.encode(errors="replace")  # half a character alone: no reason to lose the rest
        if os.write(handle, data) != len(data):
            raise OSError(f"{path}: only a part could be written; is the disk full?")
        os.fsync(handle)
    finally:
        os.close(handle)
