"""What rests on messages that are forgotten goes with them: lines of day files, by the ids that stand
in them, and summaries, by the messages that they stand for."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path

from agent.messages import Message, MessageFormatError, TextBlock, decode
from memory.clock import stamp
from memory.markdown.files import names, read
from memory.markdown.headings import is_aside, is_title, without
from memory.markdown.lines import rewrite, said, speaker_of
from memory.scopes import ChatScope, day_name, day_of
from memory.stored_messages import readable
from memory.text.telling import telling
from memory.tombstones import Forgotten, forgotten_in

NOTE_HEAD = "[Earlier conversation] "
"""Stands before what stands for older messages in a context, as `agent.context` writes it."""
MOST_NOTED = 1_500  # characters of the digest that stands in for a summary
MOST_LINE = 160  # of one message in it
EARLIER = timedelta(days=7)  # a note stands in the file of the first message that it rests on
_SOURCES = re.compile(r"\[([0-9][0-9, –-]*)\]\s*$")
_SPAN = re.compile(r"([0-9]{1,18})\s*[–-]\s*([0-9]{1,18})|([0-9]{1,18})")
TAKES = timedelta(seconds=10)  # from a tombstone to all that goes with it
_LONGEST = 1_000  # messages of a range that is written as one

Run = tuple[str, int]  # its id, and its session


def messages_of(connection: sqlite3.Connection, runs: Iterable[Run]) -> dict[int, date]:
    """The ids of the runs' messages, and the days on which they were stored (in UTC)."""
    return {
        int(row[0]): datetime.fromisoformat(row[1]).date()
        for run_id, _ in runs
        for row in connection.execute(
            "SELECT id, created_at FROM messages WHERE run_id = ?", (run_id,)
        )
    }


def drop_resting(folder: Path, gone: Mapping[int, date], forgotten: Forgotten) -> None:
    """Take the lines that rest on these messages out of the day files of a scope's `folder`. One that
    rests on others as well goes where it has a word of what is `forgotten`. Raises `FactsRefused` and
    `OSError`."""
    if not gone:
        return
    day, last = min(gone.values()) - EARLIER, max(gone.values()) + timedelta(days=1)
    while day <= last:
        path = folder / day_name(day)
        if path.is_file():
            # An id may have been given anew after messages were deleted: not to older ones.
            ids = frozenset(id_ for id_, at in gone.items() if at >= day - timedelta(days=1))
            rewrite(path, folder, partial(_without, gone=ids, forgotten=forgotten))
        day += timedelta(days=1)


def _without(data: bytes, gone: frozenset[int], forgotten: Forgotten) -> bytes:
    text = data.decode("utf-8", "surrogateescape")
    return without_resting(text, gone, forgotten).encode("utf-8", "surrogateescape")


def without_resting(text: str, gone: frozenset[int], forgotten: Forgotten) -> str:
    """A day file without the lines that rest on the messages `gone`, without those that repeat what is
    `forgotten` among what nobody said, and without titles that say it or have nothing below them any
    more. All other lines stay as they are."""
    about = frozenset[str]().union(*map(telling, forgotten.sayings))
    lines = text.split("\n")
    aside, going = False, set[int]()
    for number, line in enumerate(lines):
        if line.startswith("#"):
            aside = is_aside(line)
            goes = is_title(line) and forgotten.covers(line)
        else:
            goes = _goes(line, gone, about) or (aside and forgotten.covers(line))
        if goes:
            going.add(number)
    return "\n".join(lines[number] for number in without(lines, going))


def _goes(line: str, gone: frozenset[int], about: frozenset[str]) -> bool:
    ids = sources_of(line)
    if not ids & gone:
        return False
    return ids <= gone or bool(telling(line) & about)


def sources_of(line: str) -> frozenset[int]:
    """The ids of the messages that a line of a day file says it rests on."""
    found = _SOURCES.search(line)
    ids: set[int] = set()
    for first, last, one in _SPAN.findall(found[1]) if found else ():
        if one:
            ids.add(int(one))
        elif int(first) <= int(last) < int(first) + _LONGEST:
            ids.update(range(int(first), int(last) + 1))
    return frozenset(ids)


def cited(folder: Path, forgotten: Forgotten) -> list[tuple[date, frozenset[int]]]:
    """Of each note in a scope's `folder` that says what is `forgotten`, its day and the ids of the
    messages that it rests on. Raises `OSError`."""
    found: list[tuple[date, frozenset[int]]] = []
    for name in names(folder):
        day = day_of(name)
        if day is None:
            continue
        for line in read(folder / name).decode("utf-8", "replace").split("\n"):
            ids = sources_of(line)
            if ids and forgotten.covers(said(line), speaker_of(line)):
                found.append((day, ids))
    return found


