"""`galata history`: the whole stored conversation, recorded, harmless to a terminal, beside the bot."""

from __future__ import annotations

import asyncio
import os
import pwd
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.messages import (
    JsonObject,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    assistant_text,
    user_text,
)
from agent.messages import Message as M
from bridge.control import Control, ControlRefused, Verb
from bridge.control_address import SOCKET
from memory.conversations import Boundary, Conversations, SessionPlace
from memory.database import Database
from memory.transcripts import READING
from tests.bridge.cli.scripted import environ, piped

PLACE = SessionPlace("telegram:1:-7:t=4", "telegram", "1", "-7", "4")
OTHER = SessionPlace("slack:T1:C1", "slack", "T1", "C1", None)
USER = f"os:{pwd.getpwuid(os.getuid()).pw_name}"

# Root may write everywhere; without these two capabilities the permissions of its files hold for it.
# (Whoever is not root has none to give away: prctl then changes nothing.)
_PLAIN_USER = (
    "import ctypes, os, sys; drop = ctypes.CDLL(None).prctl; drop(24, 1, 0, 0, 0);"
    " drop(24, 2, 0, 0, 0); os.execv(sys.executable, [sys.executable, '-m', 'bridge', *sys.argv[1:]])"
)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """The bot's, open all the time."""
    opened = await Database.open(tmp_path / "galata.db")
    yield opened
    await opened.close()


async def store(database: Database, run: str, *messages: M, place: SessionPlace = PLACE) -> int:
    conversations = Conversations(database)
    session = await conversations.open(place)
    await conversations.append(session, run, list(enumerate(messages)))
    return session


async def history(folder: Path, *words: str, **variables: str) -> tuple[int, list[str], str]:
    """Exit code, lines, errors."""
    code, out, errors = await piped(
        *("history", *words, "--data", "."), cwd=folder, env=environ(folder, **variables)
    )
    return code, out.split("\n")[:-1], errors


async def audit(database: Database) -> list[tuple[str, ...]]:
    rows = await database.read("SELECT actor, action, target FROM audit ORDER BY id")
    return [tuple(row) for row in rows]


async def test_all_of_a_conversation_is_printed_with_its_boundaries(
    tmp_path: Path, database: Database
) -> None:
    conversations = Conversations(database)
    session = await store(database, "1", user_text("before"), assistant_text("yes"))
    await conversations.begin_new(session)
    await store(database, "o", user_text("elsewhere"), place=OTHER)
    call = ToolUseBlock("t1", "search", {"q": "Галата"})
    await store(
        database,
        "2",
        user_text("look"),
        M("assistant", (ThinkingBlock("hidden", "a/m"), call)),
        M("user", (ToolResultBlock("t1", (TextBlock("x" * 500),)),)),
    )
    await store(database, "3", user_text("and now"))
    newest = (await conversations.context(session)).messages[-1].id
    await conversations.bound(session, Boundary("trim", newest))
    await conversations.begin_new(session)
    code, lines, errors = await history(tmp_path, PLACE.key)
    assert (code, errors) == (0, "")
    assert [line.split(", 20")[0].split(" (20")[0] for line in lines] == [
        f"session {session}: {PLACE.key}, 6 messages",
        "[1] user",
        "  before",
        "[2] assistant",
        "  yes",
        "--- new conversation",
        "[1] user",
        "  look",
        "[2] assistant",
        '  call t1: search {"q": "Галата"}',
        "[3] user",
        "  result of t1:",
        "    " + "x" * 500,
        "--- older messages left the context here",
        "[4] user",
        "  and now",
        "--- new conversation",
    ]


async def test_the_number_names_the_session_as_well_as_the_key(
    tmp_path: Path, database: Database
) -> None:
    session = await store(database, "1", user_text("hello"))
    by_key = await history(tmp_path, PLACE.key)
    assert by_key[0] == 0
    assert await history(tmp_path, str(session)) == by_key


async def test_each_reading_is_in_the_audit_log_and_a_list_is_not(
    tmp_path: Path, database: Database
) -> None:
    """With the user whom the system knows, whatever the environment says."""
    session = await store(database, "1", user_text("hello"))
    assert (await history(tmp_path))[0] == 0
    assert (await history(tmp_path, "telegram:1:0"))[0] == 1
    assert await audit(database) == []
    await history(tmp_path, str(session), USER="somebody", LOGNAME="somebody")
    await history(tmp_path, PLACE.key)
    assert await audit(database) == [(USER, "history.read", PLACE.key)] * 2


@asynccontextmanager
async def asked(folder: Path, verb: Verb) -> AsyncGenerator[None]:
    """A process runs there that can be asked for a reading."""
    running = asyncio.create_task(Control(folder, {READING: verb}).run())
    async with asyncio.timeout(10):
        while not await asyncio.to_thread((folder / SOCKET).exists):
            assert not running.done()
            await asyncio.sleep(0.01)
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_running_process_notes_the_reading_itself(
    tmp_path: Path, database: Database
) -> None:
    """Its database has one writer."""
    await store(database, "r1", user_text("hi"))
    told: list[JsonObject] = []

    async def note(arguments: JsonObject) -> None:
        told.append(arguments)

    async with asked(tmp_path, note):
        code, lines, _ = await history(tmp_path, PLACE.key)
    assert (code, lines[2]) == (0, "  hi")
    assert told == [{"actor": USER, "session": PLACE.key}]
    assert await audit(database) == []


