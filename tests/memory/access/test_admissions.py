"""What is kept of who may talk follows a chat's move, and goes with a person's name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory.access.admissions import Admissions, Someone
from memory.access.known_groups import LEAVE, Group, KnownGroups
from memory.access.pairings import Pairings
from memory.chats.erasing import erase_person
from memory.chats.reach import ChatPlace, Chats, Move
from memory.database import Database
from memory.jobs import Jobs

OLD, NEW = ChatPlace("telegram", "1", "-451"), ChatPlace("telegram", "1", "-100247")
MOVE = Move("telegram", "1", OLD.chat, NEW.chat)
EVE = Someone("telegram", "9", "Eve", "de")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "galata.db")
    yield opened
    await opened.close()


async def test_a_group_that_moves_takes_its_decision_and_its_deadline_along(
    database: Database,
) -> None:
    groups, chats = KnownGroups(database), Chats(database)
    await chats.load()
    await groups.meet(Group(OLD, "asked", added_by="9"))
    await groups.meet(Group(NEW, "asked", added_by="9"))  # told before the move is
    await groups.allow("telegram", OLD.chat, "telegram:1")
    await chats.expect(MOVE)
    await chats.carry(MOVE, lambda key: key)
    (group,) = await groups.all()
    assert (group.place, group.state) == (NEW, "allowed")
    await groups.meet(Group(ChatPlace("telegram", "1", "-5"), "asked"))
    await chats.carry(Move("telegram", "1", "-5", "-1005"), lambda key: key)
    jobs = [row.scope for row in await Jobs(database).all() if row.kind == LEAVE]
    assert "telegram:1:-1005" in jobs


async def test_an_erased_chat_is_not_known_any_more(database: Database) -> None:
    groups, chats = KnownGroups(database), Chats(database)
    await chats.load()
    await groups.meet(Group(OLD, "asked"))
    await chats.erase(OLD)
    assert await groups.all() == []
    assert [row for row in await Jobs(database).all() if row.kind == LEAVE] == []


async def test_an_erased_person_keeps_the_right_and_loses_the_name(database: Database) -> None:
    asked = await Pairings(database).ask(EVE)
    await Pairings(database).approve(asked.code, "operator")
    await database.write(lambda c: erase_person(c, "telegram", "9", "telegram:9"))
    (one,) = await Admissions(database).all()
    assert (one.who, one.state) == (Someone("telegram", "9", "", None), "in")
    assert await database.read("SELECT * FROM pairings") == []


async def test_a_decision_and_its_line_in_the_audit_are_one(database: Database) -> None:
    """Deciding again changes nothing, and says nothing."""
    asked = await Pairings(database).ask(EVE)
    first = await Pairings(database).decide(asked.id, "telegram:1", allow=False)
    again = await Pairings(database).decide(asked.id, "telegram:2", allow=True)
    assert (first.how, again.how) == ("done", "over")
    assert await Admissions(database).all() == []
    rows = await database.read("SELECT actor, action, target FROM audit")
    assert [tuple(row) for row in rows] == [("telegram:1", "person.refused", "telegram:9")]
