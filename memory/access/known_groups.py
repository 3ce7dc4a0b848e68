"""Groups that the bot was added to: whether an owner has allowed them."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from memory.access.admissions import close_chat
from memory.audit import record
from memory.chats.reach import ChatPlace
from memory.clock import stamp
from memory.database import Database
from memory.jobs import set_once

LEAVE: Final = "leave_group"  # the job that leaves a group; its scope is `scope_of`
PATIENCE: Final = timedelta(hours=24)  # for an owner's answer
MOST_TOLD: Final = 10  # groups on a channel within an hour that owners are asked about

GroupState = Literal["asked", "allowed", "refused", "left"]
_COLUMNS = "channel, account, chat, state, title, language, deaf, added_by, decided_by, asked_at"


@dataclass(frozen=True, slots=True)
class Group:
    """A row; the columns are described in the migration."""

    place: ChatPlace
    state: GroupState
    title: str = ""
    language: str | None = None
    deaf: bool = False
    added_by: str = ""
    decided_by: str | None = None
    asked_at: str = ""

    def __str__(self) -> str:
        return f"{self.place.channel}:{self.place.chat}"

    @property
    def only_listed(self) -> bool:
        """Whether nothing but the configuration has let it in, which may not list it any more: the row
        tells that it was greeted."""
        return self.state == "allowed" and self.decided_by is None


@dataclass(frozen=True, slots=True)
class Met:
    """A group as it is stored now. `new`: it was not known, or was left. `tell`: owners are to be
    asked."""

    group: Group
    new: bool = False
    tell: bool = False


def scope_of(place: ChatPlace) -> str:
    """A group as the scope of a job."""
    return f"{place.channel}:{place.account}:{place.chat}"


class KnownGroups:
    """All of them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[Group]:
        """Every group, the newest first."""
        return await self._read("ORDER BY asked_at DESC")

    async def untold(self) -> list[Group]:
        """Those about which owners are still to be asked."""
        return await self._read("WHERE state = 'asked' AND told_at IS NULL ORDER BY asked_at")

    async def to_greet(self) -> list[Group]:
        """Those that are allowed, and have not heard so."""
        return await self._read("WHERE state = 'allowed' AND greeted_at IS NULL")

    async def _read(self, rest: str) -> list[Group]:
        rows = await self._database.read(f"SELECT {_COLUMNS} FROM known_groups {rest}")  # noqa: S608
        return [_group(row) for row in rows]

    async def meet(self, group: Group, *, anew: bool = False) -> Met:
        """The bot is in this group, which nobody has listed: an owner is to decide, else it is left
        after `PATIENCE`. `anew`: also where one has refused it before."""
        now = datetime.now(UTC)
        return await self._database.write(
            lambda connection: _meet(connection, group, now, anew=anew)
        )

    async def welcome(self, group: Group) -> bool:
        """The bot is in this group, which the configuration lists; whether it is to be greeted."""

        def op(connection: sqlite3.Connection) -> bool:
            _put(connection, group, "allowed", stamp())
            row = connection.execute(
                f"SELECT greeted_at FROM known_groups WHERE {_HERE}",  # noqa: S608
                _key(group.place),
            ).fetchone()
            return row[0] is None

        return await self._database.write(op)

    async def titled(self, place: ChatPlace, title: str) -> None:
        """The group calls itself so."""
        await self._note("title", title, place)

    async def told(self, place: ChatPlace) -> None:
        """The owners were asked."""
        await self._note("told_at", stamp(), place)

    async def greeted(self, place: ChatPlace) -> None:
        """It was greeted."""
        await self._note("greeted_at", stamp(), place)

    async def _note(self, column: str, value: str, place: ChatPlace) -> None:
        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                f"UPDATE known_groups SET {column} = ? WHERE {_HERE}",  # noqa: S608 - our columns
                (value, *_key(place)),
            )

        await self._database.write(op)

    async def allow(self, channel: str, chat: str, by: str) -> Group | None:
        """An owner lets a group in that waits for it; None for one that does not."""

        def op(connection: sqlite3.Connection) -> Group | None:
            found = _find(connection, channel, chat)
            if found is None or found.state != "asked":
                return None
            _decide(connection, found.place, "allowed", by)
            connection.execute(
                "DELETE FROM jobs WHERE kind = ? AND scope = ?", (LEAVE, scope_of(found.place))
            )
            record(connection, by, "group.allowed", str(found), found.state, "allowed")
            return found

        return await self._database.write(op)

    async def refuse(self, channel: str, chat: str, by: str) -> Group | None:
        """It is refused, or allowed no more: to be left at once, and what waits in it is closed. None
        for one that is not known, or refused already."""
        now = datetime.now(UTC)

        def op(connection: sqlite3.Connection) -> Group | None:
            found = _find(connection, channel, chat) or _used(connection, channel, chat)
            if found is None or found.state == "refused":
                return None
            _put(connection, found, found.state, found.asked_at or stamp(now))
            _decide(connection, found.place, "refused", by)
            close_chat(connection, channel, found.place.chat)
            set_once(connection, LEAVE, scope_of(found.place), now)
            action = "group.revoked" if found.state == "allowed" else "group.refused"
            record(connection, by, action, str(found), found.state, "refused")
            return found

        return await self._database.write(op)

    async def left(self, place: ChatPlace) -> None:
        """Nobody has answered in time, and it was left."""

        def op(connection: sqlite3.Connection) -> None:
            cursor = connection.execute(
                f"UPDATE known_groups SET state = 'left' WHERE {_HERE} AND state = 'asked'",  # noqa: S608
                _key(place),
            )
            if cursor.rowcount:
                target = f"{place.channel}:{place.chat}"
                record(connection, "galata", "group.left", target, "asked", "left")

        await self._database.write(op)

    async def out(self, place: ChatPlace) -> None:
        """It was left, which is to be tried no more."""

        def op(connection: sqlite3.Connection) -> None:
            connection.execute(
                "DELETE FROM jobs WHERE kind = ? AND scope = ?", (LEAVE, scope_of(place))
            )

        await self._database.write(op)

    async def find(self, channel: str, chat: str) -> Group | None:
        """The group by its id."""
        rows = await self._database.read(
            f"SELECT {_COLUMNS} FROM known_groups WHERE channel = ? AND chat = ?",  # noqa: S608
            (channel, chat),
        )
        return _group(rows[0]) if rows else None


