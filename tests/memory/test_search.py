"""Search finds what a chat's memory and conversation hold, in any script, and nothing of another's."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.messages import assistant_text, user_text
from memory.conversations import Conversations, SessionPlace
from memory.database import Database
from memory.indexing import LOOK_EVERY_S, Indexer
from memory.markdown.fact_files import FactFiles
from memory.markdown.files import append
from memory.markdown.pieces import MOST_PIECE, excerpt, pieces
from memory.runs import Runs
from memory.scopes import ChatScope, day_name, scope_path
from memory.search import MOST_HITS, MOST_SHOWN, Search
from memory.text.provenance import heard
from memory.text.words import normalised, phrases
from memory.tombstones import bury

ANA = ChatScope("person:telegram:1:7", "telegram", "1", "7")
BO = ChatScope("person:telegram:1:8", "telegram", "1", "8")
GROUP = ChatScope("group:telegram:1:-9", "telegram", "1", "-9")
TODAY = date(2026, 11, 30)


class World:
    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.folder = folder
        self.now = 0.0
        self.facts = FactFiles(folder)
        self.conversations = Conversations(database)
        self.indexer = Indexer(database, folder, lambda: self.now)
        self.search = Search(database, folder, self.indexer)
        self.runs = 0

    async def say(self, chat: ChatScope, *texts: str, thread: str | None = None) -> str:
        """A run in which these are said in turn; its id."""
        key = f"{chat.channel}:{chat.account}:{chat.chat}:{thread}"
        place = SessionPlace(key, chat.channel, chat.account, chat.chat, thread)
        session = await self.conversations.open(place)
        self.runs += 1
        run = f"r{self.runs}"
        said = [user_text(t) if n % 2 == 0 else assistant_text(t) for n, t in enumerate(texts)]
        await self.conversations.append(session, run, list(enumerate(said)))
        return run

    def write(self, chat: ChatScope, name: str, text: str, *, old: bool = True) -> Path:
        path = scope_path(self.folder, chat.scope, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if old:  # not written just now: its time can be trusted
            then = path.stat().st_mtime_ns - 60_000_000_000
            os.utime(path, ns=(then, then))
        return path

    async def find(self, chat: ChatScope, query: str, **more: object) -> list[str]:
        hits = await self.search.find(chat, query, today=TODAY, **more)  # type: ignore[arg-type]
        return [hit.text for hit in hits]

    async def count(self, table: str) -> int:
        return int((await self.database.read(f"SELECT COUNT(*) FROM {table}"))[0][0])


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    database = await Database.open(tmp_path / "galata.db")
    yield World(database, tmp_path / "memory")
    await database.close()


async def test_facts_days_and_conversations_are_found_with_their_place(world: World) -> None:
    await world.facts.add(ANA.scope, TODAY, "Ana", "Pablo is a cat")
    world.write(ANA, "2026-11-28.md", "\n## 10:00 · left the conversation\n\n- Pablo was ill\n")
    await world.say(ANA, "Where does Pablo sleep?", "In the sun.")
    fact, said, day = await world.search.find(ANA, "pablo", today=TODAY)
    assert (fact.name, fact.line) == ("MEMORY.md", 1)
    assert fact.text == "- **1** (2026-11-30, Ana) Pablo is a cat"
    assert (day.name, day.line) == ("2026-11-28.md", 2)
    assert "Pablo was ill" in day.text
    assert (said.name, said.role) == (None, "user")
    assert datetime.fromisoformat(said.at).tzinfo is not None


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("明天去東京出差", "東京"),
        ("明日は京都へ行きます", "京都"),
        ("我的猫叫小白", "猫"),
        ("내일 서울에서 만나요", "서울"),
        ("พรุ่งนี้ไปกินข้าว", "ข้าว"),
        ("मेरी बिल्ली", "बिल्ली"),
        ("Das Straßenfest in Zürich", "strassenfest zurich"),
        ("Η Αθήνα το βράδυ", "αθηνα"),
        ("Ёлка стоит", "елка"),
        ("אני גר בחיפה", "בחיפה"),
        ("אני גר בחיפה", "חיפה"),
        ("חיפה יפה בלילה", "בחיפה"),
        ("קניתי שמש ושולחן", "השולחן"),
        ("أحب القهوة صباحا", "قهوة"),
        ("شربت قهوة صباحا", "القهوة"),
        ("ذهبنا بالسيارة", "سيارة"),
        ("هدية للمدرسة", "والمدرسة"),
        ("her number is 0171-2345", "0171 2345"),
        ("cats and dogs", "cat dog"),
        ("我喜欢 🐱", "🐱"),
        ("off we go 👩\u200d🚀!", "👩\u200d🚀"),
    ],
)
async def test_words_of_any_script_are_found_in_files_and_conversations(
    world: World, text: str, query: str
) -> None:
    world.write(ANA, "2026-11-28.md", f"- {text}\n")
    await world.say(ANA, text)
    assert await world.find(ANA, query) == [text, f"- {text}"]


async def test_what_is_quoted_is_looked_for_as_it_is_written(world: World) -> None:
    for text in ("أحب القهوة", "شربت قهوة"):
        await world.say(ANA, text)
    assert await world.find(ANA, '"قهوة"') == ["شربت قهوة"]
    assert await world.find(ANA, "شاي") == []


async def test_a_whole_question_finds_what_holds_a_part_of_it(world: World) -> None:
    await world.say(ANA, "我的猫叫小白")
    await world.say(ANA, "The key is under the mat.")
    assert await world.find(ANA, "你的猫今天好吗") == ["我的猫叫小白"]
    assert await world.find(ANA, "where did I put the spare key") == ["The key is under the mat."]


async def test_one_chats_secret_is_found_by_no_other(world: World) -> None:
    await world.facts.add(ANA.scope, TODAY, "Ana", "the password is plover")
    world.write(ANA, "2026-11-28.md", "plover again")
    await world.say(ANA, "plover", "plover")
    await world.say(BO, "hello")
    assert len(await world.find(ANA, "plover")) == 4
    for other in (BO, GROUP):
        for query in ("plover", 's1 "s1" plover', 'owner:s1 OR "plover"', "p* OR plover NOT x"):
            assert await world.find(other, query) == []


letters = st.text(alphabet="abcdé猫京ก s1", min_size=1, max_size=12)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(letters, min_size=1, max_size=5), st.lists(letters, max_size=5), letters)
async def test_whatever_is_asked_only_the_own_scope_answers(
    world: World, mine: list[str], theirs: list[str], query: str
) -> None:
    me, them = (
        ChatScope(f"person:t:1:{world.runs}{side}", "t", "1", f"{world.runs}{side}")
        for side in "ab"
    )
    for chat, texts, mark in ((me, mine, "mine"), (them, theirs, "theirs")):
        for text in texts:
            await world.say(chat, f"{mark} {text}")
    found = await world.find(me, f"{query} mine theirs")
    assert len(found) == min(len(mine), MOST_HITS)
    assert all(text.startswith("mine") for text in found)


async def test_the_newer_saying_comes_first_and_facts_before_both(world: World) -> None:
    for day in (TODAY - timedelta(days=900), TODAY - timedelta(days=1)):
        world.write(ANA, day_name(day), f"the tide of {day.year}")
    assert await world.find(ANA, "tide") == ["the tide of 2026", "the tide of 2024"]
    await world.facts.add(ANA.scope, TODAY, "Ana", "the tide of always")
    assert "always" in (await world.find(ANA, "tide"))[0]


async def test_what_is_appended_edited_and_deleted_is_followed(world: World) -> None:
    path = world.write(ANA, "2026-11-30.md", "", old=False)
    for word in ("apple", "birch"):
        append(path, f"\n## 12:00 · x\n\n- {word}\n".encode())
        assert len(await world.find(ANA, word)) == 1
    assert await world.count("search_entries") == 2
    path.write_text(path.read_text().replace("apple", "cedar"))  # the same size, the same second
    assert await world.find(ANA, "apple") == []
    assert len(await world.find(ANA, "cedar")) == 1
    path.unlink()
    assert await world.find(ANA, "birch cedar") == []
    assert await world.count("search_words") == 0


async def test_only_the_new_part_of_a_day_is_read_into_the_index(world: World) -> None:
    text = "".join(f"\n## 10:{n:02} · x\n\n- entry {n}\n" for n in range(5))
    path = world.write(ANA, "2026-11-30.md", text)
    await world.find(ANA, "entry")
    ids = [row[0] for row in await world.database.read("SELECT id FROM search_entries")]
    with path.open("a") as file:
        file.write("\n## 11:00 · x\n\n- entry last\n")
    assert "entry last" in (await world.find(ANA, '"entry last"'))[0]
    after = [row[0] for row in await world.database.read("SELECT id FROM search_entries")]
    assert after[:5] == ids
    assert len(after) == 6
    (line,) = [hit.line for hit in await world.search.find(ANA, '"entry last"')]
    assert path.read_text().split("\n")[line - 1] == "## 11:00 · x"


async def test_in_a_large_scope_a_changed_file_is_noticed_when_it_is_found_or_in_a_while(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.indexing.LOOKED_AT_ALWAYS", 2)
    days = [TODAY - timedelta(days=n) for n in range(10)]
    for number, day in enumerate(days):
        world.write(ANA, day_name(day), f"tree{number} stands here")
    assert await world.find(ANA, "tree9") == ["tree9 stands here"]
    world.write(ANA, day_name(days[9]), "tree9 was felled")
    assert await world.find(ANA, "tree9") == ["tree9 was felled"], "what is found is looked at"
    world.write(ANA, day_name(days[8]), "oak")
    assert await world.find(ANA, "oak") == [], "nothing leads there yet"
    world.now += LOOK_EVERY_S
    assert await world.find(ANA, "oak") == ["oak"]
    world.write(ANA, day_name(TODAY + timedelta(days=1)), "a new day")
    assert await world.find(ANA, '"new day"') == ["a new day"], "a new file shows in its folder"


async def test_messages_are_indexed_once_and_leave_with_their_rows(world: World) -> None:
    await world.say(ANA, "one plover", "two plovers")
    await world.say(ANA, "three plovers", thread="5")
    for _ in range(2):
        assert len(await world.find(ANA, "plover")) == 3
    assert await world.count("search_entries") == 3
    await world.database.write(lambda c: c.execute("DELETE FROM messages WHERE id > 1").rowcount)
    assert await world.find(ANA, "plover") == ["one plover"]
    await world.say(ANA, "four plovers")  # has an id that was given before
    assert set(await world.find(ANA, "plover")) == {"one plover", "four plovers"}


async def test_no_message_is_lost_when_numbers_are_given_anew(world: World) -> None:
    """The newest rows go, the oldest of them first, and those of another chat are among them."""
    await world.say(ANA, "one plover", "two plovers")
    await world.find(ANA, "plover")
    await world.say(BO, "gull", "gulls")
    await world.database.write(lambda c: c.execute("DELETE FROM messages WHERE id >= 1").rowcount)
    await world.say(ANA, "three plovers", "four plovers")
    assert set(await world.find(ANA, "plover")) == {"three plovers", "four plovers"}


async def test_what_was_taken_back_or_is_being_asked_is_not_found(world: World) -> None:
    taken = await world.say(ANA, "plover one")
    asking = await world.say(ANA, "plover two")
    await world.find(ANA, "plover")
    await world.conversations.leave_out(1, taken)
    assert await world.find(ANA, "plover") == ["plover two"]
    assert await world.find(ANA, "plover", besides=asking) == []


async def test_what_was_passed_on_is_told_as_such(world: World) -> None:
    question = user_text("plover forwarded")
    runs = Runs(world.database)
    session = await world.conversations.open(SessionPlace("k", "telegram", "1", "7", None))
    await runs.begin(session, "f1", question, [], own_words=False)
    await runs.begin(session, "f2", user_text("plover own"), [], own_words=True)
    hits = await world.search.find(ANA, "plover", today=TODAY)
    assert {(hit.text, hit.passed_on) for hit in hits} == {
        ("plover forwarded", True),
        ("plover own", False),
    }
    said = await runs.since_new(session, "7", besides="f3", most=9)
    assert said == [(question, "foreign"), (user_text("plover own"), "own")]
    await runs.begin(session, "f3", user_text("which?"), [], overheard=True)
    said = await runs.since_new(session, "7", besides="f4", most=9)
    assert (said[0][1], heard(said, ()).tainted, len(said)) == ("foreign", True, 4)
    assert not heard(said[-1:], ()).tainted
    assert not await runs.own_words("unknown")


async def test_what_was_forgotten_is_found_nowhere(world: World) -> None:
    await world.say(ANA, "Please note: my cat is called Pablo!")
    world.write(ANA, "2026-11-29.md", "- my cat is called Pablo\n")
    await world.say(ANA, "Pablo is a nice name")
    saying = normalised("My cat is called Pablo.")
    await world.database.write(lambda c: bury(c, ANA.scope, [saying]))
    assert await world.find(ANA, "pablo") == ["Pablo is a nice name"]
    await world.say(BO, "my cat is called Pablo")
    assert await world.find(BO, "pablo") == ["my cat is called Pablo"]


async def test_the_index_can_be_thrown_away(world: World) -> None:
    await world.facts.add(ANA.scope, TODAY, "Ana", "likes plovers")
    world.write(ANA, "2026-11-28.md", "plover day")
    await world.say(ANA, "plover talk")
    await world.say(BO, "plover of Bo")
    before = [await world.find(chat, "plover") for chat in (ANA, BO)]
    await world.database.write(lambda c: c.execute("DELETE FROM search_words").rowcount)
    told: list[str] = []
    assert await world.indexer.reindex(told.append) == 2
    assert told == [ANA.scope, BO.scope]
    assert [await world.find(chat, "plover") for chat in (ANA, BO)] == before


async def test_two_that_catch_up_at_once_double_nothing(world: World) -> None:
    world.write(ANA, "2026-11-28.md", "plover day")
    for number in range(30):
        await world.say(ANA, f"plover {number}")
    other = Indexer(world.database, world.folder)

    await asyncio.gather(*(i.catch_up(ANA) for i in (world.indexer, other) for _ in range(3)))
    assert await world.count("search_entries") == 31


async def test_a_link_out_of_the_folder_is_not_followed(world: World, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("plover")
    folder = scope_path(world.folder, ANA.scope)
    folder.mkdir(parents=True)
    (folder / "2026-11-28.md").symlink_to(secret)
    (folder / "notes.txt").write_text("plover")
    assert await world.find(ANA, "plover") == []


@given(st.lists(st.text(max_size=400), max_size=20).map("\n".join))
def test_pieces_hold_every_line_with_words_once(text: str) -> None:
    lines = text.split("\n")
    made = list(pieces(lines))
    covered = [n for piece in made for n in range(piece.line, piece.line + piece.lines)]
    assert covered == sorted(set(covered))
    assert {n for n, line in enumerate(lines) if normalised(line)} <= set(covered)
    for piece in made:
        assert piece.text == "\n".join(lines[piece.line : piece.line + piece.lines])
        assert len(piece.text) <= MOST_PIECE + 400


def test_of_a_long_text_the_part_that_was_asked_for_is_shown() -> None:
    text = "word " * 1000 + "plover " + "word " * 1000
    shown = excerpt(text, phrases("plover"), MOST_SHOWN)
    assert "plover" in shown
    assert len(shown) <= MOST_SHOWN + 4
