"""Chats that move, that are gone, and that come back, seen from the bridge."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import bridge.chats.keeper
from agent.messages import user_text
from bridge.scheduler import Due
from bridge.session import rekeyed, session_of
from channels.base import Address, InboundMessage
from memory.chats.reach import ChatPlace
from memory.daily import DailyFiles
from memory.notes.flush import Entry as DayEntry
from memory.scopes import scope_folder
from tests.bridge.bed import Bed, bed

OLD, NEW = "team", "-100247"
PACKAGES = ("agent", "bridge", "channels", "memory")


def moved(bed: Bed) -> InboundMessage:
    """The service message; `OLD` is in the configuration's list, `NEW` is not."""
    plain = bed.channel.message("", chat=NEW, private=False)
    return replace(plain, addressed=False, moved_from=OLD)


def member(bed: Bed, *, left: bool, chat: str = OLD, private: bool = False) -> InboundMessage:
    plain = bed.channel.message("", chat=chat, private=private)
    return replace(plain, addressed=False, left=left, joined=not left)


def paths(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


async def test_a_conversation_goes_on_under_the_new_id(tmp_path: Path) -> None:
    async with bed(tmp_path, ["one", "two"]) as made:
        await made.ask("My cat is Pablo.", person="eve", chat=OLD, private=False)
        for _ in range(2):  # both service messages, and again after a lost connection
            await made.bridge.receive(moved(made))
        await made.bridge.idle()
        assert await made.ask("and?", person="eve", chat=NEW, private=False) == "two"
        assert [text for _, text in made.said()][:2] == ["[Eve#1] My cat is Pablo.", "one"]
        assert made.channel.replies[-1].to.chat == NEW
        assert [m.old for m in made.access.outdated] == [OLD], "the operator has to be told"


async def test_the_service_message_is_not_given_to_the_model_nor_answered(tmp_path: Path) -> None:
    async with bed(tmp_path) as made:
        await made.bridge.receive(moved(made))
        await made.bridge.receive(member(made, left=True))
        await made.bridge.receive(member(made, left=False))
        await made.bridge.idle()
        assert made.channel.replies == []
        assert made.provider.requests == []


async def test_a_move_waits_for_the_running_answer_and_what_comes_meanwhile_waits_for_it(
    tmp_path: Path,
) -> None:
    gate = asyncio.Event()
    async with bed(tmp_path, ["one", "two", "three"], stall=gate) as made:
        await made.send("first", person="eve", chat=OLD, private=False)
        await made.until(lambda: made.provider.requests)
        await made.send("second", person="bo", chat=OLD, private=False)
        await made.bridge.receive(moved(made))
        await made.send("third", person="eve", chat=NEW, private=False)
        assert len(made.provider.requests) == 1, "no second run in what is one conversation"
        gate.set()
        await made.until(lambda: len(made.channel.finals) == 3)
        await made.bridge.idle()
        questions = [text for role, text in made.said() if role == "user"]
        assert questions == ["[Eve#1] first", "[Bo#2] second", "[Eve#1] third"]
        chats = [reply.to.chat for reply in made.channel.replies if reply.final]
        assert chats[-2:] == [NEW, NEW]


@pytest.mark.parametrize("word", ["/cancel", "stop"])
async def test_a_stop_in_the_new_group_finds_the_run_of_the_old_one(
    tmp_path: Path, word: str
) -> None:
    async with bed(tmp_path, stall=asyncio.Event()) as made:
        await made.send("first", person="eve", chat=OLD, private=False)
        await made.until(lambda: made.provider.streaming.is_set())
        await made.send("second", person="eve", chat=OLD, private=False)
        await made.bridge.receive(moved(made))
        await made.send(word, person="eve", chat=NEW, private=False)
        await made.until(lambda: [f for f in made.channel.finals if "Stopped." in f])
        await made.bridge.idle()
        assert [f for f in made.channel.finals if "Waiting messages that I dropped: 1" in f]
        assert len(made.provider.requests) == 1


async def test_a_crash_before_the_rows_followed_is_made_up_at_the_next_start(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["one"]) as made:
        await made.ask("My cat is Pablo.", person="eve", chat=OLD, private=False)
        address = made.channel.message("", chat=NEW, private=False).address
        move = bridge.chats.keeper.Move("fake", address.account, OLD, NEW)
        assert await made.services.chats.expect(move)
    async with bed(tmp_path, ["two"]) as made:
        await made.bridge.resume()
        assert await made.ask("and?", person="eve", chat=NEW, private=False) == "two"
        assert "My cat is Pablo." in str(made.said())


async def test_a_late_message_of_the_old_id_is_stored_once_and_answered_in_the_new_chat(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["one", "two"]) as made:
        first = await made.send("first", person="eve", chat=OLD, private=False)
        await made.until(lambda: made.channel.finals)
        await made.bridge.idle()
        await made.bridge.receive(moved(made))
        await made.bridge.idle()
        await made.bridge.receive(first)  # delivered again
        late = await made.ask("late", person="eve", chat=OLD, private=False)
        assert late == "two"
        assert made.channel.replies[-1].to.chat == NEW
        assert not made.channel.replies[-1].reply_to, "the number is another message there"


async def test_memory_and_transcripts_follow_and_are_joined(tmp_path: Path) -> None:
    async with bed(tmp_path) as made:
        services = made.services
        account = made.channel.message("").address.account
        noon = datetime(2026, 11, 30, 12, tzinfo=UTC)
        for chat, word in ((OLD, "before"), (NEW, "after")):
            address = Address("fake", account, chat, None, private=False)
            place = session_of(address, "eve", "shared")
            session = await services.conversations.open(place)
            said = [user_text(word)]
            scope = bridge.chats.keeper.memory_scope(address)
            heading = f"## 12:00–12:00 · conversation {session}, messages 1–2"
            daily = DailyFiles(tmp_path / "memory")
            await daily.keep(scope, DayEntry(noon.date(), heading, f"\n{heading}\n\n{word}\n"))
            await services.transcripts.snapshot(session, place.key, said, noon)
        await made.bridge.receive(moved(made))
        await made.bridge.idle()
        scope = bridge.chats.keeper.memory_scope(Address("fake", account, NEW, None, private=False))
        text = (tmp_path / "memory" / scope_folder(scope) / "2026-11-30.md").read_text()
        assert text.index("before") < text.index("after")
        await made.bridge.chats.settle()
        again = (tmp_path / "memory" / scope_folder(scope) / "2026-11-30.md").read_text()
        assert again == text
        assert not [path for path in paths(tmp_path) if OLD in path]


def test_every_folder_that_is_named_after_a_chat_is_known() -> None:
    """What makes a folder for a chat calls `scope_folder`; memory/markdown/folders.py must know it."""
    root = Path(__file__).parents[3]
    users = {
        str(path.relative_to(root))
        for package in PACKAGES
        for path in (root / package).rglob("*.py")
        if "scope_folder(" in path.read_text()
    }
    makers = {"memory/scopes.py", "memory/transcripts.py", "memory/markdown/folders.py"}
    take_away = {"memory/chats/chat_retention.py", "memory/forgotten/copied_talks.py"}
    assert users - take_away == makers


async def test_a_gone_chat_comes_back_with_the_next_message_from_there(tmp_path: Path) -> None:
    async with bed(tmp_path, ["hello"]) as made:
        here = made.channel.message("", chat="1").address
        await made.bridge.chats.gone(replace(here, thread="7"))
        assert not made.bridge.chats.is_gone(here)
        await made.bridge.chats.gone(here)
        assert made.bridge.chats.is_gone(here)
        assert await made.ask("hi", chat="1") == "hello"
        assert not made.bridge.chats.is_gone(here)


def heard(channel: str) -> bool:
    return channel == "fake"


async def test_a_chat_that_the_bot_was_removed_from_is_erased_after_30_days_unless_it_returns(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["one", "two", "three"]) as made:
        for chat in ("team", "1"):
            private = chat == "1"
            await made.ask("hi", chat=chat, private=private)
            await made.bridge.receive(member(made, left=True, chat=chat, private=private))
        keeper, now = made.bridge.chats, datetime.now(UTC)
        assert await keeper.erase_gone(now + timedelta(days=29), heard) == 0
        await made.bridge.receive(member(made, left=False, chat="1", private=True))
        assert await keeper.erase_gone(now + timedelta(days=31), heard) == 1
        assert await keeper.erase_gone(now + timedelta(days=31), heard) == 0
        account = made.channel.message("").address.account
        chats = made.services.chats
        assert await chats.session_keys(ChatPlace("fake", account, "team")) == []
        assert await chats.session_keys(ChatPlace("fake", account, "1")) != []
        await made.ask("again", chat="team", private=False)
        assert [text for _, text in made.said()] == ["[Ana#1] again"]


async def test_the_nightly_job_erases_unless_the_clock_may_be_wrong(tmp_path: Path) -> None:
    async with bed(tmp_path, ["one"]) as made:
        await made.ask("hi", chat="team", private=False)
        await made.bridge.receive(member(made, left=True, chat="team"))
        now = datetime.now(UTC) + timedelta(days=31)
        late = Due(bridge.chats.keeper.ERASE_GONE, "", None, now - timedelta(days=2), now)
        assert await made.bridge.chats.by_the_clock(late, heard) == "left to the next night"
        due = replace(late, planned_at=now)
        assert (
            await made.bridge.chats.by_the_clock(due, lambda name: name == "slack")
            == "0 chats erased"
        )
        assert await made.bridge.chats.by_the_clock(due, heard) == "1 chats erased"


async def test_that_the_old_id_is_left_says_nothing_about_the_new_one(tmp_path: Path) -> None:
    async with bed(tmp_path) as made:
        await made.bridge.receive(moved(made))
        await made.bridge.receive(member(made, left=True, chat=OLD))
        here = made.channel.message("", chat=NEW, private=False).address
        assert not made.bridge.chats.is_gone(here)


def test_a_sessions_key_changes_in_its_chat_only() -> None:
    key = "telegram:1:-451:t=-451:u=-451"
    assert rekeyed(key, "telegram:1:-100247") == "telegram:1:-100247:t=-451:u=-451"
