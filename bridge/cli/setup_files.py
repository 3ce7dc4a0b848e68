"""The two files of `galata setup` on the disk: read as they are, replaced at once, private."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dotenv.parser import parse_stream

from bridge.cli.options import CommandFailed

_PRIVATE = 0o600


def read_file(path: Path) -> bytes | None:
    """The file's content; None when it is not there. Raises `CommandFailed`."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read: {error.strerror}") from None


def env_of(raw: bytes | None, path: Path) -> str:
    """The text of a `.env`; nothing when there is none. Raises `CommandFailed`."""
    try:
        return (raw or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise CommandFailed(f"{path} is not UTF-8 text; nothing was written") from None


def must_be_writable(folder: Path) -> None:
    """Raises `CommandFailed` when no file can be written there, before anything is asked."""
    if not folder.is_dir():
        raise CommandFailed(f"{folder} is no folder: create it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CommandFailed(f"{folder} may not be written to")


def env_text(present: str, secrets: Mapping[str, str]) -> str:
    """`present` with these secrets in it: where each was, else at the end. The rest stays as it is;
    a value of several lines is one."""
    left = dict(secrets)
    parts: list[str] = []
    for binding in parse_stream(io.StringIO(present)):
        if binding.key not in secrets:
            parts.append(binding.original.string)
        elif binding.key in left:
            value = left.pop(binding.key)
            same = binding.value == value
            parts.append(binding.original.string if same else f"{binding.key}='{value}'\n")
    if left and parts and not parts[-1].endswith("\n"):
        parts.append("\n")
    return "".join(parts) + "".join(f"{name}='{value}'\n" for name, value in left.items())


def copy_beside(path: Path) -> Path:
    """A name that is free, for a copy of the file."""
    copy, count = path.with_name(f"{path.name}.old"), 1
    while copy.exists():
        count += 1
        copy = path.with_name(f"{path.name}.old{count}")
    return copy


def write_private(contents: Mapping[Path, bytes]) -> None:
    """Replace files, readable for their owner alone: all are written aside before the first is
    replaced. One that is like that already is left alone. Raises `CommandFailed`."""
    staged: list[tuple[Path, Path]] = []
    path = Path()
    try:
        for path, content in contents.items():
            real = path.resolve()  # what a link points to
            if not _is_there(real, content):
                staged.append((_stage(real, content), real))
        for fresh, path in staged:
            fresh.replace(path)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be written: {error.strerror}") from None
    finally:
        for fresh, _ in staged:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)


def _is_there(path: Path, content: bytes) -> bool:
    return (
        path.exists() and path.stat().st_mode & 0o777 == _PRIVATE and path.read_bytes() == content
    )


def _stage(path: Path, content: bytes) -> Path:
    """The content in a new file beside `path`."""
    descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)  # mode 0600
    fresh = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    return fresh
