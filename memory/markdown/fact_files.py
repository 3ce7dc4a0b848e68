"""The `MEMORY.md` of all scopes: read, changed under the folder's lock, and taken a step back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from datetime import date
from functools import partial
from pathlib import Path
from typing import TypeVar

from memory.markdown import versions
from memory.markdown.earlier import earlier
from memory.markdown.facts import (
    Fact,
    FactsRefused,
    Line,
    Lines,
    added,
    corrected,
    facts,
    numbered,
    parse,
    removed,
    render,
)
from memory.markdown.files import locked, read, replace
from memory.scopes import FACTS, scope_path
from memory.text.words import normalised

T = TypeVar("T")

TRIES = 5  # while somebody saves the file again and again


class FactFiles:
    """Below `folder`. Every method may raise `OSError`, and the file is as it was then."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def load(self, scope: str) -> Lines:
        """The file's lines."""
        return await asyncio.to_thread(lambda: _lines(read(self._path(scope))))

    async def add(self, scope: str, day: date, who: str, text: str) -> Fact:
        """One more entry. Raises `FactsRefused`."""
        return await self.change(scope, lambda lines: added(lines, day, who, text))

    async def correct(
        self, scope: str, number: int, day: date, who: str, text: str
    ) -> tuple[Fact, Fact]:
        """Another text for the entry `number`: the new and the old one. Raises `FactsRefused`."""

        def change(lines: Lines) -> tuple[Lines, tuple[Fact, Fact]]:
            made, new, old = corrected(lines, number, day, who, text)
            return made, (new, old)

        return await self.change(scope, change)

    async def remove(self, scope: str, numbers: Collection[int]) -> list[Fact]:
        """Entries that are no longer true; an earlier version keeps them. Raises `FactsRefused`."""
        return await self.change(scope, lambda lines: removed(lines, list(numbers)))

    async def forget(
        self,
        scope: str,
        chosen: Callable[[Line], bool],
        same: Callable[[str], bool] = lambda text: False,
    ) -> list[Line]:
        """Take out the lines that are `chosen`, of earlier versions too, and of these those whose text
        says the `same`; those of the file. Raises `FactsRefused`."""
        return await asyncio.to_thread(self._forget, self._path(scope), chosen, same)

    async def earlier(
        self, scope: str, numbers: Collection[int], corrects: Callable[[Fact], bool]
    ) -> list[Fact]:
        """What these entries said before, as far as earlier versions tell
        (`memory.markdown.earlier`)."""
        return await asyncio.to_thread(self._earlier, self._path(scope), numbers, corrects)

    async def undo(self, scope: str) -> tuple[Lines, Lines]:
        """Take the last change of ours back: the lines before and after. Raises `FactsRefused`: none is
        kept, or somebody has changed the file since."""
        return await asyncio.to_thread(self._undo, self._path(scope))

    async def undo_to(self, scope: str, found: str, left_as: str) -> tuple[Lines, Lines]:
        """Take all changes back that made of the file `found` the one `left_as` (digests); the lines
        before and after. Raises `FactsRefused`: it is another one by now, or a version is missing."""
        return await asyncio.to_thread(self._undo_to, self._path(scope), found, left_as)

    async def change(self, scope: str, change: Callable[[Lines], tuple[Lines, T]]) -> T:
        """Carry out `change` on the lines as they are; what it gives beside them. Called again when
        somebody changes the file meanwhile. Raises what it raises, and `FactsRefused`."""
        return await asyncio.to_thread(self._change, self._path(scope), change)

    def _path(self, scope: str) -> Path:
        return scope_path(self._folder, scope, FACTS)

    def _change(self, path: Path, change: Callable[[Lines], tuple[Lines, T]]) -> T:
        with locked(path.parent):
            for _ in range(TRIES):
                before = read(path)
                made, result = change(_lines(before))
                after = _bytes(made)
                if after == before:
                    return result
                kept = versions.keep(path.parent, before, after)
                if replace(path, before, after):
                    return result
                kept.unlink()
        raise FactsRefused("changed")

    def _forget(
        self, path: Path, chosen: Callable[[Line], bool], same: Callable[[str], bool]
    ) -> list[Line]:
        with locked(path.parent):
            for _ in range(TRIES):
                before = read(path)
                lines = _lines(before)
                gone = [line for line in lines if chosen(line)]
                rest = tuple(line for line in lines if not chosen(line))
                # What had another number by being the second of it keeps that.
                after = _bytes(numbered(rest)) if gone else before
                stays = {saying(line) for line in lines if line not in gone}
                said = {saying(line) for line in gone}
                without = partial(_without, said=said, same=same, stays=stays)
                # First, so that a crash leaves the line by which it is named again.
                versions.scrub(path.parent, before, after, without)
                if after == before or replace(path, before, after):
                    return gone
        raise FactsRefused("changed")

    def _earlier(
        self, path: Path, numbers: Collection[int], corrects: Callable[[Fact], bool]
    ) -> list[Fact]:
        with locked(path.parent):
            now = facts(_lines(read(path)))
            kept = [facts(_lines(read(one.path))) for one in versions.versions(path.parent)]
        return earlier(now, kept, numbers, corrects)

    def _undo_to(self, path: Path, found: str, left_as: str) -> tuple[Lines, Lines]:
        with locked(path.parent):
            current = earlier = read(path)
            if not found or versions.digest(current) != left_as:
                raise FactsRefused("changed_since")
            steps: list[Path] = []
            for version in versions.versions(path.parent):
                if versions.digest(earlier) == found and steps:
                    break
                if version.after != versions.digest(earlier):
                    continue  # of a change that did not come to be
                earlier = read(version.path)
                steps.append(version.path)
            if versions.digest(earlier) != found:
                raise FactsRefused("nothing_to_undo")
            if not replace(path, current, earlier):
                raise FactsRefused("changed")
            for step in steps:
                step.unlink()
            return _lines(current), _lines(earlier)

    def _undo(self, path: Path) -> tuple[Lines, Lines]:
        with locked(path.parent):
            current = read(path)
            version = versions.newest(path.parent, current)
            if version is None:
                raise FactsRefused("nothing_to_undo")
            earlier = read(version.path)
            if version.after != versions.digest(current):
                raise FactsRefused("changed")
            if not replace(path, current, earlier):
                raise FactsRefused("changed")
            version.path.unlink()
            return _lines(current), _lines(earlier)


def digest_of(lines: Lines) -> str:
    """What names a file of these lines (`memory.markdown.versions`)."""
    return versions.digest(_bytes(lines))


def saying(line: Line) -> str:
    """What a line says, as `normalised` gives it: of an entry its text alone."""
    return normalised(line.fact.text if line.fact is not None else line.raw)


def _without(
    held: bytes, said: Collection[str], same: Callable[[str], bool], stays: Collection[str]
) -> bytes:
    def goes(line: Line) -> bool:
        words = saying(line)
        return words in said or (words not in stays and same(words))

    return _bytes(tuple(line for line in _lines(held) if not goes(line)))


# A file that is not UTF-8 throughout keeps its bytes.
def _lines(data: bytes) -> Lines:
    return parse(data.decode("utf-8", "surrogateescape"))


def _bytes(lines: Lines) -> bytes:
    return render(lines).encode("utf-8", "surrogateescape")
