"""What the bot has repeated of an erased person's words, in answers to others: found word by word, or
by a name that proves whom a text is about. What it has told in other words, without a name, is not."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from agent.messages import Block, MessageFormatError, TextBlock, decode, encode
from memory.copies import TAKEN_OUT
from memory.own_names import OwnName
from memory.provenance import sentences
from memory.quoting import ATTACHED, QUOTE, SPEAKER
from memory.scopes import ChatScope
from memory.tombstones import Forgotten, tells_enough
from memory.withdrawn import replies_that_say, withdraw
from memory.words import normalised


def words_of(connection: sqlite3.Connection, runs: Iterable[str]) -> Forgotten:
    """The sentences that the questions of these runs hold, as far as they tell something."""
    said: set[str] = set()
    for run in runs:
        row = connection.execute(
            "SELECT body FROM messages WHERE run_id = ? AND ordinal = 0", (run,)
        ).fetchone()
        for text in _texts(str(row[0])) if row is not None else ():
            if not text.startswith(ATTACHED):
                own = QUOTE.sub(" ", SPEAKER.sub("", text, count=1))
                said |= {normalised(one) for line in own.splitlines() for one in sentences(line)}
    return Forgotten(frozenset(filter(tells_enough, said)))


def take_out_repeated(
    connection: sqlite3.Connection, chat: ChatScope, words: Forgotten, names: Sequence[OwnName]
) -> None:
    """Lines of the chat's answers that repeat the words or have one of the names go, and answers that
    do are not sent again. For use inside a write, after the person's own runs have gone."""
    rows = connection.execute(
        "SELECT m.id, m.body, m.created_at FROM messages m JOIN sessions s ON s.id = m.session_id"
        " WHERE s.channel = ? AND s.account = ? AND s.chat = ? AND m.role = 'assistant'",
        (chat.channel, chat.account, chat.chat),
    ).fetchall()
    for id_, body, at in rows:
        kept = _without(str(body), _goes(words, names, str(at)))
        if kept is not None:
            connection.execute("UPDATE messages SET body = ? WHERE id = ?", (kept, id_))
    now = max((str(row[2]) for row in rows), default="")
    goes = _goes(words, names, now)
    withdraw(connection, replies_that_say(connection, chat, goes), ())


def _goes(words: Forgotten, names: Sequence[OwnName], at: str) -> Callable[[str], bool]:
    return lambda line: words.repeats(line) or any(name.stands_in(line, at) for name in names)


def _without(body: str, goes: Callable[[str], bool]) -> str | None:
    """The message without these lines; None where nothing goes."""
    try:
        message = decode(body)
    except MessageFormatError:
        return None
    blocks: list[Block] = []
    for block in message.blocks:
        if isinstance(block, TextBlock):
            lines = block.text.split("\n")
            kept = [line for line in lines if not goes(line)]
            if len(kept) < len(lines):
                block = replace(block, text="\n".join(kept) if any(kept) else TAKEN_OUT)
        blocks.append(block)
    changed = replace(message, blocks=tuple(blocks))
    return encode(changed) if changed != message else None


def _texts(body: str) -> list[str]:
    try:
        return [block.text for block in decode(body).blocks if isinstance(block, TextBlock)]
    except MessageFormatError:
        return []
