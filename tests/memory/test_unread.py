"""Where a platform's history is to be read, across restarts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from memory.conversations import Conversations, SessionPlace
from memory.database import Database
from memory.inbox import Entry, Inbox
from memory.unread import KnownPlace, UnreadPlaces, note_restore


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "galata.db")
    yield opened
    await opened.close()


def place(chat: str, thread: str | None = None) -> SessionPlace:
    return SessionPlace(f"slack:T:{chat}:t={thread}", "slack", "T", chat, thread)


def entry(chat: str, number: int) -> Entry:
    return Entry(place(chat), f"m:{number}", "ana", "turn", "{}", at(number).isoformat())


def at(second: int) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T10:00:{second:02}+00:00")


async def test_known_places_are_those_of_the_account_with_their_newest_message(
    database: Database,
) -> None:
    inbox, unread = Inbox(database), UnreadPlaces(database)
    for number in (1, 3, 2):
        await inbox.put(entry("5", number))
    await inbox.put(replace(entry("5", 9), event="c:9"))
    await inbox.put(entry("6", 4))
    await Conversations(database).open(place("8", "44"))
    known = await unread.known("slack", "T")
    assert [(one.chat, one.thread) for one in known] == [("8", "44"), ("6", None), ("5", None)]
    assert known[-1].newest == at(3)
    assert await unread.known("slack", "other") == []


async def test_a_place_that_was_left_unread_is_first_and_newer_messages_do_not_hide_it(
    database: Database,
) -> None:
    inbox, unread = Inbox(database), UnreadPlaces(database)
    await inbox.put(entry("5", 3))
    await inbox.put(entry("6", 4))
    left = [KnownPlace("5", None, at(1)), KnownPlace("9", "7", at(2))]
    await unread.leave("slack", "T", left)
    await inbox.put(entry("5", 8))
    assert await unread.known("slack", "T") == [*left, KnownPlace("6", None, at(4))]
    await unread.leave("slack", "T", left[1:])
    assert KnownPlace("5", None, at(8)) in await unread.known("slack", "T")


async def test_the_last_restore_is_known(database: Database) -> None:
    unread = UnreadPlaces(database)
    assert await unread.restored_at() is None
    await database.write(lambda connection: note_restore(connection, "2026-11-01"))
    assert await unread.restored_at() is not None
