"""One process for each bot: two data folders with the same token would take each other's messages.

A file for each token in a folder of the user's own, locked by whoever runs with it. Its name is a hash
of the token. Where there is no such folder the bot runs without: the platform itself tells in the end
(Telegram), or messages are shared out among the two (Slack).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import logging
import os
import pwd
import stat
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

from pydantic import SecretStr

from bridge.configuration.settings import Config

log = logging.getLogger(__name__)

_MOST_BYTES = 4_500  # of a lock file: a number and a path
_WITHOUT_HOME = Path(f"/tmp/galata-{os.getuid()}")  # noqa: S108 - its owner is checked


class TokenInUse(Exception):
    """Another process runs with a token; the text is one line for the operator."""


def runtime_folder(environ: Mapping[str, str]) -> Path:
    """Where lock files of this user lie. One place, however the process was started: variables of
    a login session (XDG_RUNTIME_DIR, TMPDIR) are set in a shell and missing in a service."""
    try:
        home = Path(environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:  # a container's user without a name
        return _WITHOUT_HOME
    folder = home / ".cache" / "galata"
    existing = next((path for path in (folder, folder.parent, home) if path.is_dir()), None)
    if existing is None or not os.access(existing, os.W_OK | os.X_OK):
        return _WITHOUT_HOME
    return folder


@contextlib.contextmanager
def held_tokens(config: Config, data: Path, folder: Path) -> Generator[None]:
    """Hold the tokens that messages are received with, for this process alone. `data` is told to
    whoever wants them as well. Raises `TokenInUse`."""
    with contextlib.ExitStack() as stack:
        for key, identity in _identities(config):
            descriptor = _open(folder, f"galata-{hashlib.sha256(identity).hexdigest()[:32]}.lock")
            if descriptor is None:
                break
            stack.callback(os.close, descriptor)
            _lock(descriptor, key, data)
        yield


def _identities(config: Config) -> Iterator[tuple[str, bytes]]:
    """The keys of the tokens, and what tells one bot from another: a token at a server."""
    telegram, slack = config.channels.telegram, config.channels.slack
    if telegram is not None:
        yield "channels.telegram.token", _joined(telegram.base_url, telegram.token)
    if slack is not None and slack.app_token is not None:
        yield "channels.slack.app_token", _joined(slack.base_url, slack.app_token)


def _joined(base_url: str | None, token: SecretStr) -> bytes:
    return f"{(base_url or '').rstrip('/')}\n{token.get_secret_value()}".encode()


def _open(folder: Path, name: str) -> int | None:
    """A file of that name in the folder, which is made where it is missing; None where it cannot be,
    or is another user's to change."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise PermissionError(errno.EPERM, "it is not yours")
        return os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        log.warning(
            "whether another galata runs with the same token is not known: %s: %s",
            folder,
            error.strerror,
        )
        return None


def _lock(descriptor: int, key: str, data: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise TokenInUse(
            f"{key}: another galata{_holder(descriptor)} runs with this token: stop it, or get a "
            "token of its own for this one"
        ) from None
    except OSError as error:  # a file system without locks
        log.warning("%s: the token cannot be held: %s", key, error.strerror)
        return
    with contextlib.suppress(OSError):  # a full disk: it is for a message only
        text = f"{os.getpid()}\n{data.absolute()}".encode(errors="surrogateescape")
        os.ftruncate(descriptor, os.pwrite(descriptor, text, 0))


def _holder(descriptor: int) -> str:
    """The process that holds it and its data folder, as far as it has left them."""
    process, _, data = os.pread(descriptor, _MOST_BYTES, 0).decode(errors="replace").partition("\n")
    return f" (process {process}, data folder {data})" if process.isdecimal() and data else ""
