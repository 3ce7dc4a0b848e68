"""A database as it is after many conversations: every message answered, every reply delivered."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.messages import Message, TextBlock, encode
from bridge.inbound import dump
from bridge.operation.data_folder import DATABASE
from bridge.session import session_of
from channels.base import Address, InboundMessage, Sender
from memory.clock import stamp
from memory.database import Database

_QUESTION = "When is the tide low enough to walk over to the island, and for how long? "
_ANSWER = "The tide is lowest at noon; from half past ten to half past one the flats are dry. " * 5
_FIRST_CHAT = 5_000_000

_SQL = {
    "sessions": "(id, key, channel, account, chat, created_at)",
    "inbox": "(channel, account, chat, event, session_id, person, kind, state, body, run_id,"
    " received_at, done_at, outcome, sent_at)",
    "runs": "(run_id, session_id, state, outcome, began_at, settled_at)",
    "messages": "(session_id, run_id, ordinal, role, body, created_at)",
    "usage": "(run_id, number, session_id, person, model, purpose, outcome, input_tokens,"
    " output_tokens, cache_read_tokens, cache_write_tokens, estimated, created_at)",
    "outbox": "(id, key, session_id, private, language, state, outcome, created_at, done_at)",
    "outbox_parts": "(reply_id, number, body, state, message_id)",
}


@dataclass(frozen=True, slots=True)
class _Turn:
    """The `number`-th of all turns, in the chat of the `session`-th session; ids from 1."""

    account: str
    session: int
    number: int

    @property
    def message(self) -> InboundMessage:
        chat = str(_FIRST_CHAT + self.session)
        sent_at = datetime.now(UTC) - timedelta(days=1, seconds=-0.1 * self.number)
        who, key = Sender(chat, "Ana", "en"), str(self.number)
        return InboundMessage(
            Address("telegram", self.account, chat), f"m:{key}", key, who, sent_at, _QUESTION * 2
        )

    def rows(self) -> dict[str, list[tuple[object, ...]]]:
        """By table."""
        message, session, number, run = (
            self.message,
            self.session,
            self.number,
            f"r{self.number:016x}",
        )
        to, at = message.address, stamp(message.sent_at)
        question = encode(Message("user", (TextBlock(message.text),)))
        answer = encode(Message("assistant", (TextBlock(_ANSWER),)))
        done = ("turn", "done", dump(message), run, at, at, "answered", at)
        return {
            "inbox": [
                (to.channel, to.account, to.chat, message.event, session, to.chat, *done),
            ],
            "runs": [(run, session, "settled", "answered", at, at)],
            "messages": [
                (session, run, 0, "user", question, at),
                (session, run, 1, "assistant", answer, at),
            ],
            "usage": [(run, 1, session, to.chat, "m", "answer", "completed", 9, 9, 0, 0, 0, at)],
            "outbox": [(number, run, session, 1, "en", "done", "delivered", at, at)],
            "outbox_parts": [(number, 0, answer, "sent", str(number))],
        }


def fill(data: Path, account: str, sessions: int, turns: int) -> None:
    """Make the database of a data folder: `turns` turns, two messages each, shared by `sessions`
    private chats in Telegram with the bot `account`."""
    data.mkdir(mode=0o700)
    path = data / DATABASE
    asyncio.run(_make(path))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        _insert(connection, "sessions", [_session(account, n + 1) for n in range(sessions)])
        for number in range(turns):
            for table, rows in _Turn(account, number % sessions + 1, number + 1).rows().items():
                _insert(connection, table, rows)
        connection.commit()


async def _make(path: Path) -> None:
    database = await Database.open(path)
    await database.close()


def _session(account: str, session: int) -> tuple[object, ...]:
    message = _Turn(account, session, session).message
    place = session_of(message.address, message.sender.id, "shared")
    made = stamp(message.sent_at)
    return (session, place.key, place.channel, place.account, place.chat, made)


def _insert(connection: sqlite3.Connection, table: str, rows: list[tuple[object, ...]]) -> None:
    columns = _SQL[table]
    marks = ", ".join("?" for _ in columns.split(","))
    connection.executemany(f"INSERT INTO {table} {columns} VALUES ({marks})", rows)
