"""What was erased is gone: from every table, every file, the database's free pages and its log."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import bridge.chats.erasing
from agent.messages import user_text
from agent.testing import calls
from bridge.chats.erasing import Busy
from bridge.configuration.storing import Storing
from bridge.session import chat_scope, session_of
from channels.base import Address, Capabilities
from memory.chats.reach import ChatPlace
from memory.clock import stamp
from memory.conversations import Boundary
from memory.daily import DailyFiles
from memory.markdown.facts import facts
from memory.notes.flush import Entry
from memory.retention import Keep, Retention
from memory.scopes import scope_path
from memory.settings import BackupSettings
from memory.usage import UsageStore
from tests.bridge.bed import Bed, bed

TEAM = {"chat": "team", "private": False}
MINE = "plovermine"
OTHERS = "gullothers"


def bytes_with(folder: Path, marker: str) -> list[str]:
    """Where the word stands below the folder, to the byte; the index keeps words in pieces."""
    return [
        path.name
        for path in sorted(folder.rglob("*"))
        if path.is_file() and marker.encode() in path.read_bytes()
    ]


async def rows_with(it: Bed, marker: str) -> list[str]:
    """The tables in which some column holds the word."""
    tables = await it.database.read(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
    )
    found: list[str] = []
    for (table,) in tables:
        for row in await it.database.read(f"SELECT * FROM {table}"):
            if any(marker.encode() in _bytes(value) for value in tuple(row)):
                found.append(table)
                break
    return found


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


async def live(it: Bed, word: str, **where: object) -> None:
    """Someone asks, has something remembered and forgotten, and a transcript is written."""
    await it.ask(f"my word is {word}", **where)
    await it.ask(f"/remember likes {word}", **where)
    await it.ask(f"/remember knows the {word} well", **where)
    await it.ask("/forget 2", **where)
    message = it.channel.message("", **where)  # type: ignore[arg-type]
    place = session_of(message.address, message.sender.id, "shared")
    session = await it.services.conversations.open(place)
    await it.services.conversations.bound(session, Boundary("trim", 0, None, f"said {word}"))
    now = datetime.now(UTC)
    await it.services.transcripts.snapshot(session, place.key, [user_text(word)], now)
    chat = chat_scope(message.address)
    await it.services.notebook.search.find(chat, word)
    heading = f"## 10:00 conversation {session}, {len(message.sender.name)}"
    entry = Entry(now.date(), heading, f"\n{heading}\n\n- **{message.sender.name}** {word}\n")
    await DailyFiles(it.services.notebook.folder).keep(chat.scope, entry)


async def test_a_chat_is_erased_to_the_byte_and_another_keeps_everything(tmp_path: Path) -> None:
    async with bed(tmp_path, ["One.", "Two.", "Three."]) as it:
        await live(it, MINE)
        await live(it, OTHERS, person="bo", chat="2")
        assert await rows_with(it, MINE)
        assert bytes_with(tmp_path, MINE)
        before = await UsageStore(it.database).cost_since(datetime.now(UTC) - timedelta(days=1))
        files = bytes_with(tmp_path / "memory", OTHERS)
        await it.bridge.eraser.chat(ChatPlace("fake", "bot", "1"), "ana")
        assert await rows_with(it, MINE) == []
        assert bytes_with(tmp_path, MINE) == []
        assert bytes_with(tmp_path / "memory", OTHERS) == files
        address = Address("fake", "bot", "2")
        assert await it.services.notebook.search.find(chat_scope(address), OTHERS)
        after = await UsageStore(it.database).cost_since(datetime.now(UTC) - timedelta(days=1))
        assert after == before
        assert await it.ask("hello again") == "Three."
        assert "plover" not in str(it.said())


async def test_a_redelivered_message_is_not_answered_again_after_erasing(tmp_path: Path) -> None:
    async with bed(tmp_path, ["One."]) as it:
        message = await it.send("hi")
        await it.until(lambda: it.channel.finals)
        await it.bridge.idle()
        await it.bridge.eraser.chat(ChatPlace("fake", "bot", "1"), "ana")
        await it.bridge.receive(message)
        await it.bridge.idle()
        assert len(it.provider.requests) == 1


async def test_a_person_leaves_a_group_and_the_others_stay(tmp_path: Path) -> None:
    async with bed(tmp_path, ["One.", "Two.", "Three.", "Four."]) as it:
        await live(it, MINE)
        await live(it, OTHERS, person="bo", **TEAM)
        await live(it, MINE, person="ana", **TEAM)
        found = await it.bridge.eraser.find("fake", "ana")
        assert [place.chat for place in found.private] == ["1"]
        (trace,) = found.shared
        assert trace.questions == 1
        assert [MINE in line for line in trace.lines] == [True] * len(trace.lines)
        assert any("knows" in line for line in trace.lines)
        await it.bridge.eraser.person(found, "ana")
        assert await rows_with(it, MINE) == []
        assert bytes_with(tmp_path, MINE) == []
        team = chat_scope(Address("fake", "bot", "team", None, private=False))
        hits = await it.services.notebook.search.find(team, OTHERS)
        assert {hit.name for hit in hits} >= {"MEMORY.md", None}
        assert await it.ask("and?", person="bo", **TEAM) == "Four."
        assert OTHERS in str(it.said())


async def test_what_others_have_changed_can_be_taken_back_after_somebody_has_left(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, []) as it:
        await it.ask("/remember the office is in Ulm", person="bo", **TEAM)
        await it.ask(f"/remember my locker is {MINE}", person="ana", **TEAM)
        await it.ask("/remember the kitchen is blue", person="bo", **TEAM)
        await it.bridge.eraser.person(await it.bridge.eraser.find("fake", "ana"), "ana")
        assert bytes_with(tmp_path, MINE) == []
        scope = chat_scope(Address("fake", "bot", "team", None, private=False)).scope
        notebook = it.services.notebook
        for left in (["the office is in Ulm"], []):  # the step between was hers alone
            await notebook.files.undo(scope)
            assert [fact.text for fact in facts(await notebook.files.load(scope))] == left


async def test_erasing_gives_nobody_a_second_day(tmp_path: Path) -> None:
    async with bed(tmp_path, ["One.", "Two.", "Three."]) as it:
        await it.ask("hi", person="ana")
        await it.ask("hi", person="ana", **TEAM)
        await it.ask("hi", person="bo", **TEAM)
        usage, since = UsageStore(it.database), stamp(datetime.now(UTC) - timedelta(hours=1))
        places = (("fake", "bot", "1"), ("fake", "bot", "team"))
        used = [await usage.used(place, "ana", UTC) for place in places]
        spent = await usage.of_person("fake", "ana", since)
        assert spent.counted == sum(one.person_cost for one in used) > 0
        for _ in range(2):
            await it.bridge.eraser.person(await it.bridge.eraser.find("fake", "ana"), "ana")
        assert [await usage.used(place, "ana", UTC) for place in places] == used
        assert await usage.of_person("fake", "ana", since) == spent
        year = timedelta(days=365)
        keep = Keep(year, 1_000_000, year, 1_000_000, year, 1_000_000)
        await Retention(it.database, keep).clean(datetime.now(UTC) + timedelta(days=4))
        found = await it.database.read(
            "SELECT person FROM usage UNION SELECT person FROM usage_days"
        )
        assert {row[0] for row in found} == {"", "bo", "erased"}
        assert (await usage.used(places[1], "bo", UTC)).chat_cost == used[1].chat_cost


async def test_a_word_that_somebody_takes_for_a_name_erases_and_shows_nothing(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["Hello."]) as it:
        for said in ("the launch is on Friday", "the door opens with 4711"):
            await it.ask(f"/remember {said}", person="ana", **TEAM)
        for name in ("the", "Friday"):
            message = it.channel.message("hello", person="bo", chat="team", private=False)
            named = replace(message, sender=replace(message.sender, name=name))
            await it.bridge.receive(named)
            await it.bridge.idle()
        found = await it.bridge.eraser.find("fake", "bo")
        assert [trace.lines for trace in found.shared] == [()]
        await it.bridge.eraser.person(found, "bo")
        shown = await it.ask("/memory", person="ana", **TEAM)
        assert "launch" in shown
        assert "4711" in shown


async def test_what_the_nights_have_told_of_a_person_goes_too(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        await it.ask(f"/remember has {MINE}", person="ana", **TEAM)
        changes = next((tmp_path / "memory").iterdir()) / "changes"
        changes.mkdir()
        told = f"- add: **1** has {MINE} · because: it matters\n- add: **2** has a cat\n"
        (changes / "2026-11-29.md").write_text(told)
        found = await it.bridge.eraser.find("fake", "ana")
        await it.bridge.eraser.person(found, "ana")
        assert (changes / "2026-11-29.md").read_text() == "- add: **2** has a cat\n"


async def test_what_others_have_searched_goes_too(tmp_path: Path) -> None:
    search = calls(("c1", "memory_search", {"query": MINE}))
    async with bed(tmp_path, ["Noted.", search, "She told something.", "No."]) as it:
        await it.ask(f"my word is {MINE}", person="ana", **TEAM)
        await it.ask("what did she say?", person="bo", **TEAM)
        found = await it.bridge.eraser.find("fake", "ana")
        await it.bridge.eraser.person(found, "ana")
        assert await rows_with(it, MINE) == []
        assert bytes_with(tmp_path, MINE) == []
        assert await it.ask("more?", person="bo", **TEAM) == "No."


async def test_what_a_night_wrote_goes_by_who_said_it_when_the_messages_have_expired(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["Noted.", "Noted.", "Yes."]) as it:
        await it.ask("hello", person="ana", **TEAM)
        await it.ask("hello", person="bo", **TEAM)
        files = it.services.notebook.files
        scope = chat_scope(Address("fake", "bot", "team", None, private=False)).scope
        day = datetime.now(UTC).date() - timedelta(days=40)
        for who, text in (("Ana", "has diabetes"), ("Bo, Ana", "meet in May"), ("Bo", "has a cat")):
            await files.add(scope, day, who, text)

        def ago(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE inbox SET body = NULL")
            connection.execute("UPDATE usage_days SET began_at = ?", (f"{day}T00:00:00+00:00",))

        await it.database.write(ago)
        await it.ask("still there?", person="ana", **TEAM)
        await it.bridge.eraser.person(await it.bridge.eraser.find("fake", "ana"), "ana")
        assert "has a cat" in known(tmp_path)
        assert "diabetes" not in known(tmp_path)
        assert "Ana" not in known(tmp_path)


async def test_what_others_have_quoted_goes_from_their_questions(tmp_path: Path) -> None:
    async with bed(tmp_path, ["Noted.", "It is.", "No."]) as it:
        await it.ask(f"my word is {MINE}", person="ana", **TEAM)
        question = it.channel.message("is that so, and what of gulls?", person="bo", **TEAM)
        await it.bridge.receive(replace(question, quote=f"my word is {MINE}"))
        await it.bridge.idle()
        assert MINE in it.said()[-1][1]
        await it.bridge.eraser.person(await it.bridge.eraser.find("fake", "ana"), "ana")
        assert await rows_with(it, MINE) == []
        assert bytes_with(tmp_path, MINE) == []
        await it.ask("more?", person="bo", **TEAM)
        assert "what of gulls?" in str(it.said()), "the question itself stays"


async def test_what_was_forgotten_or_taken_back_of_somebody_goes_with_them(tmp_path: Path) -> None:
    async with bed(tmp_path, []) as it:
        it.channel.admins = {"cleo"}
        await it.ask(f"/remember keeps a {MINE}", person="ana", **TEAM)
        await it.ask("/memory undo", person="cleo", **TEAM)
        await it.ask(f"/remember Ana likes {MINE} soup", person="bo", **TEAM)
        await it.ask("/forget 1", person="cleo", **TEAM)
        await it.ask(f"/remember likes {OTHERS}", person="bo", **TEAM)
        await it.ask("/forget 1", person="bo", **TEAM)
        await it.bridge.eraser.person(await it.bridge.eraser.find("fake", "ana"), "ana")
        (row,) = await it.database.read("SELECT words FROM tombstones")
        assert OTHERS in row[0]


async def test_what_answers_to_others_have_repeated_goes_line_by_line(tmp_path: Path) -> None:
    """Word by word, or by the name; in the notes of the bot's answers as well."""
    told = f"She said: I keep a {MINE} in the cellar.\nThat was all."
    async with bed(tmp_path, ["Noted.", told, "Yes, Ana's.", "No."]) as it:
        await it.ask(f"Hello. I keep a {MINE} in the cellar.", person="ana", **TEAM)
        await it.ask("what did she say?", person="bo", **TEAM)
        await it.ask("whose cellar?", person="bo", **TEAM)
        scope = chat_scope(Address("fake", "bot", "team", None, private=False)).scope
        path = scope_path(tmp_path / "memory", scope, "2026-11-30.md")
        path.parent.mkdir(parents=True)
        path.write_text(f"### Not said by people\n- assistant: {told.splitlines()[0]} [4]\n")
        await it.bridge.eraser.person(await it.bridge.eraser.find("fake", "ana"), "ana")
        assert await rows_with(it, MINE) == []
        assert bytes_with(tmp_path, MINE) == []
        await it.ask("and now?", person="bo", **TEAM)
        said = str(it.said())
        assert "That was all." in said
        assert "Yes, Ana" not in said
        assert "whose cellar?" in said


