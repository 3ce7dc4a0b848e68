"""The files of chats' limits on the disk: where each is, whether it has changed, and written whole."""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, unquote

from memory.policies import PolicyPlace

SUFFIX = ".yaml"
Signature = tuple[int, int, int]  # time in nanoseconds, size, inode


def place_of(folder: Path, path: Path) -> PolicyPlace | None:
    """The chat or topic of which this is the file; None for any other."""
    parts = path.relative_to(folder).parts if path.is_relative_to(folder) else ()
    if not 2 <= len(parts) <= 3 or path.suffix != SUFFIX or path.name.startswith("."):
        return None
    channel, chat, *topic = map(unquote, (*parts[:-1], path.stem))
    return PolicyPlace(channel, chat, *topic)


@lru_cache(maxsize=2_000)  # each message asks several times
def path_of(folder: Path, place: PolicyPlace) -> Path:
    """Where the file of a chat or topic is, or would be."""
    chat = folder / _name(place.channel) / _name(place.chat)
    return chat / f"{_name(place.topic)}{SUFFIX}" if place.topic else _file(chat)


def _name(part: str) -> str:
    """An id as the name of a file: no id leads out of the folder."""
    return quote(part, safe="-_").replace(".", "%2E")


def _file(chat: Path) -> Path:
    return chat.with_name(chat.name + SUFFIX)


def signature_of(path: Path) -> Signature | None:
    """None where there is no file; a file that cannot be seen is there all the same."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return (0, 0, 0)
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def content(path: Path) -> bytes | None:
    """None of a file that cannot be read. Blocks."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def remove(path: Path) -> None:
    """The chat's file and its folder of topics. Blocks. Raises `OSError`."""
    path.unlink(missing_ok=True)
    topics = path.with_suffix("")
    if topics.is_dir() and not topics.is_symlink():
        shutil.rmtree(topics)


def replace(path: Path, text: str) -> None:
    """Write the file whole or not at all; an empty text removes it. Blocks. Raises `OSError`."""
    if not text.strip():
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".new")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
