"""What a person calls themselves in a chat, and what that proves: hardly anything.

Everybody picks their own name, so a name is theirs only where nobody else has used it in the chat, and
only for what was written while they had it there. That a text speaks of them it shows only when it is
no word that texts hold anyway, and is the name by which the bot has first met them: whoever takes
another name gains nothing. Where that leaves a doubt, it is an admin who decides.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from memory.scopes import ChatScope
from memory.text.telling import is_ordinary

MOST_CHARACTERS: Final = 32
_FORGING = re.compile(r"[\[\](){}<>#:|`*_\\]+")
_NOBODY: Final = "Someone"
_SHORTEST = 2  # letters of a name
_NO_NAME_AFTER = re.compile(r"\b(?:the|an?|on|at|in|this|next|last|every|each|no|my|our)\s+$", re.I)
_ZONES: Final = timedelta(days=1)  # between the days of two zones
_NEVER: Final = "9999"


def plain_name(name: str) -> str:
    """The name without line breaks, brackets and control characters, capped, so that no name can
    imitate another speaker's line or a heading."""
    plain = "".join(
        character if character.isprintable() else " "
        for character in unicodedata.normalize("NFKC", name)
    )
    kept = " ".join(_FORGING.sub(" ", plain).split())[:MOST_CHARACTERS].strip()
    return kept or _NOBODY


@dataclass(frozen=True, slots=True)
class OwnName:
    """One that a person alone has had in a chat, from a time until another (ISO, UTC). `tells`: whether
    a text that has it is about them. `signed`: since when lines may be signed with it: of the oldest
    name that is still stored since the person, by their id, was in the chat."""

    name: str
    since: str
    until: str = _NEVER
    tells: bool = False
    signed: str = _NEVER

    def signs(self, who: str, day: date) -> bool:
        """Whether it is the person who is named as the one who said a line of that day."""
        first, last = (day + _ZONES).isoformat(), (day - _ZONES).isoformat()
        return who == self.name and self.signed[:10] <= first and last <= self.until[:10]

    def stands_in(self, text: str, written: str) -> bool:
        """Whether a text of that time (ISO, of a day alone its beginning) is about the person."""
        return self.tells and self.since < written < self.until and stands_in(self.name, text)

    def heads(self, title: str, day: date) -> bool:
        """Whether a title of that day names the person; of it no hour is known, and only a title is
        lost where it is about somebody else."""
        first, last = (day + _ZONES).isoformat(), (day - _ZONES).isoformat()
        had = self.since[:10] <= first and last <= self.until[:10]
        return self.tells and had and stands_in(self.name, title)


def stands_in(name: str, text: str) -> bool:
    """As a word that follows no article and no preposition of place or time; in scripts without spaces
    between words wherever it stands. One letter tells nothing."""
    if len(name) < _SHORTEST:
        return False
    if not name.isascii():
        return name in text
    found = re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text)
    return any(_NO_NAME_AFTER.search(text[: each.start()]) is None for each in found)


def own_names(
    connection: sqlite3.Connection,
    chats: Sequence[ChatScope],
    channel: str,
    person: str,
    lines: Sequence[tuple[date, str]],
) -> tuple[OwnName, ...]:
    """Those that the person alone has had in these chats. `lines` of their memory, with their days:
    what stood in one before the person was there is the name of something else."""
    first = _first(connection, channel, person)
    found: list[OwnName] = []
    others = frozenset[str]().union(*(_others(connection, c, channel, person) for c in chats))
    for chat in chats:
        spans = _spans(connection, chat, person) if chat.channel == channel else []
        signed = _there_since(connection, chat, person)
        for name, since, until in spans:
            begins, signed = min(since, signed), _NEVER
            if name.casefold() in others or name == _NOBODY:
                continue
            proves = name == first and not is_common(name)
            proves = proves and not _was_a_word(connection, chat, person, name, since)
            proves = proves and not any(
                day.isoformat() < begins[:10] and stands_in(name, text) for day, text in lines
            )
            found.append(OwnName(name, since, until, proves, begins))
    return tuple(found)


