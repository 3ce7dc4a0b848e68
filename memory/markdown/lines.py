"""The lines of memory files by name, so that a person can choose some of them to be forgotten.

An entry of `MEMORY.md` is called by its number, another line by its file and four letters that are made
of what it says: `2026-11-30/a1f3`. Such a name means the same line whatever was written around it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from memory.markdown.facts import EARLIER, FactsRefused, parse
from memory.markdown.files import locked, names, read, replace
from memory.markdown.headings import is_title, without
from memory.scopes import FACTS, day_of
from memory.text.quoting import SPEAKER
from memory.text.words import normalised

MARK = 4  # hexadecimal digits: of a day's lines two hardly ever have the same
TRIES = 5  # while somebody saves the file again and again
_NUMBER = re.compile(r"[0-9]{1,6}")
_OTHER = re.compile(rf"(MEMORY|[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})(?:\.md)?/([0-9a-f]{{{MARK}}})")
_SPEAKER = re.compile(r"\s*[-*+]\s+(?:\*\*[^*]{1,200}\*\*:?\s*)?(?:\[[^\]]*\]\s*)?")
_NAMED = re.compile(r"\s*[-*+]\s+\*\*([^*]{1,200})\*\*")
_SOURCES = re.compile(r"\s*\[[0-9, –-]+\]\s*$")


@dataclass(frozen=True, slots=True)
class Ref:
    """A line of the file `name`: the entry `number`, or (0) one whose text gives `mark`."""

    name: str
    number: int = 0
    mark: str = ""

    @classmethod
    def of(cls, name: str, raw: str) -> Ref:
        """The name of a line that is no entry."""
        digest = hashlib.sha256(raw.strip().encode("utf-8", "replace")).hexdigest()
        return cls(name, mark=digest[:MARK])

    def __str__(self) -> str:
        return str(self.number) if self.number else f"{self.name.removesuffix('.md')}/{self.mark}"


def ref_of(text: str) -> Ref | None:
    """The line that is called so, None where that is no name."""
    if _NUMBER.fullmatch(text):
        return Ref(FACTS, int(text)) if int(text) else None
    found = _OTHER.fullmatch(text.lower().replace("memory", "MEMORY"))
    if found is None:
        return None
    name = f"{found[1]}.md"
    return Ref(name, mark=found[2]) if name == FACTS or day_of(name) else None


def lines_of(path: Path) -> list[tuple[Ref, str]]:
    """The file's lines that say something; no headings but those of events. Raises `OSError`."""
    return _refs(path.name, read(path).decode("utf-8", "replace"))


def speaker_of(raw: str) -> str:
    """Who is named as the one who said a line: of `MEMORY.md`, of a day's file
    (`memory.notes.flush`) or of a group's conversation; empty where nobody is."""
    (line,) = parse(raw.replace("\n", " "))
    if line.fact is not None:
        return line.fact.who
    found = _NAMED.match(raw) or SPEAKER.match(raw)
    return found[1] if found is not None else ""


def dated_lines(folder: Path) -> list[tuple[date, str]]:
    """The lines of a scope's `MEMORY.md` and day files of which the day is known, without who said
    them. Raises `OSError`."""
    known = parse(read(folder / FACTS).decode("utf-8", "replace"))
    found = [(line.fact.day, line.fact.text) for line in known if line.fact is not None]
    for name in names(folder):
        day = day_of(name)
        if day is not None:
            lines = read(folder / name).decode("utf-8", "replace").split("\n")
            found += [(day, _SPEAKER.sub("", line, count=1)) for line in lines]
    return found


def said(text: str) -> str:
    """What a line says, normalised, without who said it and where (`memory.notes.flush`)."""
    head = _SPEAKER.match(text)
    return normalised(_SOURCES.sub("", text[head.end() :] if head else text))


def sayings(text: str) -> list[str]:
    """What a line says, normalised; of a corrected entry also what it says now and what it said before,
    each by itself."""
    found = EARLIER.search(text)
    halves = [text[: found.start()], found[1]] if found else []
    return [words for part in (text, *halves) if (words := said(part))]


def drop(path: Path, refs: Collection[Ref]) -> None:
    """Take the lines out of the file; all others stay as they are. Raises `FactsRefused` (somebody goes
    on changing it) and `OSError`."""

    def goes(line: str) -> bool:
        return any(ref in refs for ref, _ in _refs(path.name, line))

    rewrite(path, path.parent, lambda before: left(before, goes))


def left(data: bytes, goes: Callable[[str], bool]) -> bytes:
    """A file without the lines that `goes` is true of, and headings that have nothing below them
    any more; all else stays as it is, to the byte."""
    lines = data.split(b"\n")
    said = [line.decode("utf-8", "replace") for line in lines]
    gone = {number for number, line in enumerate(said) if goes(line)}
    return b"\n".join(lines[number] for number in without(said, gone))


def drop_saying(path: Path, forgets: Callable[[str], bool]) -> None:
    """Take out each line that `forgets` is true of; for a file in a folder of its own. Raises
    `FactsRefused` and `OSError`, as `drop`."""

    rewrite(path, path.parent.parent, lambda before: left(before, forgets))


def rewrite(path: Path, scope: Path, change: Callable[[bytes], bytes]) -> None:
    """Give the file another content, under the lock of the scope's folder. Raises `FactsRefused`
    (somebody goes on changing it) and `OSError`."""
    with locked(scope):
        for _ in range(TRIES):
            before = read(path)
            after = change(before)
            if after == before or replace(path, before, after):
                return
    raise FactsRefused("changed")


def _refs(name: str, data: str) -> list[tuple[Ref, str]]:
    found: list[tuple[Ref, str]] = []
    for line in parse(data):
        if line.fact is not None and name == FACTS:
            found.append((Ref(name, line.fact.number), line.fact.text))
        elif normalised(line.raw) and (name == FACTS or _says(line.raw)):
            found.append((Ref.of(name, line.raw), line.raw.strip().lstrip("# ")))
    return found


def _says(raw: str) -> bool:
    """Whether a line of a day's file says something: of the headings those of events do."""
    return not raw.startswith("#") or is_title(raw)