async def test_titles_of_a_day_that_name_somebody_or_say_what_they_said_go_too(
    tmp_path: Path,
) -> None:
    """On the very day on which they have come to the chat, and where others' notes stand below."""
    async with bed(tmp_path, ["Noted.", "Noted."]) as it:
        await it.ask(f"Ana divorces the {MINE}", person="ana", **TEAM)
        await it.ask("the office moves to Ulm", person="bo", **TEAM)
        rows = await it.database.read("SELECT id FROM messages ORDER BY id")
        mine, theirs = (int(rows[index][0]) for index in (0, 2))
        scope = chat_scope(Address("fake", "bot", "team", None, private=False)).scope
        path = scope_path(tmp_path / "memory", scope, f"{datetime.now(UTC).date()}.md")
        path.parent.mkdir(parents=True)
        path.write_text(
            f"## 10:00–10:05 UTC · conversation 1, messages 1–2\n\n### Divorcing a {MINE}\n"
            f"- **Ana** She divorces the {MINE} [{mine}]\n- **Bo** The office moves [{theirs}]\n\n"
            f"### Things of Ana\n- **Bo** All move [{theirs}]\n\n### Left\n- **Ana** Hm [{mine}]\n\n"
            f"## 11:00–11:05 UTC · conversation 1, messages 3–4\n\n- **Ana** Hm [{mine}]\n"
        )
        await it.bridge.eraser.person(await it.bridge.eraser.find("fake", "ana"), "ana")
        assert path.read_text() == (
            "## 10:00–10:05 UTC · conversation 1, messages 1–2\n\n"
            f"- **Bo** The office moves [{theirs}]\n\n- **Bo** All move [{theirs}]\n"
        )


