"""Field cases (g) about what is stored: many write at once, nothing is counted by place, and nothing is
wiped.

    110  here
    114, 116, 117, 120, 121   test_restart.py
    118  here; memory/test_flush.py: every_message_is_in_one_span_whatever_the_clock_did
    119  here
    122  test_chats.py: what was written while the bot was down is answered in order
"""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from agent.messages import user_text
from memory.conversations import Conversations, SessionPlace
from memory.database import Database
from memory.notes.flushed import FlushMarks
from tests.bridge.bed import bed
from tests.bridge.faulty_store import BULK, FAULTS
from tests.field_cases.world import DATABASE

CHATS, EACH = 20, 5


async def test_many_chats_write_at_once_while_others_read(tmp_path: Path) -> None:
    """Case 110: one writer, short transactions; a reader of another process is in nobody's way."""
    async with bed(tmp_path, ["fine"] * (CHATS * EACH)) as it:
        reader = await Database.open_beside(tmp_path / DATABASE)
        try:
            for number in range(EACH):
                await asyncio.gather(
                    *(it.send(f"question {number}", chat=str(chat)) for chat in range(CHATS)),
                    *(reader.read("SELECT COUNT(*) FROM messages") for _ in range(CHATS)),
                )
                await it.bridge.idle()
            stored = await reader.read(
                "SELECT session_id, role, COUNT(*) FROM messages GROUP BY session_id, role"
            )
        finally:
            await reader.close()
        assert len(stored) == 2 * CHATS
        assert {row[2] for row in stored} == {EACH}
        assert it.channel.finals == ["fine"] * (CHATS * EACH)
        assert await it.database.read("SELECT * FROM errors") == []


async def test_no_chat_reads_the_words_of_the_database(tmp_path: Path) -> None:
    """Case 110: `(sqlite3.OperationalError) database is locked [SQL: …]` was posted into a group."""
    stall = asyncio.Event()
    async with bed(tmp_path, [BULK, "next"], stall=stall) as it:
        await it.send("question", chat="team", private=False)
        await it.provider.streaming.wait()
        async with FAULTS["locked"](it.database, tmp_path / DATABASE):
            stall.set()
            await it.until(lambda: it.channel.finals)
            (told,) = it.channel.finals
        await it.until(lambda: BULK.strip() in it.channel.finals)
        assert len(it.channel.finals) == 2
        for word in ("sql", "database", "locked", "traceback", "error:"):
            assert word not in told.lower()


async def test_what_is_consolidated_is_known_by_row_not_by_count(tmp_path: Path) -> None:
    """Case 118: 20 rows, the mark at 10, the oldest 8 deleted: 10 are left to do, each once."""
    database = await Database.open(tmp_path / DATABASE)
    try:
        conversations, marks = Conversations(database), FlushMarks(database)
        session = await conversations.open(SessionPlace("fake:1", "fake", "bot", "1", None))
        for number in range(20):
            message = user_text(f"row {number}")
            await conversations.append(session, f"r{number}", [(0, message)])
        ids = [one.id for one in (await marks.waiting(session)).messages]
        assert len(ids) == 20
        await marks.advance(session, ids[0], ids[9], None)

        def trim(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM messages WHERE id <= ?", (ids[7],))

        await database.write(trim)
        left = (await marks.waiting(session)).messages
        assert [one.id for one in left] == ids[10:]
        await marks.advance(session, left[0].id, left[-1].id, None)
        assert (await marks.waiting(session)).messages == ()
    finally:
        await database.close()


async def test_a_new_conversation_wipes_nothing(tmp_path: Path) -> None:
    """Case 119: what was said before is left out, and stays stored."""
    async with bed(tmp_path, ["old answer", "new answer"]) as it:
        await it.ask("old question")
        await it.ask("/new")
        await it.ask("new question")
        assert it.said() == [("user", "new question")]
        bodies = str([tuple(row) for row in await it.database.read("SELECT body FROM messages")])
        for text in ("old question", "old answer", "new question", "new answer"):
            assert text in bodies
