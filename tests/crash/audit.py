"""What has to hold when everything has settled, whatever was killed before."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.history import violations
from agent.messages import Message, TextBlock, decode
from agent.retry import MOST_RETRIES
from bridge.runs.loading import INTERRUPTED_MARK, closed
from tests.crash.bot import LEDGER
from tests.crash.world import BARE, QUESTION, WORD, WORDS, Place, Shown, World

DATABASE = "galata.db"
NOTE = "(This part may have come before"
ASIDE = re.compile(r"that I have set aside: (\d+)")
# One whose question was dropped while it waited can be asked after all.
OPEN_RUN = (
    "state <> 'settled' AND NOT EXISTS (SELECT 1 FROM inbox i"
    " WHERE i.run_id = runs.run_id AND i.stopped_by IS NOT NULL)"
)
MISSING = "Something of my answer may not have arrived"
GIVEN_UP = "I was interrupted each time"
UNANSWERED = "The model's provider does not answer properly right now"


@dataclass(slots=True, eq=False)
class Asked:
    """A question that a person wrote. `stopped`: they have tried to stop something since, or at that
    moment."""

    number: int
    kind: str
    place: Place
    person: int
    message: Any
    stopped: bool = False

    @property
    def text(self) -> str:
        """What was written."""
        return f"q{self.number}{self.kind}"

    @property
    def kind_words(self) -> set[int]:
        """The numbers of the words of its answer."""
        return set(range(1, WORDS[self.kind] + 1))


@dataclass(slots=True)
class Findings:
    """What is wrong, with the place where that is known; and what may be, counted."""

    wrong: list[tuple[str, Place | None]] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)

    def add(self, what: str, place: Place | None = None) -> None:
        """Something is wrong."""
        self.wrong.append((what, place))

    def told(self) -> str:
        """All of it, with the transcripts of the places."""
        lines = [f"{what} [{place.name}]" if place else what for what, place in self.wrong]
        places = {place.name: place for _, place in self.wrong if place}
        for name, place in list(places.items())[:3]:
            lines += ["", name, *place.transcript()]
        return "\n".join(lines)


def audit(world: World, asked: Sequence[Asked], data: Path, findings: Findings) -> None:
    """Look at everything."""
    for what in world.model.twice:
        findings.add(what)
    for refusal in world.llm.refusals:
        findings.add(f"the model's API refuses: {refusal}")
    for violation in world.slack.violations:
        findings.add(f"Slack refuses: {violation}")
    _look_at_ledger(data, findings)
    with closing(sqlite3.connect(data / DATABASE)) as database:
        database.row_factory = sqlite3.Row
        stored = _Stored(database, findings)
        stored.look()
        for one in asked:
            _look_at_question(one, stored, world.model.cut_off, findings)
    for place in world.places:
        own = [one for one in asked if one.place is place]
        look_at_set_aside(place, [(one, stored.outcomes[one.number]) for one in own], findings)
        look_at_place(place, own, world.model.cut_off, findings)


def _look_at_ledger(data: Path, findings: Findings) -> None:
    ledger = data / LEDGER
    keys = Counter(ledger.read_text("utf-8").split()) if ledger.exists() else Counter[str]()
    findings.counted["effects of tools"] += len(keys)
    for key, count in keys.items():
        if count > 1:
            findings.add(f"the tool was executed {count} times for {key}")


class _Stored:
    """The database."""

    def __init__(self, database: sqlite3.Connection, findings: Findings) -> None:
        self._database = database
        self._findings = findings
        self.outcomes: dict[int, list[str]] = defaultdict(list)  # of each question's inbox rows
        self.takeovers: dict[int, int] = {}
        self.cut: dict[int, int] = {}  # model calls of its run that broke
        self.unsure: set[int] = set()  # questions whose answer has a part that is not sent again
        self.calls: dict[int, set[int]] = defaultdict(set)  # question -> model calls in the history

    def look(self) -> None:
        """All that needs nothing but the database."""
        for pragma in ("integrity_check", "foreign_key_check"):
            rows = [tuple(row) for row in self._database.execute(f"PRAGMA {pragma}")]
            if rows not in ([], [("ok",)]):
                self._findings.add(f"{pragma}: {rows}")
        for what, sql in (
            ("messages", "SELECT COUNT(*) FROM inbox WHERE state = 'open'"),
            ("replies", "SELECT COUNT(*) FROM outbox WHERE state = 'open'"),
            ("runs", f"SELECT COUNT(*) FROM runs WHERE {OPEN_RUN}"),
        ):
            count = self._database.execute(sql).fetchone()[0]
            if count:
                self._findings.add(f"{count} {what} are still open")
        self._look_at_inbox()
        self._look_at_outbox()
        self._look_at_histories()

    def _look_at_inbox(self) -> None:
        for row in self._database.execute(
            "SELECT i.body, i.outcome, r.takeovers, (SELECT COUNT(*) FROM usage u"
            " WHERE u.run_id = i.run_id AND u.outcome = 'failed') AS cut FROM inbox i"
            " LEFT JOIN runs r ON r.run_id = i.run_id WHERE i.kind = 'turn'"
        ):
            for number, _ in QUESTION.findall(row["body"]):
                self.outcomes[int(number)].append(row["outcome"])
                self.takeovers[int(number)] = row["takeovers"] or 0
                self.cut[int(number)] = row["cut"]

    def _look_at_outbox(self) -> None:
        for outcome, state, body in self._database.execute(
            "SELECT o.outcome, MAX(p.state), i.body FROM outbox o"
            " JOIN inbox i ON i.run_id = o.key LEFT JOIN outbox_parts p"
            " ON p.reply_id = o.id AND p.state IN ('uncertain', 'resending') GROUP BY o.id, i.id"
        ):
            numbers = [int(number) for number, _ in QUESTION.findall(body)]
            if state is not None:
                self.unsure.update(numbers)
            elif outcome in ("unreachable", "incomplete"):
                self._findings.add(f"the reply to {numbers} is {outcome}")

    def _look_at_histories(self) -> None:
        questions: Counter[str] = Counter()
        words: Counter[str] = Counter()
        sessions: dict[int, dict[str, list[Message]]] = defaultdict(dict)
        rows = self._database.execute(
            "SELECT session_id, run_id, body FROM messages ORDER BY id, ordinal"
        )
        for row in rows:
            message = decode(row["body"])
            sessions[row["session_id"]].setdefault(row["run_id"], []).append(message)
            seen, pattern = (questions, QUESTION) if message.role == "user" else (words, WORD)
            seen.update(found.group() for found in pattern.finditer(message.text))
            if message.role == "assistant":
                for question, call, _ in WORD.findall(message.text):
                    self.calls[int(question)].add(int(call))
        for what, count in (questions + words).items():
            if count > 1:
                self._findings.add(f"{what} stands {count} times in the history")
        for session, runs in sessions.items():
            history = [
                message for run in runs.values() for message in closed(tuple(run), INTERRUPTED_MARK)
            ]
            for wrong in violations([*history, Message("user", (TextBlock("next"),))]):
                self._findings.add(f"history of session {session}: {wrong}")


def _look_at_question(one: Asked, stored: _Stored, cut_off: Set[int], findings: Findings) -> None:
    outcomes = stored.outcomes[one.number]
    if len(outcomes) != 1:
        findings.add(f"{one.text} is {len(outcomes)} times in the inbox", one.place)
        return
    findings.counted[outcomes[0]] += 1
    if outcomes[0] == "cancelled" and not one.stopped:
        findings.add(f"{one.text} was cancelled by nobody", one.place)
    if outcomes[0] == "failed":
        _look_at_failure(one, stored, findings)
    if outcomes[0] == "answered":
        _look_at_answer(one, stored, cut_off, findings)


def _look_at_failure(one: Asked, stored: _Stored, findings: Findings) -> None:
    """After two takeovers, or when the model's server has broken one call and each of its retries;
    and the person was told."""
    by_servers = stored.cut[one.number] > MOST_RETRIES
    if stored.takeovers[one.number] < 2 and not by_servers:
        findings.add(f"{one.text} failed", one.place)
        return
    findings.counted["given up after retries"] += by_servers
    told = any(said in shown.text for shown in one.place.shown() for said in (GIVEN_UP, UNANSWERED))
    if not one.stopped and not told:
        findings.add(f"{one.text} was given up, and nobody was told", one.place)


def _look_at_answer(one: Asked, stored: _Stored, cut_off: Set[int], findings: Findings) -> None:
    """Whole, of one model call, and that of the history."""
    calls = stored.calls[one.number]
    if len(calls) != 1:
        findings.add(f"{one.text} has {len(calls)} answers in the history", one.place)
        return
    words = [word for shown in one.place.shown() for word in shown.words]
    seen = {(call, number) for q, call, number in words if q == one.number and call not in cut_off}
    if {call for call, _ in seen} - calls:
        findings.add(f"{one.text}: the chat shows another answer than the history", one.place)
    numbers = {number for _, number in seen}
    told = any(MISSING in shown.text for shown in one.place.shown())
    may_miss = one.number in stored.unsure and told
    if one.stopped and numbers != set(range(1, len(numbers) + 1)) and not may_miss:
        findings.add(f"{one.text}: the stopped answer has gaps", one.place)
    missing = one.kind_words - numbers
    if missing and not one.stopped:
        what = f"{one.text}: {len(missing)} words of its answer are missing"
        if may_miss:
            findings.counted["answers of which it was said that a part may be missing"] += 1
        else:
            findings.add(what, one.place)


def look_at_set_aside(
    place: Place, asked: Sequence[tuple[Asked, Sequence[str]]], findings: Findings
) -> None:
    """After a long outage, in groups: each person's newest question is none of them, and notices count
    each once."""
    newest = {one.person: one for one, _ in asked}
    aside = [one for one, outcomes in asked if "set_aside" in outcomes]
    for one in aside:
        if place.size == 1 or newest[one.person] is one:
            findings.add(f"{one.text} was set aside", place)
    shown = place.shown()
    noted = any(message.text.strip().startswith(NOTE) for message in shown)
    missing = any(MISSING in message.text for message in shown)
    told = sum(int(found) for message in shown for found in ASIDE.findall(message.text))
    if (told > len(aside) and not noted) or (told < len(aside) and not missing):
        findings.add(f"{len(aside)} were set aside, and {told} told", place)


def look_at_place(
    place: Place, asked: Sequence[Asked], cut_off: Set[int], findings: Findings
) -> None:
    """What a person sees there: nothing twice, no dead button, no mark of waiting."""
    shown = place.shown()
    for message in shown:
        if message.stoppable:
            findings.add(f"message {message.id} has a dead Stop button", place)
        findings.counted["bare previews left"] += message.text == BARE
    for one in asked:
        if place.marked(one.message):
            findings.add(f"{one.text} still has the mark of waiting", place)
    for what in _twice(shown, cut_off):
        findings.add(what, place)


def _twice(shown: Sequence[Shown], cut_off: Set[int]) -> Iterator[str]:
    """Answers' words that stand in two messages, of which the later does not say so."""
    first: dict[tuple[int, int], str] = {}
    told: set[tuple[int, str]] = set()
    noted = ""
    for message in shown:
        if message.text.strip().startswith(NOTE):
            noted = message.id
        own = [word for word in message.words if word[1] not in cut_off]
        if len(set(own)) < len(own):
            yield f"message {message.id} shows words twice"
        for question, _, number in own:
            before = first.setdefault((question, number), message.id)
            if before != message.id and NOTE not in message.text and not noted:
                told.add((question, f"{before} and {message.id}"))
        noted = noted if noted == message.id else ""
    for question, where in sorted(told):
        yield f"the answer to q{question} stands in {where}"