async def test_what_was_only_overheard_goes_as_well(tmp_path: Path) -> None:
    file = tmp_path / "groups" / "fake" / "team.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("context_messages: 5\n")
    async with bed(tmp_path, [*"123"]) as it:

        async def say(text: str, person: str) -> None:
            heard = it.channel.message(text, person=person, **TEAM)
            await it.bridge.receive(replace(heard, addressed=False))

        for person, word in (("ana", MINE), ("bo", OTHERS)):
            await say(f"I like {word}", person)
        await it.ask("what?", person="bo", **TEAM)
        assert MINE in it.said()[-1][1]
        await it.bridge.eraser.person(await it.bridge.eraser.find("fake", "ana"), "ana")
        await it.ask("and now?", person="bo", **TEAM)
        assert MINE not in it.said()[-1][1]
        assert OTHERS in it.said()[-1][1], "what others have said stays"
        await it.bridge.eraser.chat(ChatPlace("fake", "bot", "team"), "ana")
        await it.ask("and then?", person="bo", **TEAM)
        assert OTHERS not in it.said()[-1][1]


async def test_while_an_answer_is_under_way_nothing_is_erased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge.chats.erasing, "QUIET_WAIT_S", 0.05)
    gate = asyncio.Event()
    async with bed(tmp_path, ["One."], stall=gate) as it:
        await it.send("hi")
        await it.until(lambda: it.provider.requests)
        with pytest.raises(Busy):
            await it.bridge.eraser.chat(ChatPlace("fake", "bot", "1"), "ana")
        gate.set()
        await it.until(lambda: it.channel.finals)
        await it.bridge.idle()
        await it.bridge.eraser.chat(ChatPlace("fake", "bot", "1"), "ana")
        assert await rows_with(it, "One.") == []


