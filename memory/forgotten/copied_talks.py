"""Transcripts of what was too long for a context (`memory.transcripts`), without what is forgotten."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterable
from pathlib import Path

from agent.messages import Message, MessageFormatError, decode, encode
from memory.forgotten.copies import cleaned
from memory.forgotten.resting import Run
from memory.markdown.files import FRESH, sync_folder, write
from memory.scopes import ChatScope, scope_folder
from memory.tombstones import Forgotten


def session_keys(connection: sqlite3.Connection, chats: Iterable[ChatScope]) -> list[str]:
    """Those of all sessions of the chats."""
    return [
        str(row[0])
        for each in chats
        for row in connection.execute(
            "SELECT key FROM sessions WHERE channel = ? AND account = ? AND chat = ?",
            (each.channel, each.account, each.chat),
        )
    ]


def bodies_of(connection: sqlite3.Connection, runs: Iterable[Run]) -> set[str]:
    """The runs' messages, as they are stored."""
    return {
        str(row[0])
        for run_id, _ in runs
        for row in connection.execute("SELECT body FROM messages WHERE run_id = ?", (run_id,))
    }


def scrub_transcripts(
    folder: Path, keys: Iterable[str], gone: Collection[str], forgotten: Forgotten
) -> None:
    """Take the messages `gone` (as they are stored), and of others what says something `forgotten`, out
    of the transcripts of these sessions, below `folder`. Raises `OSError`."""
    for key in keys:
        for path in sorted((folder / scope_folder(key)).glob("*.jsonl")):
            if path.is_symlink():
                continue
            before = path.read_bytes()
            after = _without(before, gone, forgotten)
            if after != before:
                _replace(path, after)


def _without(data: bytes, gone: Collection[str], forgotten: Forgotten) -> bytes:
    lines = [line for line in data.decode("utf-8", "replace").split("\n") if line]
    kept = [message for line in lines if line not in gone for message in _read(line)]
    made = list(map(encode, cleaned(kept, forgotten)))
    if made == lines:
        return data
    return b"".join(line.encode("utf-8", "backslashreplace") + b"\n" for line in made)


def _read(line: str) -> list[Message]:
    try:
        return [decode(line)]
    except MessageFormatError:  # nobody can read it
        return []


def _replace(path: Path, data: bytes) -> None:
    """As old as it was: by its age it is deleted."""
    facts = path.stat()
    fresh = path.with_name(FRESH)
    write(fresh, data)
    os.utime(fresh, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    fresh.replace(path)
    sync_folder(path.parent)
