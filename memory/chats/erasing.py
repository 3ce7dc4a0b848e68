"""Everything that is stored of one chat goes, or of one person in all chats. What was used stays as
totals without a person; of the last two days, over which limits of a person go, under a mark that is
taken away when they are over.

Where people are still there (`alive`) some things stay: the keys of messages, without a text, for as
long as a platform may deliver one again; the sums of its days, so that nobody gets past a limit by
erasing; the limits that admins have set.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from agent.messages import MessageFormatError, TextBlock, decode
from memory.audit import record
from memory.chats.moving import NAMES, drop_index, names_of
from memory.clock import stamp
from memory.scopes import SHARED
from memory.text.quoting import SPEAKER

OF_SESSION: Final = (
    "outbox",
    "memory_snapshots",
    "flushed",
    "runs",
    "messages",
    "boundaries",
    "left_out",
    "refused_images",
    "speakers",
    "inbox",
)
"""Tables whose rows of a session are deleted; a test compares them with the schema."""

_TOTALS = (
    "INSERT INTO usage (run_id, number, session_id, person, model, purpose, outcome, input_tokens,"
    " output_tokens, cache_read_tokens, cache_write_tokens, estimated, cost_microusd, created_at)"
    " SELECT 'erased:' || lower(hex(randomblob(8))), 1, NULL,"
    " CASE WHEN person GLOB 'erased:*' THEN person"
    " WHEN :alive AND person <> '' AND created_at >= :since THEN 'erased:' || :channel || ':' || person"
    " ELSE '' END AS who, model, purpose,"
    " outcome, SUM(input_tokens), SUM(output_tokens), SUM(cache_read_tokens),"
    " SUM(cache_write_tokens), estimated, SUM(cost_microusd), MAX(created_at)"
    " FROM usage WHERE session_id = :session"
    " GROUP BY who, model, purpose, outcome, estimated, substr(created_at, 1, 10)"
)


ERASED: Final = "erased"
"""The person that what erased people have used is booked to; no platform has such an id."""
OPEN_FOR: Final = timedelta(days=2)
"""No limit of a person goes over a longer time: a chat's day has 47 hours at most
(`memory.costs.days`)."""
_WITHOUT_TEXT = (
    "UPDATE inbox SET body = NULL, stopped_by = NULL, run_id = NULL, session_id = NULL,"
    " state = 'done', done_at = COALESCE(done_at, received_at)"
)


def erase(
    connection: sqlite3.Connection,
    place: tuple[str, str, str],
    names: Iterable[str],
    *,
    alive: bool = False,
    by: str = "galata",
) -> None:
    """Erase the chat that has or had these ids; for use inside a write. Repeats are harmless. `by`: who
    has wanted it, for the audit table."""
    account = place[:2]
    ids = sorted(names)
    sessions = [id_ for name in ids for id_ in _sessions(connection, account, name)]
    erase_sessions(connection, sessions, alive=alive)
    for name in ids:
        _rest(connection, (*account, name), alive=alive)
    record(connection, by, "chat.erased", ":".join(place), f"{len(sessions)} conversations")


def erase_sessions(connection: sqlite3.Connection, sessions: Iterable[int], *, alive: bool) -> None:
    """Everything of these sessions; for use inside a write."""
    for session in sessions:
        found = connection.execute(
            "SELECT channel FROM sessions WHERE id = ?", (session,)
        ).fetchone()
        values = {"session": session, "alive": alive, "since": _open_since()}
        connection.execute(_TOTALS, {**values, "channel": found[0] if found else ""})
        connection.execute("DELETE FROM usage WHERE session_id = ?", (session,))
        if alive:
            connection.execute(f"{_WITHOUT_TEXT} WHERE session_id = ?", (session,))
        for table in OF_SESSION:
            connection.execute(
                f"DELETE FROM {table} WHERE session_id = ?",  # noqa: S608 - our names
                (session,),
            )
        connection.execute("DELETE FROM sessions WHERE id = ?", (session,))


def _sessions(connection: sqlite3.Connection, account: tuple[str, str], chat: str) -> Sequence[int]:
    rows = connection.execute(
        "SELECT id FROM sessions WHERE channel = ? AND account = ? AND chat = ?", (*account, chat)
    )
    return [int(row[0]) for row in rows]


def _rest(connection: sqlite3.Connection, place: tuple[str, str, str], *, alive: bool) -> None:
    """What names the chat itself. A move stays known: the configuration may name the old id."""
    where = "channel = ? AND account = ? AND chat = ?"
    for table in ("dialogues", "private_talks"):
        connection.execute(f"DELETE FROM {table} WHERE {where}", place)  # noqa: S608 - our names
    if alive:
        connection.execute(f"{_WITHOUT_TEXT} WHERE {where}", place)
        _book_to_nobody(connection, where, place)
    else:
        connection.execute(f"DELETE FROM inbox WHERE {where}", place)  # noqa: S608
        connection.execute(f"DELETE FROM gone_chats WHERE {where}", place)  # noqa: S608
        connection.execute(f"DELETE FROM unread_places WHERE {where}", place)  # noqa: S608
        connection.execute(f"DELETE FROM known_groups WHERE {where}", place)  # noqa: S608
        connection.execute(f"DELETE FROM usage_days WHERE {where}", place)  # noqa: S608
        connection.execute(
            "DELETE FROM policies WHERE channel = ? AND chat = ?", (place[0], place[2])
        )
    drop_index(connection, place)
    for table, column in NAMES:
        if alive and table == "memory_off":
            continue  # it stays switched off
        for value in names_of(connection, table, column, place):
            connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (value,))  # noqa: S608


def _book_to_nobody(connection: sqlite3.Connection, where: str, values: Sequence[object]) -> None:
    """The days' sums of these rows are those of erased people from now on; of days that may go on with
    the mark. What the memory has used is booked to no person already."""
    those = f"{where} AND person NOT IN (?, '') AND person NOT GLOB 'erased:*'"
    who = "IIF(began_at >= ?, 'erased:' || channel || ':' || person, ?)"
    connection.execute(
        f"INSERT INTO usage_days SELECT channel, account, chat, began_at, {who} AS who, day,"  # noqa: S608
        f" SUM(calls), SUM(tokens), SUM(cost_microusd) FROM usage_days WHERE {those}"
        " GROUP BY channel, account, chat, began_at, who"
        " ON CONFLICT (channel, account, chat, began_at, person) DO UPDATE SET"
        " calls = calls + excluded.calls, tokens = tokens + excluded.tokens,"
        " cost_microusd = cost_microusd + excluded.cost_microusd",
        (_open_since(), ERASED, *values, ERASED),
    )
    connection.execute(f"DELETE FROM usage_days WHERE {those}", (*values, ERASED))  # noqa: S608


def _open_since() -> str:
    return stamp(datetime.now(UTC) - OPEN_FOR)


def forget_marks(connection: sqlite3.Connection, now: datetime) -> None:
    """What was used before every limit of a person has opened again is nobody's from now on; for use
    inside a write."""
    before = (stamp(now - OPEN_FOR),)
    connection.execute(
        "UPDATE usage SET person = IIF(session_id IS NULL, '', 'erased')"
        " WHERE person GLOB 'erased:*' AND created_at < ?",
        before,
    )
    over = "person GLOB 'erased:*' AND began_at < ?"
    connection.execute(
        "INSERT INTO usage_days SELECT channel, account, chat, began_at, 'erased', day, SUM(calls),"  # noqa: S608
        f" SUM(tokens), SUM(cost_microusd) FROM usage_days WHERE {over}"
        " GROUP BY channel, account, chat, began_at"
        " ON CONFLICT (channel, account, chat, began_at, person) DO UPDATE SET"
        " calls = calls + excluded.calls, tokens = tokens + excluded.tokens,"
        " cost_microusd = cost_microusd + excluded.cost_microusd",
        before,
    )
    connection.execute(f"DELETE FROM usage_days WHERE {over}", before)  # noqa: S608


# A person in groups ----------------------------------------------------------------------------------


def runs_of(connection: sqlite3.Connection, session: int, person: str) -> set[str]:
    """The runs in which the person has asked: by their messages, and where those are no longer known by
    the number that the question begins with."""
    rows = connection.execute(
        "SELECT DISTINCT run_id FROM inbox WHERE session_id = ? AND person = ? AND run_id NOT NULL",
        (session, person),
    )
    found = {str(row[0]) for row in rows}
    number = connection.execute(
        "SELECT number FROM speakers WHERE session_id = ? AND person = ?", (session, person)
    ).fetchone()
    if number is None:
        return found
    rows = connection.execute(
        "SELECT run_id, body FROM messages WHERE session_id = ? AND ordinal = 0", (session,)
    )
    for run, body in rows:
        speaker = SPEAKER.match(_last_text(str(body)))
        if speaker is not None and int(speaker[2]) == number[0]:
            found.add(str(run))
    return found


def _last_text(body: str) -> str:
    try:
        texts = [block.text for block in decode(body).blocks if isinstance(block, TextBlock)]
    except MessageFormatError:
        return ""
    return texts[-1] if texts else ""


def erase_in_session(connection: sqlite3.Connection, session: int, person: str) -> None:
    """What the person has asked in a session of several, with the answers; for use inside a write.
    Summaries of older messages go as a whole: who said what is not told apart in them."""
    runs = runs_of(connection, session, person)
    acts = connection.execute(
        "SELECT 'act:' || id FROM inbox WHERE session_id = ? AND person = ?", (session, person)
    ).fetchall()
    for key in (*runs, *(str(row[0]) for row in acts)):
        connection.execute("DELETE FROM outbox WHERE key = ?", (key,))
    for table in ("messages", "runs", "left_out", "refused_images", "memory_changes"):
        connection.executemany(
            f"DELETE FROM {table} WHERE run_id = ?",  # noqa: S608 - our names
            [(run,) for run in runs],
        )
    connection.execute("UPDATE boundaries SET note = NULL WHERE session_id = ?", (session,))
    connection.execute("DELETE FROM memory_snapshots WHERE session_id = ?", (session,))
    connection.execute(
        "DELETE FROM speakers WHERE session_id = ? AND person = ?", (session, person)
    )
    connection.execute(
        "UPDATE usage SET person = IIF(created_at >= ?, 'erased:' || (SELECT channel FROM sessions"
        " WHERE id = session_id) || ':' || person, ?) WHERE session_id = ? AND person = ?",
        (_open_since(), ERASED, session, person),
    )


def erase_person(connection: sqlite3.Connection, channel: str, person: str, by: str) -> None:
    """What else names the person, on all accounts of the channel; for use inside a write, after their
    own chats and their sessions. That they may use the bot, and own it, stays."""
    mine = "channel = ? AND person = ?"
    connection.execute(
        "DELETE FROM tombstones WHERE (scope, hash) IN"
        " (SELECT scope, hash FROM memory_changes WHERE person = ? AND (scope GLOB ? OR scope = ?)"
        " AND (kind = 'forgotten' OR tombstones.undone))",
        (person, f"*:{channel}:*", SHARED),
    )
    # No two platforms' ids look alike, so that a shared memory needs no channel beside them.
    connection.execute(
        "DELETE FROM memory_changes WHERE person = ? AND (scope GLOB ? OR scope = ?)",
        (person, f"*:{channel}:*", SHARED),
    )
    connection.execute(
        "UPDATE inbox SET body = NULL, stopped_by = NULL, run_id = NULL"  # noqa: S608
        f" WHERE {mine} AND state = 'done'",
        (channel, person),
    )
    connection.execute(f"DELETE FROM dialogues WHERE {mine}", (channel, person))  # noqa: S608
    _book_to_nobody(connection, mine, (channel, person))
    connection.execute(
        f"UPDATE admissions SET name = '', language = NULL WHERE {mine}",  # noqa: S608
        (channel, person),
    )
    connection.execute(
        f"DELETE FROM pairings WHERE {mine} AND state <> 'open'",  # noqa: S608
        (channel, person),
    )
    connection.execute(
        "DELETE FROM notices WHERE key GLOB ? OR key GLOB ? OR key GLOB ?",
        (f"*:{channel}:*:{person}", f"*:{channel}:*:{person}:*", f"*:{channel}:{person}"),
    )
    record(connection, by, "person.erased", f"{channel}:{person}")
