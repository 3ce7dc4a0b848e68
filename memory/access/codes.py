"""Codes that people pass on: made here, kept as a hash, and not to be guessed."""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from datetime import datetime, timedelta
from typing import Final

from memory.clock import stamp

INVITE_PREFIX: Final = "inv_"
ALPHABET: Final = "ACDEFGHJKMNPQRTUVWXY34679"  # nothing that looks like something else
LENGTH: Final = 8  # 1.5e11 codes, of which three are good at a time
MOST_WRONG: Final = 5  # codes of one person within `WRONG_FOR`
WRONG_FOR: Final = timedelta(hours=1)


def short_code() -> str:
    """One that a person reads out or types."""
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def invite_code() -> str:
    """One for a link."""
    return INVITE_PREFIX + secrets.token_urlsafe(16)


def digest(code: str) -> str:
    """What is stored of a code."""
    return hashlib.sha256(code.encode()).hexdigest()


def plain(typed: str) -> str:
    """A short code as it was typed, in lower case or with gaps."""
    return "".join(character for character in typed.upper() if character.isalnum())


def too_many_wrong(connection: sqlite3.Connection, tried_by: str, now: datetime) -> bool:
    """Whether no more codes of that person are looked at for now; inside a write."""
    connection.execute("DELETE FROM wrong_codes WHERE at <= ?", (stamp(now - WRONG_FOR),))
    row = connection.execute(
        "SELECT COUNT(*) FROM wrong_codes WHERE tried_by = ? AND at <= ?", (tried_by, stamp(now))
    ).fetchone()
    return int(row[0]) >= MOST_WRONG


def note_wrong(connection: sqlite3.Connection, tried_by: str, now: datetime) -> None:
    """The person has tried a code that is none; inside a write."""
    connection.execute("INSERT INTO wrong_codes VALUES (?, ?)", (tried_by, stamp(now)))
