"""Which lines of memory files are about a person: by what they had written, by their messages, and by a
name that proves it. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from memory.markdown.facts import Fact, parse
from memory.markdown.headings import is_title
from memory.markdown.lines import left, said, sayings
from memory.scopes import day_of
from memory.text.own_names import OwnName
from memory.tombstones import Forgotten, hash_of, tells_enough
from memory.whose.concerned import SOURCES

_ENTRY_HEAD = re.compile(r"\s*[-*+]\s+\*\*\s*[0-9]{1,6}\.?\s*\*\*\s+\([^()]*\)")
_ASIDE = re.compile(r"- (?!\*\*)")
_CHANGED = re.compile(r"\s*- [a-z ]+: \*\*[0-9]{1,6}\*\* (.*?)(?: · .*)?$")  # as a night tells it
_PARTS = re.compile(r" · |[:;] (?:was )?\*\*[0-9]{1,6}\*\* |: (?=was )")
_SPEAKERS = re.compile(r"\s*[-*+]\s+\*\*([^*]{1,200})\*\*")


@dataclass(frozen=True, slots=True)
class About:
    """What tells that a line is about the person, in one chat: their names, hashes of what they and
    others had written, their messages and all others that are stored; `written`: when the texts of
    these hashes were. `inside`: whether the person is in the chat; `words`: sentences of theirs."""

    names: tuple[OwnName, ...]
    hashes: frozenset[str]
    others: frozenset[str]
    messages: frozenset[int]
    known: frozenset[int]
    written: Mapping[str, str] = field(default_factory=dict[str, str])
    inside: bool = True
    words: Forgotten = field(default_factory=lambda: Forgotten(frozenset()))

    def covers(self, raw: str, day: date | None) -> bool:
        """Whether this line of a memory file, that of a day or (None) of what is known for good, is."""
        fact = _fact(raw)
        day = fact.day if fact is not None else day
        if self._says(raw, fact, day) or (self.inside and self._names(raw, fact, day)):
            return True
        # What the bot, a quote or a tool has repeated.
        return _ASIDE.match(raw) is not None and self.words.repeats(raw)

    def titles(self, raw: str, day: date | None) -> bool:
        """Whether the title of an event of that day names them."""
        return day is not None and any(name.heads(raw, day) for name in self.names)

    def _says(self, raw: str, fact: Fact | None, day: date | None) -> bool:
        """Whether they said it."""
        if fact is not None:
            hashed = hash_of(said(fact.text))
            return hashed in self.hashes or (
                hashed not in self.others and self._signs(fact.who, fact.day)
            )
        noted = _CHANGED.match(raw)
        if noted is not None and hash_of(said(noted[1])) in self.hashes:
            return True
        sources = _sources(raw)
        if sources & self.known:
            return bool(sources & self.messages)
        speakers = _SPEAKERS.match(raw)
        return speakers is not None and day is not None and self._signs(speakers[1], day)

    def is_of_others(self, raw: str) -> bool:
        """Whether a note is known to rest on others' messages alone."""
        sources = _sources(raw) & self.known
        return bool(sources) and not sources & self.messages

    def _signs(self, whos: str, day: date) -> bool:
        """Of what several have said nobody knows which part is whose."""
        return any(name.signs(who.strip(), day) for name in self.names for who in whos.split(","))

    def _names(self, raw: str, fact: Fact | None, day: date | None) -> bool:
        """In what is said; who is named as the speaker is another question."""
        text = _SPEAKERS.sub("", _ENTRY_HEAD.sub("", raw))
        at = self.written.get(hash_of(said(fact.text))) if fact is not None else None
        written = at or (day.isoformat() if day is not None else "")
        return any(name.stands_in(text, written) for name in self.names)


def said_by(lines: Iterable[str]) -> Forgotten:
    """What these lines of memory files say."""
    texts = (fact.text if (fact := _fact(line)) is not None else line for line in lines)
    return Forgotten(frozenset(words for text in texts for words in sayings(text)))


def repeated_of(about: About, lines: Iterable[str]) -> Forgotten:
    """What answers may have repeated: their words, and what these lines say."""
    return Forgotten(about.words.sayings | frozenset(filter(tells_enough, said_by(lines).sayings)))


def _sources(raw: str) -> set[int]:
    """The messages that a note rests on."""
    found = SOURCES.search(raw)
    return {int(number) for number in re.findall("[0-9]+", found[1] if found else "")}


def _fact(raw: str) -> Fact | None:
    return next((line.fact for line in parse(raw) if line.fact is not None), None)


def tells_of(raw: str, gone: Forgotten) -> bool:
    """Whether a line of what a night has changed (`consolidate.report`) tells of it."""
    return any(said(part) in gone.sayings or gone.covers(part) for part in _PARTS.split(raw))


def without_lines(path: Path, about: About, gone: Iterable[str]) -> Callable[[bytes], bytes]:
    """Takes out the lines about the person, those that repeat one of them, titles that say it or name
    the person, and headings that have nothing below them any more."""
    said_by_them, day = said_by(gone), day_of(path.name)

    def goes(line: str) -> bool:
        if is_title(line) and (said_by_them.covers(line) or about.titles(line, day)):
            return True
        repeats = said(line) in said_by_them.sayings and not about.is_of_others(line)
        return about.covers(line, day) or repeats

    return lambda data: left(data, goes)
