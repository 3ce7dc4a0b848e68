"""What every command is given, and how a command says that it cannot go on.

Commands return the exit code: 0 fine, 1 a check failed; argparse ends wrong use with 2.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bridge.config import Config

FINE = 0
FAILED = 1
WRONG_USE = 2
CONFIG_FILE = "config.yaml"


class CommandFailed(Exception):
    """The command cannot go on; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Options:
    """The command line, parsed. `config`: None for the environment alone. Those from `slack`
    on belong to one command each."""

    data: Path
    config: Path | None
    environ: Mapping[str, str]
    slack: bool = False
    url: str | None = None
    error_id: str = ""
    session: str | None = None
    scope: str | None = None
    day: str = ""
    status: int | None = None
    provider: str = ""
    headers: Sequence[str] = ()
    file: Path = Path("-")
    format: str = ""
    repair: bool = False
    as_json: bool = False
    print_only: bool = False
    chat: str = ""
    topic: str = ""
    person: str = ""
    by: str = ""
    since: str = ""
    yes: bool = False
    code: str = ""
    target: str = ""

    def load_config(self) -> Config:
        """The configuration that is meant. Raises `CommandFailed` with every fault of it."""
        from bridge.config import ConfigError, from_environment, load

        try:
            if self.config is not None:
                return load(self.config, self.environ)
            if Path(CONFIG_FILE).exists():
                tell(
                    f"{CONFIG_FILE} is here but not in use: for that add --config {CONFIG_FILE} "
                    f"(with make: CONFIG={CONFIG_FILE})"
                )
            return from_environment(self.environ)
        except ConfigError as error:
            raise CommandFailed(str(error)) from None


def say(text: str) -> None:
    """The command's result, to standard output; what its encoding lacks as a backslash escape."""
    encoding = sys.stdout.encoding
    shown = text.encode(encoding, "backslashreplace").decode(encoding)
    sys.stdout.write(f"{shown}\n")
    sys.stdout.flush()


def tell(text: str) -> None:
    """What the operator should know, to standard error."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