def names_of(connection: sqlite3.Connection, channel: str, person: str) -> set[str]:
    """All names that are stored with what the person has written on the channel."""
    rows = connection.execute(
        "SELECT DISTINCT json_extract(body, '$.sender.name') FROM inbox WHERE channel = ?"
        " AND person = ? AND json_valid(body)",
        (channel, person),
    )
    return {plain_name(str(name)) for (name,) in rows if name}


def is_common(name: str) -> bool:
    """Whether it is a word that texts hold anyway; in scripts with capitals a name begins with one."""
    return name[0].islower() or is_ordinary(name)


def _first(connection: sqlite3.Connection, channel: str, person: str) -> str | None:
    """The name by which the bot has met them, as far as it is stored."""
    row = connection.execute(
        "SELECT json_extract(body, '$.sender.name') FROM inbox WHERE channel = ? AND person = ?"
        " AND json_valid(body) ORDER BY id LIMIT 1",
        (channel, person),
    ).fetchone()
    return plain_name(str(row[0])) if row and row[0] else None


def _others(connection: sqlite3.Connection, chat: ChatScope, channel: str, person: str) -> set[str]:
    """The names that others have used there."""
    rows = connection.execute(
        "SELECT DISTINCT json_extract(body, '$.sender.name') FROM inbox WHERE channel = ?"
        " AND account = ? AND chat = ? AND (channel, person) <> (?, ?) AND json_valid(body)",
        (chat.channel, chat.account, chat.chat, channel, person),
    )
    return {plain_name(str(name)).casefold() for (name,) in rows if name}


def _spans(
    connection: sqlite3.Connection, chat: ChatScope, person: str
) -> list[tuple[str, str, str]]:
    """Each name of theirs with the time of the first message under it and that of the first one after
    it under another."""
    rows = connection.execute(
        "SELECT json_extract(body, '$.sender.name'), received_at FROM inbox WHERE channel = ?"
        " AND account = ? AND chat = ? AND person = ? AND json_valid(body) ORDER BY id",
        (chat.channel, chat.account, chat.chat, person),
    )
    spans: list[tuple[str, str, str]] = []
    for raw, at in rows:
        name = plain_name(str(raw)) if raw else _NOBODY
        if spans and spans[-1][0] == name:
            continue
        if spans:
            spans[-1] = (*spans[-1][:2], str(at))
        spans.append((name, str(at), _NEVER))
    return spans


def _there_since(connection: sqlite3.Connection, chat: ChatScope, person: str) -> str:
    """When the person has first asked there; what was used is kept longer than what was said."""
    where = "channel = :channel AND account = :account AND chat = :chat AND person = :person"
    (at,) = connection.execute(
        f"SELECT MIN(at) FROM (SELECT MIN(began_at) AS at FROM usage_days WHERE {where}"  # noqa: S608
        f" UNION ALL SELECT MIN(received_at) FROM inbox WHERE {where})",
        {
            "channel": chat.channel,
            "account": chat.account,
            "chat": chat.chat,
            "person": person,
        },
    ).fetchone()
    return str(at) if at is not None else _NEVER


def _was_a_word(
    connection: sqlite3.Connection, chat: ChatScope, person: str, name: str, since: str
) -> bool:
    """Whether others have written it there before the person was known by it."""
    rows = connection.execute(
        "SELECT json_extract(body, '$.text') FROM inbox WHERE channel = ? AND account = ?"
        " AND chat = ? AND person <> ? AND received_at < ? AND json_valid(body)"
        " AND instr(json_extract(body, '$.text'), ?)",
        (chat.channel, chat.account, chat.chat, person, since, name),
    )
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)" if name.isascii() else re.escape(name))
    return any(word.search(str(text)) for (text,) in rows)
