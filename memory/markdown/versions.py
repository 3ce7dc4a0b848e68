"""Earlier versions of `MEMORY.md`: `versions/MEMORY.<number>.<hash>.md` in the scope's folder.

A version is the file as it was before a change of ours; the hash in its name is that of the file after
the change, so that a step back never takes somebody's later change along. For use under the folder's
lock; each function may raise `OSError`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memory.markdown.files import FRESH, names, read, sync_folder, write

FOLDER = "versions"
MOST = 30  # versions that are kept, the newest
_NAME = re.compile(r"MEMORY\.([0-9]{6,})\.([0-9a-f]{12})\.md")


@dataclass(frozen=True, slots=True)
class Version:
    """`number` counts up; `after` is the hash of what the change made."""

    path: Path
    number: int
    after: str


def versions(folder: Path) -> list[Version]:
    """Those of the scope's folder, the newest first."""
    kept = folder / FOLDER
    found: list[Version] = []
    for name in names(kept):
        match = _NAME.fullmatch(name)
        if match:
            found.append(Version(kept / name, int(match[1]), match[2]))
    return sorted(found, key=lambda version: version.number, reverse=True)


def keep(folder: Path, before: bytes, after: bytes) -> Path:
    """Keep what the file holds before a change to `after`; the oldest beyond `MOST` go. The version."""
    known = versions(folder)
    number = known[0].number + 1 if known else 1
    (folder / FOLDER).mkdir(mode=0o700, exist_ok=True)
    path = folder / FOLDER / _name(number, after)
    _write(path, before)
    for old in known[MOST - 1 :]:
        old.path.unlink()
    return path


def newest(folder: Path, current: bytes) -> Version | None:
    """The version to go back to. Those of changes that did not come to be are removed."""
    for version in versions(folder):
        if version.after == digest(current) or read(version.path) != current:
            return version
        version.path.unlink()
    return None


def scrub(folder: Path, was: bytes, now: bytes, without: Callable[[bytes], bytes]) -> None:
    """Take out of all versions what `without` leaves out, as the file became `now` from `was`; the
    chain of changes up to it stays whole where it was."""
    for version in versions(folder):
        held = read(version.path)
        kept = without(held)
        unbroken = version.after == digest(was)
        path = version.path.with_name(_name(version.number, now)) if unbroken else version.path
        if kept != held or path != version.path:
            _write(path, kept)
        if path != version.path:
            version.path.unlink()
        was, now = held, kept


def digest(data: bytes) -> str:
    """What names a content."""
    return hashlib.sha256(data).hexdigest()[:12]


def _name(number: int, after: bytes) -> str:
    return f"MEMORY.{number:06}.{digest(after)}.md"


def _write(path: Path, data: bytes) -> None:
    fresh = path.with_name(FRESH)
    write(fresh, data)
    fresh.replace(path)
    sync_folder(path.parent)
