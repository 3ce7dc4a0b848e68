"""Groups that the operator has given one memory together: they have one, and nobody else sees it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from agent.messages import assistant_text, user_text
from agent.provider import ModelRequest
from agent.testing import ScriptedProvider, calls
from bridge.chats.keep_days import clean_chats
from bridge.config import Config
from bridge.models.chat_models import ModelChoice
from bridge.remembering.parts import MemoryGround, memory_parts
from bridge.sharing import Sharing, group_fault
from channels.base import Address, Sender
from memory.chats.chat_retention import ChatRetention
from memory.chats.reach import ChatPlace, Move
from memory.night.nights import Night
from memory.scopes import SHARED, scope_of, scope_path
from tests.bridge.bed import Bed, bed, chat_model
from tests.bridge.chats.test_erasing import bytes_with, rows_with
from tests.bridge.chats.test_keeper import moved
from tests.bridge.memory_bed import memory_bed
from tests.bridge.memory_models import faithful, notes

LISTED = ("fake:team", "fake:crew")
FACT = "the launch is on Friday"
TEAM, CREW, ODD = (
    Address("fake", "bot", chat, None, private=False) for chat in ("team", "crew", "odd")
)
ANA = Address("fake", "bot", "1")


async def ask(it: Bed, text: str, where: Address = TEAM, person: str = "ana") -> str:
    return await it.ask(text, person=person, chat=where.chat, private=where.private)


def prompt(it: Bed) -> str:
    return it.provider.requests[-1].system


def model(request: ModelRequest) -> str:
    return faithful(request) if "<entries>" in request.messages[-1].text else notes(request)


def shared_file(folder: Path) -> Path:
    return folder / "memory" / "shared" / "MEMORY.md"


async def test_groups_of_the_list_have_one_memory_and_nobody_else_sees_it(tmp_path: Path) -> None:
    async with bed(tmp_path, ["one", "two", "three", "four"], shared=LISTED) as it:
        told = await ask(it, f"/remember {FACT}")
        assert told.startswith("Remembered for all members of the chats that share this memory")
        assert FACT in shared_file(tmp_path).read_text()
        await ask(it, "when?", CREW, person="bo")
        assert FACT in prompt(it)
        assert "may have been said in another one" in prompt(it)
        shown = await ask(it, "/memory", CREW, person="bo")
        assert shown.startswith("This group shares its memory with other chats")
        assert FACT in shown
        assert FACT in await ask(it, "/why", CREW, person="bo")
        assert "one memory together with other chats" in await ask(it, "/privacy", CREW)
        for where in (ODD, ANA):
            await ask(it, "when?", where)
            assert FACT not in prompt(it)
            assert FACT not in await ask(it, "/memory", where)
            assert FACT not in await ask(it, "/forget launch", where)
        assert "other chats" not in await ask(it, "/privacy", ODD)


async def test_a_search_finds_the_memory_and_never_another_chats_conversation(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["noted", "noted", "noted"], shared=LISTED) as it:
        await ask(it, f"/remember {FACT}")
        await ask(it, "my secret word is plover")
        search, sharing = it.services.notebook.search, it.services.memory.sharing
        found = await search.find(sharing.chat(CREW), "launch plover")
        assert [hit.text for hit in found if hit.name == "MEMORY.md"]
        assert not [hit for hit in found if "plover" in hit.text]
        assert await search.find(sharing.chat(TEAM), "plover")
        for where in (ODD, ANA):
            assert await search.find(sharing.chat(where), "launch plover") == []
        await it.services.notebook.indexer.reindex()
        found = await search.find(sharing.chat(CREW), "launch plover")
        assert not [hit for hit in found if "plover" in hit.text]
        assert len(found) == 1


async def test_a_run_writes_into_it_and_says_for_whom(tmp_path: Path) -> None:
    steps = [calls(("t1", "remember", {"text": FACT})), "Noted.", "On Friday."]
    async with bed(tmp_path, steps, shared=LISTED) as it:
        said = await ask(it, f"please remember: {FACT}")
        assert "Remembered for all members of the chats that share this memory" in said
        await ask(it, "when?", CREW)
        assert FACT in prompt(it)


async def test_what_is_forgotten_in_one_goes_from_all(tmp_path: Path) -> None:
    async with bed(tmp_path, ["yes", "yes", "one", "two"], shared=LISTED) as it:
        await ask(it, f"/remember {FACT}", TEAM, "ana")
        for where in (TEAM, CREW):
            await ask(it, f"Is it true that {FACT}?", where, "bo")
            assert FACT in prompt(it)
        sharing = it.services.memory.sharing
        assert await it.services.notebook.search.find(sharing.chat(CREW), "launch")
        refused = await ask(it, "/forget 1", CREW, "bo")
        assert refused.startswith("Somebody else has said that")
        it.channel.admins = {"bo"}  # of the chat in which it is sent
        told = await ask(it, "/forget 1", CREW, "bo")
        assert told.startswith("Forgotten for good, for all members of the chats that share")
        for where in (CREW, TEAM):
            await ask(it, "when?", where)
            seen = prompt(it) + str(it.said())
            assert "launch" not in seen
            assert await it.services.notebook.search.find(sharing.chat(where), "launch") == []


async def test_deleting_what_said_it_is_each_chats_own_matter(tmp_path: Path) -> None:
    steps = ["yes", calls(("t1", "remember", {"text": FACT})), "I will."]
    async with bed(tmp_path, steps, shared=LISTED) as it:
        it.channel.admins = {"ana"}
        await ask(it, f"It is so: {FACT}", TEAM)
        await ask(it, f"remember: {FACT}", CREW)
        asked = await ask(it, "/forget 1", TEAM)
        assert "1" in asked.splitlines()[-1]
        reply = it.channel.replies[-1]
        await it.bridge.receive(it.channel.press(reply))
        await it.bridge.idle()
        rows = await it.database.read(
            "SELECT s.chat FROM messages m JOIN sessions s ON s.id = m.session_id"
            " WHERE m.body LIKE '%launch%'"
        )
        assert {row[0] for row in rows} == {"crew"}


async def test_a_chat_that_is_taken_out_of_the_list_has_its_own_memory_again(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path) as it:
        await ask(it, "/remember likes tea")
    async with bed(tmp_path, ["one", "two"], shared=LISTED) as it:
        await ask(it, f"/remember {FACT}", CREW)
        await ask(it, "when?")
        assert FACT in prompt(it)
        assert "tea" not in prompt(it)
    async with bed(tmp_path, ["three"], shared=LISTED[1:]) as it:
        assert FACT not in await ask(it, "/why")
        await ask(it, "when?")
        assert FACT not in prompt(it)
        assert "likes tea" in prompt(it)
        assert (
            await it.services.notebook.search.find(it.services.memory.sharing.chat(TEAM), "launch")
            == []
        )


async def test_a_switch_puts_out_one_chats_use_of_it_alone(tmp_path: Path) -> None:
    async with bed(tmp_path, ["one", "two"], shared=LISTED) as it:
        await ask(it, f"/remember {FACT}")
        it.channel.admins = {"ana"}
        await ask(it, "/memory off")
        await ask(it, "when?")
        assert FACT not in prompt(it)
        await ask(it, "when?", CREW)
        assert FACT in prompt(it)


async def test_erasing_one_of_its_chats_leaves_it_and_erasing_a_person_takes_theirs(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["one", "two"], shared=LISTED) as it:
        await ask(it, "my word is plover", TEAM, "bo")
        await ask(it, "/remember the plover is mine", TEAM, "bo")
        await ask(it, f"/remember {FACT}", CREW, "ana")
        await ask(it, "what do you know?", CREW, "ana")
        it.channel.admins = {"ana"}
        said = await ask(it, "/memory erase", TEAM)
        assert "The memory that it shares with other chats stays" in said
        eraser = it.bridge.eraser
        await eraser.chat(ChatPlace("fake", "bot", "team"), "test")
        assert "plover" in shared_file(tmp_path).read_text()
        found = await eraser.find("fake", "bo")
        assert [line for line in found.together if "plover" in line] == list(found.together)
        assert len(found.together) == 1
        await eraser.person(found, "test")
        kept = shared_file(tmp_path).read_text()
        assert "plover" not in kept
        assert FACT in kept
        assert await rows_with(it, "plover") == []
        assert bytes_with(tmp_path, "plover") == []
        await ask(it, "and now?", CREW)
        assert FACT in prompt(it)


async def test_a_person_of_two_chats_is_told_each_shared_line_once(tmp_path: Path) -> None:
    async with bed(tmp_path, ["one", "two"], shared=LISTED) as it:
        for where in (TEAM, CREW):
            await ask(it, "hello", where, "bo")
        await ask(it, "/remember the plover is mine", TEAM, "bo")
        told = await ask(it, "/privacy erase", Address("fake", "bot", "bo"), "bo")
        assert told.count("plover") == 1


async def test_a_group_that_moves_stays_in_the_list(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        await ask(it, "/remember likes tea")
    async with bed(tmp_path, ["one", "two"], shared=LISTED) as it:
        await ask(it, f"/remember {FACT}")
        await it.bridge.receive(moved(it))
        await it.bridge.idle()
        new = Address("fake", "bot", "-100247", None, private=False)
        await ask(it, "when?", new)
        assert FACT in prompt(it)
        await ask(it, f"/remember {FACT} at noon", new)
        assert "noon" in shared_file(tmp_path).read_text()
        own = scope_path(tmp_path / "memory", "group:fake:bot:-100247", "MEMORY.md")
        assert "tea" in own.read_text(), "kept, for when it shares no more"


async def test_the_night_is_told_once_in_each_of_the_chats(tmp_path: Path) -> None:
    async with bed(tmp_path, list("abcdef"), shared=LISTED) as it:
        night = Night(date(2026, 11, 30), "changed", added=1)
        await it.services.memory.nights.note(SHARED, night)
        for where, told in ((TEAM, 1), (TEAM, 0), (CREW, 1), (CREW, 0), (ODD, 0), (ANA, 0)):
            assert (await ask(it, "hi", where)).count("Overnight: 1 added") == told
            await it.services.memory.nights.note(SHARED, Night(date(2026, 12, 1), "same"))


async def test_notes_of_all_chats_go_into_one_file_and_one_night_tidies_it(
    tmp_path: Path,
) -> None:
    sharing = Sharing(["fake:-6", "fake:-5"])
    async with memory_bed(tmp_path, model, sharing=sharing) as it:
        groups = [Address("fake", "1", chat, None, private=False) for chat in ("-5", "-6", "-7")]
        now = datetime.now(UTC)
        sessions = [await it.session(group, f"Ana{group.chat}") for group in groups]
        for number, session in enumerate(sessions):
            said = user_text(f"likes tea number {number}"), assistant_text("fine")
            await it.say(session, *said, run=f"r{number}", at=now)
        await it.jobs.run()
        it.now = now + timedelta(hours=2)
        await it.scheduler.tick(it.now)
        await it.scheduler.idle()
        day = await it.day(now.date(), SHARED)
        assert [f"number {number}" in day for number in range(3)] == [True, True, False]
        scopes = [row.scope for row in await it.rows.all() if row.kind == "consolidation"]
        assert sorted(scopes) == ["group:fake:1:-7", SHARED]
        before = len(it.asked)
        night = await it.jobs.tidy(SHARED, it.now)
        assert night is not None
        assert night.outcome == "changed"
        assert len(it.asked) == before + 1
        payers = await it.database.read(
            "SELECT DISTINCT s.chat FROM usage u JOIN sessions s ON s.id = u.session_id"
            " WHERE u.purpose = 'consolidation'"
        )
        assert [row[0] for row in payers] == ["-6"], "the chat that is listed first"
        assert sorted(it.changed) == [SHARED]


async def test_its_days_are_the_configurations_and_what_it_costs_the_chats_own(
    tmp_path: Path,
) -> None:
    limits = tmp_path / "groups" / "fake" / "team.yaml"
    limits.parent.mkdir(parents=True)
    limits.write_text("timezone: Asia/Tokyo\n")
    async with bed(tmp_path, ["fine"], shared=LISTED) as it:
        await ask(it, "I like tea")
        services, notes_model = it.services, ScriptedProvider(["- [1] likes tea"])
        ground = MemoryGround(
            it.database,
            tmp_path / "memory",
            services.usage,
            services.gate,
            services.ratios,
            services.policies,
            services.notebook,
            services.errors.report,
            services.memory.sharing,
        )
        parts = memory_parts(Config(), ground, ModelChoice((chat_model(notes_model, "notes"),)))
        await it.database.write(lambda c: c.execute("DELETE FROM usage_days"))
        late = "2026-11-29T20:00:00.000000+00:00"  # the next day in Tokyo
        await it.database.write(lambda c: c.execute("UPDATE messages SET created_at = ?", (late,)))
        await parts.flushing.leave(1, SHARED, ZoneInfo("Asia/Tokyo"))
        assert "likes tea" in (shared_file(tmp_path).with_name("2026-11-29.md")).read_text()
        booked = await it.database.read("SELECT began_at FROM usage_days WHERE person = ''")
        assert ["T15:00" in row[0] for row in booked] == [True], "midnight in Tokyo"


@pytest.mark.parametrize("name", ["Pablo", "Ana"])
async def test_a_name_that_two_members_of_different_chats_have_gives_neither_a_right(
    tmp_path: Path, name: str
) -> None:
    async with bed(tmp_path, ["one", "two"], shared=LISTED) as it:
        await ask(it, "hello", TEAM, "pablo")
        other = it.channel.message("hello", person="ana", chat="crew", private=False)
        await it.bridge.receive(replace(other, sender=Sender("ana", name, "en")))
        await it.bridge.idle()
        await ask(it, "/remember Pablo likes tea", CREW, "owner")
        told = await ask(it, "/forget 1", TEAM, "pablo")
        assert told.startswith("Somebody else has said that") is (name == "Pablo")


async def test_the_fewest_days_that_one_of_its_chats_keeps_hold_for_its_notes(
    tmp_path: Path,
) -> None:
    limits = tmp_path / "groups" / "fake" / "team.yaml"
    limits.parent.mkdir(parents=True)
    limits.write_text("keep_days: 30\n")
    async with bed(tmp_path, ["one", "two"], shared=LISTED) as it:
        for where in (TEAM, CREW):
            await ask(it, "hello", where)
        await ask(it, f"/remember {FACT}")
        old = shared_file(tmp_path).with_name("2026-01-01.md")
        old.write_text("- **Ana** plover")
        services, retention = it.services, ChatRetention(it.database, tmp_path)
        await clean_chats(services.policies, retention, services.memory.sharing, datetime.now(UTC))
        assert not old.exists()
        assert FACT in shared_file(tmp_path).read_text()


def test_private_chats_never_share_and_ids_of_a_moved_group_are_all_its_own() -> None:
    assert scope_of("telegram:1:7", private=True, shared=True) == "person:telegram:1:7"
    moves = [Move("telegram", "1", "-4", "-100"), Move("slack", "1", "-4", "-200")]
    for listed in ("telegram:-4", "telegram:-100"):
        sharing = Sharing([listed, "slack:C1"], lambda: moves)
        assert sharing.together() == {("telegram", "-4"), ("telegram", "-100"), ("slack", "C1")}
    private = Address("telegram", "1", "-4", None, private=True)
    assert sharing.scope(private).startswith("person:")
    assert Sharing().together() == frozenset()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("telegram:-1001234", None),
        ("slack:C012AB3CD", None),
        ("telegram:42", "is a person or a private chat"),
        ("slack:U012AB3CD", "is a person or a private chat"),
        ("slack:D012AB3CD", "is a person or a private chat"),
        ("-1001234", "such as telegram:-1001234"),
        ("terminal:1", "such as telegram:-1001234"),
    ],
)
def test_only_groups_can_be_listed(name: str, told: str | None) -> None:
    fault = group_fault(name)
    assert fault is None if told is None else fault is not None and told in fault