async def test_a_reading_that_the_running_process_cannot_note_shows_nothing(
    tmp_path: Path, database: Database
) -> None:
    await store(database, "r1", user_text("hi"))

    async def refuse(_: JsonObject) -> None:
        raise ControlRefused("the disk is full")

    async with asked(tmp_path, refuse):
        code, lines, errors = await history(tmp_path, PLACE.key)
    assert (code, lines) == (1, [])
    assert "the disk is full" in errors


async def test_without_a_session_all_are_listed_newest_first(
    tmp_path: Path, database: Database
) -> None:
    assert await history(tmp_path) == (0, ["no conversation is stored in galata.db"], "")
    first = await store(database, "1", user_text("a"), assistant_text("b"))
    second = await store(database, "o", user_text("c"), place=OTHER)
    code, lines, _ = await history(tmp_path)
    assert code == 0
    assert lines[0].split() == ["number", "messages", "last", "message", "session"]
    rows = [line.split() for line in lines[1:]]
    assert [(row[0], row[1], row[4], row[5]) for row in rows] == [
        (str(second), "1", "UTC", OTHER.key),
        (str(first), "2", "UTC", PLACE.key),
    ]


async def test_an_unknown_session_is_told_in_a_sentence(tmp_path: Path, database: Database) -> None:
    code, lines, errors = await history(tmp_path, "telegram:1:0")
    assert (code, lines) == (1, [])
    assert errors == (
        "no session 'telegram:1:0' is stored in galata.db; galata history lists those that are\n"
    )


async def test_a_wrong_folder_creates_no_database(tmp_path: Path) -> None:
    code, _, errors = await history(tmp_path, "1")
    assert code == 1
    assert "galata.db is not there" in errors
    assert os.listdir(tmp_path) == []


async def test_more_than_one_session_is_wrong_use(tmp_path: Path) -> None:
    code, _, errors = await history(tmp_path, "1", "2")
    assert code == 2
    assert "usage: galata" in errors


async def test_a_message_cannot_steer_the_terminal(tmp_path: Path, database: Database) -> None:
    """Escape sequences, as C0 and as C1, a return to the line's start, and reordering."""
    session = await store(
        database,
        "1",
        user_text("a\x1b]0;title\x07 b\x9b31m c\rover\x08 d\u202ee\u2066f \x00\x7f\ttab 👩‍🚀"),
    )
    _, lines, _ = await history(tmp_path, str(session))
    assert lines[2:] == [
        "  a\\x1b]0;title\\x07 b\\x9b31m c",
        "  over\\x08 d\\u202ee\\u2066f \\x00\\x7f\ttab 👩‍🚀",
    ]


async def test_what_the_terminal_cannot_show_is_escaped(tmp_path: Path, database: Database) -> None:
    session = await store(database, "1", user_text("Galata köprüsü 🌉"))
    code, lines, errors = await history(tmp_path, str(session), PYTHONIOENCODING="ascii")
    assert (code, errors) == (0, "")
    assert lines[2] == "  Galata k\\xf6pr\\xfcs\\xfc \\U0001f309"


async def test_a_reader_that_has_seen_enough_is_no_failure(
    tmp_path: Path, database: Database
) -> None:
    session = await store(database, "1", *[user_text(f"{n} " + "x" * 1000) for n in range(300)])
    process = await asyncio.create_subprocess_exec(
        *("bash", "-o", "pipefail", "-c", '"$@" | head -n 1', "bash"),
        *(sys.executable, "-m", "bridge", "history", str(session), "--data", "."),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=tmp_path,
        env=environ(tmp_path),
    )
    out, errors = await process.communicate()
    assert (process.returncode, errors) == (0, b"")
    assert out.startswith(b"session ")


async def test_it_works_while_the_bot_writes(tmp_path: Path, database: Database) -> None:
    session = await store(database, "0", user_text("hello"))
    reading = asyncio.ensure_future(history(tmp_path, str(session)))
    runs = 0
    while not reading.done():
        runs += 1
        await store(database, f"{runs}", user_text(f"message {runs}"))
        await asyncio.sleep(0)
    code, lines, errors = await reading
    assert (code, errors) == (0, "")
    assert lines[2] == "  hello"
    assert await audit(database) == [(USER, "history.read", PLACE.key)]
    await store(database, "last", user_text("the bot goes on"))


@pytest.mark.parametrize("read_only", ["folder", "file"])
async def test_a_read_only_folder_is_told_and_nothing_is_shown(
    tmp_path: Path, read_only: str
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    database = await Database.open(folder / "galata.db")
    await store(database, "1", user_text("not without a record"))
    await database.close()
    if read_only == "folder":
        folder.chmod(0o500)
    else:
        (folder / "galata.db").chmod(0o400)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _PLAIN_USER, "history", "1", "--data", "data"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=tmp_path,
        env=environ(tmp_path),
    )
    out, errors = await process.communicate()
    folder.chmod(0o700)
    assert process.returncode == 1
    assert out == b""
    assert b"is the folder read-only?" in errors
    assert b"is recorded in the database, which must be writable" in errors
    assert b"Traceback" not in errors