_HERE = "channel = ? AND account = ? AND chat = ?"


def _key(place: ChatPlace) -> tuple[str, str, str]:
    return place.channel, place.account, place.chat


def _meet(connection: sqlite3.Connection, group: Group, now: datetime, *, anew: bool) -> Met:
    known = _find(connection, group.place.channel, group.place.chat)
    again = known is None or known.only_listed or known.state == "left"
    again = again or (anew and known is not None and known.state == "refused")
    if known is not None and not again:
        return Met(known)
    recent = connection.execute(
        "SELECT COUNT(*) FROM known_groups WHERE channel = ? AND asked_at > ?",
        (group.place.channel, stamp(now - timedelta(hours=1))),
    ).fetchone()[0]
    tell = int(recent) < MOST_TOLD
    _put(connection, group, "asked", stamp(now))
    connection.execute(
        f"UPDATE known_groups SET state = 'asked', asked_at = ?, told_at = ?, added_by = ?,"  # noqa: S608
        f" decided_by = NULL WHERE {_HERE}",
        (
            *(stamp(now), None if tell else stamp(now), group.added_by),
            *_key(group.place),
        ),
    )
    set_once(connection, LEAVE, scope_of(group.place), now + PATIENCE)
    return Met(group, new=True, tell=tell)


def _put(connection: sqlite3.Connection, group: Group, state: GroupState, at: str) -> None:
    """A new row; one that is there keeps its decision and learns the rest."""
    connection.execute(
        "INSERT INTO known_groups (channel, account, chat, state, title, language, deaf, added_by,"
        " asked_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (channel, account, chat)"
        " DO UPDATE SET deaf = excluded.deaf",
        (
            *(*_key(group.place), state, group.title, group.language),
            *(int(group.deaf), group.added_by, at),
        ),
    )


def _decide(connection: sqlite3.Connection, place: ChatPlace, state: GroupState, by: str) -> None:
    connection.execute(
        f"UPDATE known_groups SET state = ?, decided_by = ?, decided_at = ? WHERE {_HERE}",  # noqa: S608
        (state, by, stamp(), *_key(place)),
    )


def _find(connection: sqlite3.Connection, channel: str, chat: str) -> Group | None:
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM known_groups WHERE channel = ? AND chat = ?",  # noqa: S608
        (channel, chat),
    ).fetchone()
    return None if row is None else _group(row)


def _used(connection: sqlite3.Connection, channel: str, chat: str) -> Group | None:
    """A group that the configuration lists, in which something was said. A private chat may
    have the id of its person."""
    row = connection.execute(
        "SELECT account FROM inbox WHERE channel = ? AND chat = ? AND json_valid(body)"
        " AND json_extract(body, '$.address.private') = 0 LIMIT 1",
        (channel, chat),
    ).fetchone()
    return None if row is None else Group(ChatPlace(channel, row[0], chat), "allowed")


def _group(row: sqlite3.Row) -> Group:
    return Group(
        ChatPlace(row["channel"], row["account"], row["chat"]),
        row["state"],
        row["title"],
        row["language"],
        bool(row["deaf"]),
        row["added_by"],
        row["decided_by"],
        row["asked_at"],
    )