async def test_it_is_said_until_when_copies_hold_it(tmp_path: Path) -> None:
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    async with bed(tmp_path) as it:
        eraser = it.bridge.eraser
        assert eraser.until(Storing(), now) is None
        daily = Storing(backup=BackupSettings(keep=3))
        assert eraser.until(daily, now) == now + timedelta(days=4)
        (tmp_path / "galata.db.schema-9-20261130T120000").touch()
        until = eraser.until(daily, now)
        assert until is not None
        assert until > now + timedelta(days=80)


async def press(it: Bed, button: int, *, person: str = "ana") -> str:
    """Press a button of the newest message that has some; what stands in its place then."""
    reply = next(reply for reply in reversed(it.channel.replies) if reply.buttons)
    before = len(it.channel.notices)
    await it.bridge.receive(it.channel.press(reply, person=person, button=button))
    await it.until(lambda: len(it.channel.notices) > before)
    await it.bridge.idle()
    return it.channel.notices[-1] or reply.final or ""


async def test_a_person_erases_themselves_after_being_asked_twice(tmp_path: Path) -> None:
    async with bed(tmp_path, ["One.", "Two."]) as it:
        await live(it, MINE)
        await live(it, MINE, **TEAM)
        assert "in a private chat" in await it.ask("/privacy erase", **TEAM)
        told = await it.ask("/privacy erase")
        assert told.startswith("**This erases for good what is stored of you:**")
        assert "your questions with their answers (1)" in told
        assert f"likes {MINE}" in told
        assert "Copies that whoever runs this bot" in told
        assert await press(it, 1) == "Nothing was erased."
        await it.ask("/privacy erase")
        assert "Really? Nobody can bring it back." in await press(it, 0)
        assert await rows_with(it, MINE), "it is asked twice"
        assert (await press(it, 0)).startswith("Erased for good.")
        assert await rows_with(it, MINE) == []
        assert bytes_with(tmp_path, MINE) == []
        audit = await it.database.read(
            "SELECT actor, target FROM audit WHERE action LIKE '%erased'"
        )
        assert [tuple(row) for row in audit] == [
            ("fake:ana", "fake:bot:1"),
            ("fake:ana", "fake:ana"),
        ]