def runs_cited(
    connection: sqlite3.Connection,
    chat: ChatScope,
    notes: Iterable[tuple[date, frozenset[int]]],
    sayings: Iterable[str],
) -> set[Run]:
    """The chat's runs that these notes rest on. Of a note that rests on several those that have a word
    of one of the `sayings`, and all where none has: it may have been said in another language."""
    about = frozenset[str]().union(*map(telling, sayings))
    found: set[Run] = set()
    for day, ids in notes:
        telling_: dict[Run, bool] = {}
        for id_ in ids:
            row = connection.execute(
                "SELECT m.run_id, m.session_id, m.body FROM messages m"
                " JOIN sessions s ON s.id = m.session_id WHERE m.id = ? AND s.channel = ?"
                " AND s.account = ? AND s.chat = ? AND m.created_at >= ? AND m.created_at < ?",
                (id_, chat.channel, chat.account, chat.chat, *_around(day)),
            ).fetchone()
            if row is not None:
                run = (str(row[0]), int(row[1]))
                telling_[run] = telling_.get(run, False) or bool(telling(_text(row[2])) & about)
        found |= {run for run, tells in telling_.items() if tells} or set(telling_)
    return found


def said_by_others(
    connection: sqlite3.Connection, runs: Iterable[Run], forgotten: Forgotten
) -> set[Run]:
    """Of these runs those whose question says of somebody else what is `forgotten` of one person."""
    found: set[Run] = set()
    for run in runs:
        row = connection.execute(
            "SELECT body FROM messages WHERE run_id = ? AND ordinal = 0", (run[0],)
        ).fetchone()
        text = _text(row[0]) if row is not None else ""
        if forgotten.is_of_another(text, speaker_of(text)):
            found.add(run)
    return found


def _around(day: date) -> tuple[str, str]:
    """When messages were stored that notes of that day rest on: an id may have been given anew."""
    first, last = day - timedelta(days=1), day + EARLIER + timedelta(days=1)
    return first.isoformat(), last.isoformat()


def _text(body: str) -> str:
    try:
        return decode(body).text
    except MessageFormatError:
        return ""


# Summaries ------------------------------------------------------------------------------------------


def scrub_notes(
    connection: sqlite3.Connection, chat: ChatScope, gone: Iterable[int], forgotten: Forgotten
) -> None:
    """A summary that stands for one of these messages, among others, goes: who said what is not told
    apart in it. A digest of what stays, as far as it does not say what is `forgotten`, stands in; of
    other summaries the lines go that say it. For use inside a write, after the runs were left out."""
    ids = sorted(gone)
    rows = connection.execute(
        "SELECT b.id, b.session_id, b.start_id, b.note, COALESCE((SELECT MAX(n.start_id)"
        " FROM boundaries n WHERE n.session_id = b.session_id AND n.kind = 'new'"
        " AND n.id < b.id), 0) AS began FROM boundaries b JOIN sessions s ON s.id = b.session_id"
        " WHERE s.channel = ? AND s.account = ? AND s.chat = ? AND b.note IS NOT NULL",
        (chat.channel, chat.account, chat.chat),
    ).fetchall()
    for row in rows:
        lines = forgotten.without(str(row["note"]).split("\n"))
        if any(row["began"] <= id_ < row["start_id"] for id_ in ids):
            lines = _digest(connection, row, forgotten)
        kept = "\n".join(lines)
        if kept != row["note"]:
            connection.execute("UPDATE boundaries SET note = ? WHERE id = ?", (kept, row["id"]))


@dataclass(frozen=True, slots=True)
class Noted:
    """What a summary was made of: a context as it was at `read_at` (ISO, UTC). `scope`: the memory of
    its chat."""

    scope: str
    read_at: str


def scrub_lately(connection: sqlite3.Connection, session: int, noted: Noted) -> None:
    """`scrub_notes` for what was forgotten since, or was being so: a summary that was just written has
    it still. For use inside a write."""
    since = stamp(datetime.fromisoformat(noted.read_at) - TAKES)
    forgotten = forgotten_in(connection, noted.scope, since)
    if not forgotten.sayings:
        return
    place = connection.execute(
        "SELECT channel, account, chat FROM sessions WHERE id = ?", (session,)
    ).fetchone()
    gone = connection.execute(
        "SELECT m.id FROM left_out l JOIN messages m ON m.run_id = l.run_id"
        " WHERE l.session_id = ? AND l.at > ?",
        (session, since),
    ).fetchall()
    scrub_notes(
        connection, ChatScope(noted.scope, *place), [int(row[0]) for row in gone], forgotten
    )


def _digest(
    connection: sqlite3.Connection, boundary: sqlite3.Row, forgotten: Forgotten
) -> list[str]:
    """Who said what, the newest lines that fit."""
    rows = connection.execute(
        "SELECT body FROM messages WHERE session_id = :session_id AND id >= :began"
        " AND id < :start_id AND run_id NOT IN (SELECT run_id FROM left_out"
        " WHERE session_id = :session_id) ORDER BY id DESC",
        {key: boundary[key] for key in ("session_id", "began", "start_id")},
    )
    room, lines = MOST_NOTED, list[str]()
    for row in rows:
        line = _line(readable(row["body"]))
        room -= len(line)
        if room < 0:
            break
        if line and not forgotten.covers(line, speaker_of(line.removeprefix("user: "))):
            lines.append(line)
    return [f"{NOTE_HEAD}(some of it was to be forgotten)", *reversed(lines)]


def _line(message: Message) -> str:
    words = " ".join(" ".join(b.text for b in message.blocks if isinstance(b, TextBlock)).split())
    cut = words if len(words) <= MOST_LINE else f"{words[:MOST_LINE]} …"
    return f"{message.role}: {cut}" if cut else ""
