"""What the bot has repeated of an erased person's words, in answers to others: found word by word, or
by a name that proves whom a text is about. What it has told in other words, without a name, is not."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agent.messages import Block, MessageFormatError, TextBlock, decode, encode
from memory.clock import stamp
from memory.forgotten.copies import TAKEN_OUT, Bodies
from memory.forgotten.withdrawn import replies_that_say, withdraw
from memory.scopes import ChatScope
from memory.text.own_names import OwnName
from memory.text.provenance import sentences
from memory.text.quoting import ATTACHED, QUOTE, SPEAKER
from memory.text.words import contains, normalised
from memory.tombstones import Forgotten, tells_enough


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


@dataclass(frozen=True, slots=True)
class Repeated:
    """What goes from answers: lines that repeat the `words` or have one of the `names`."""

    words: Forgotten
    names: Sequence[OwnName] = ()

    def goes(self, line: str, at: str) -> bool:
        """Whether this line of an answer of that time does."""
        return self.words.repeats(line) or any(name.stands_in(line, at) for name in self.names)


def repeats_of(
    connection: sqlite3.Connection, chat: ChatScope, what: Repeated, after: int = 0
) -> tuple[Bodies, int]:
    """The chat's answers beyond row `after` of which something goes, without it; the newest row looked
    at."""
    rows = connection.execute(
        "SELECT m.id, m.body, m.created_at FROM messages m JOIN sessions s ON s.id = m.session_id"
        " WHERE m.id > ? AND s.channel = ? AND s.account = ? AND s.chat = ?"
        " AND m.role = 'assistant' ORDER BY m.id",
        (after, chat.channel, chat.account, chat.chat),
    )
    found, newest = Bodies(), after
    for id_, body, at in rows:
        newest = int(id_)
        kept = _without(str(body), what, str(at))
        if kept is not None:
            found.append((newest, kept))
    return found, newest


def take_out_repeated(
    connection: sqlite3.Connection, chat: ChatScope, what: Repeated, known: Bodies, after: int
) -> None:
    """Store what `repeats_of` has found up to row `after`, and the same of what came later; answers
    that repeat it are not sent again. For use inside a write."""
    later, _ = repeats_of(connection, chat, what, after)
    connection.executemany(
        "UPDATE messages SET body = ? WHERE id = ?", [(body, id_) for id_, body in (*known, *later)]
    )
    replies = replies_that_say(connection, chat, lambda line: what.goes(line, stamp()))
    withdraw(connection, replies, ())


def drop_tombstones(
    connection: sqlite3.Connection, scope: str, what: Repeated, called: Iterable[str]
) -> None:
    """What was forgotten or taken back of somebody who is `called` so goes, and of nobody in particular
    what repeats it: its words would stay. For use inside a write."""
    mine = {normalised(name) for name in called}
    proven = {normalised(name.name) for name in what.names if name.tells}
    rows = connection.execute("SELECT hash, words, whose FROM tombstones WHERE scope = ?", (scope,))
    for hashed, words, whose in rows.fetchall():
        names = {name for name in str(whose).split("\n") if name}
        about = any(contains(str(words), name) for name in proven)
        if names & mine or about or (not names and what.words.repeats(str(words))):
            connection.execute(
                "DELETE FROM tombstones WHERE scope = ? AND hash = ?", (scope, hashed)
            )


def _without(body: str, what: Repeated, at: str) -> str | None:
    """The message without these lines; None where nothing goes."""
    try:
        message = decode(body)
    except MessageFormatError:
        return None
    blocks: list[Block] = []
    for block in message.blocks:
        if isinstance(block, TextBlock):
            lines = block.text.split("\n")
            kept = [line for line in lines if not what.goes(line, at)]
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