async def test_in_a_group_only_an_admin_goes_through_with_it(tmp_path: Path) -> None:
    async with bed(tmp_path, ["One."]) as it:
        await live(it, MINE, **TEAM)
        assert (await it.ask("/memory erase", **TEAM)).startswith("Only admins")
        it.channel.admins = {"ana"}
        assert "for all members" in await it.ask("/memory erase", **TEAM)
        for button in (0, 1):  # to keep everything is an admin's decision as well
            assert (await press(it, button, person="bo")).startswith("Only admins")
        await press(it, 0)
        it.channel.admins = set()
        assert (await press(it, 0)).startswith("Only admins"), "asked anew at each step"
        assert await rows_with(it, MINE)
        it.channel.admins = {"ana"}
        assert (await press(it, 0)).startswith("Erased for good.")
        assert await rows_with(it, MINE) == []


async def test_without_buttons_the_steps_are_typed(tmp_path: Path) -> None:
    async with bed(tmp_path, ["One."]) as it:
        it.channel.capabilities = Capabilities(True, False, True)
        await live(it, MINE)
        assert "send `/memory erase yes`" in await it.ask("/memory erase")
        assert "send `/memory erase for good`" in await it.ask("/memory erase yes")
        assert await rows_with(it, MINE)
        assert (await it.ask("/memory erase for good")).startswith("Erased for good.")
        assert await rows_with(it, MINE) == []


async def told(it: Bed, text: str, name: str, **where: object) -> str:
    """What Bo is answered, who calls himself so."""
    message = it.channel.message(text, person="bo", **where)  # type: ignore[arg-type]
    before = len(it.channel.finals)
    await it.bridge.receive(replace(message, sender=replace(message.sender, name=name)))
    await it.bridge.idle()
    return "\n".join(filter(None, it.channel.finals[before:]))


def known(tmp_path: Path) -> str:
    return "".join(path.read_text() for path in tmp_path.glob("memory/**/MEMORY.md"))


@pytest.mark.parametrize("name", ["May", "Apollo"])
async def test_whoever_takes_a_word_for_a_name_gains_nothing_by_it(
    tmp_path: Path, name: str
) -> None:
    line = "the launch of Apollo is on a Friday in May"
    async with bed(tmp_path, ["One.", "Two."]) as it:
        await it.ask("what about Apollo?", person="ana", **TEAM)
        await told(it, "hello", name, **TEAM)
        await it.ask(f"/remember {line}", person="ana", **TEAM)
        assert "Somebody else" in await told(it, "/forget 1", name, **TEAM)
        assert line not in await told(it, "/privacy erase", name, chat="2")
        await press(it, 0, person="bo")
        await press(it, 0, person="bo")
        assert line in known(tmp_path)


@pytest.mark.parametrize("inside", [True, False])
async def test_nobody_outside_of_a_group_sees_its_lines_and_what_others_said_stays(
    tmp_path: Path, inside: bool
) -> None:
    members = {"ana", "bo"} if inside else {"ana"}
    async with bed(tmp_path, ["One."]) as it:
        await told(it, "hello", "Boris", **TEAM)
        await told(it, "/remember likes plums", "Boris", **TEAM)
        it.channel.membership.members["team"] = members
        await it.ask("/remember Boris knows the code 4711", person="ana", **TEAM)
        answer = await told(it, "/privacy erase", "Boris", chat="2")
        assert ("4711" in answer, "plums" in answer) == (inside, inside)
        assert ("ask one of their admins" in answer) is not inside
        await press(it, 0, person="bo")
        await press(it, 0, person="bo")
        assert ("4711" in known(tmp_path)) is not inside
        assert "plums" not in known(tmp_path), "what they had written themselves goes in any case"
