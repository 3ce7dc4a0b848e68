"""Whose memory something belongs to, and where it lies: pure functions, and the only ones that make a
path from a name.

A scope is a private chat's person (`person:telegram:1:7`), a group (`group:telegram:1:-451`), or
`shared`: the groups that the operator has given one memory together. Its folder holds `MEMORY.md`, the
day files `YYYY-MM-DD.md`, and below `changes` what each night changed.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final
from urllib.parse import quote

SHARED: Final = "shared"
"""The scope of the groups that have one memory together. No other is called so: they have colons."""
PERSON: Final = "person:"
"""Begins the scopes of private chats, and no others."""
FACTS: Final = "MEMORY.md"
CHANGES: Final = "changes"
MARK: Final = ":p="
"""Stands in the keys of sessions of which nothing is kept, and in no other: what a key is made of has
no colon."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_DAY_NAME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.md")


@dataclass(frozen=True, slots=True)
class ChatScope:
    """A scope, and the chat whose conversations are looked at with it. `together`: channel and id of
    all chats of a shared one, empty where it is one chat's own."""

    scope: str
    channel: str
    account: str
    chat: str
    together: frozenset[tuple[str, str]] = frozenset()

    @property
    def index(self) -> str:
        """What its part of the index is called. The files of a shared memory are indexed for each of
        its chats, beside that chat's own conversations: no chat finds another's."""
        if self.scope != SHARED:
            return self.scope
        parts = (self.channel, self.account, self.chat)
        return ":".join((SHARED, *(quote(part, safe="-_") for part in parts)))


class NoSuchName(ValueError):
    """Not the name of a file of a scope."""


def scope_of(chat_key: str, *, private: bool, shared: bool = False) -> str:
    """The scope of the chat that is called `chat_key` in its sessions' keys. `shared`: the operator has
    listed it; a private chat never shares."""
    if shared and not private:
        return SHARED
    return f"{'person' if private else 'group'}:{chat_key}"


def scope_folder(scope: str) -> str:
    """A folder name for a scope: readable, injective, and never a path of its own.

    Every character beyond letters, digits, `_` and `-` becomes `-`; a hash of the whole scope keeps
    two scopes apart that then look the same. That of the shared scope has none: no other is like it.
    """
    if scope == SHARED:
        return SHARED
    readable = _UNSAFE.sub("-", scope).strip("-")[:60]
    hashed = hashlib.sha256(scope.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{readable}-{hashed}"


def scope_path(memory: Path, scope: str, name: str = "") -> Path:
    """The scope's folder below `memory`, or the file in it that is called `name`: `MEMORY.md` or
    `YYYY-MM-DD.md`, also below `changes`. Raises `NoSuchName` for everything else."""
    folder = memory / scope_folder(scope)
    if not name:
        return folder
    if name != FACTS and day_of(name.removeprefix(f"{CHANGES}/")) is None:
        raise NoSuchName(name)
    return folder / name


def scope_of_index(name: str) -> str:
    """The scope whose files are in the part of the index that is called `name` (`ChatScope.index`)."""
    return SHARED if name.startswith(f"{SHARED}:") else name


def day_name(day: date) -> str:
    """What the day's file is called."""
    return f"{day.isoformat()}.md"


def day_of(name: str) -> date | None:
    """The day of a day file's name, None where it is no such name."""
    if not _DAY_NAME.fullmatch(name):
        return None
    try:
        return date.fromisoformat(name[:10])
    except ValueError:
        return None
