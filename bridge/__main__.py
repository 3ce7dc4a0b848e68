"""`galata`, also as `python -m bridge`."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130  # what shells report for a program that Ctrl-C ended


def main(argv: list[str] | None = None) -> int:
    """Carry out a command. Returns the exit code; exits with 2 on wrong use."""
    stop_in_order(sys.argv[1:] if argv is None else argv)
    # What follows takes time to import, also in these modules.
    import logging

    from bridge.cli.options import FAILED, CommandFailed, tell
    from bridge.cli.parser import function, parse
    from bridge.log import Redactor, setup

    log = logging.getLogger(__name__)
    open_streams()
    name, options = parse(argv, os.environ)
    setup("WARNING", as_json=False, redactor=Redactor())  # until the configuration is known
    try:
        return function(name)(options)
    except CommandFailed as error:
        tell(str(error))
        return FAILED
    except KeyboardInterrupt:
        tell("")
        return INTERRUPTED
    except Exception:
        log.exception("galata has to end: this is a mistake in it, please report it")
        return FAILED


def stop_in_order(argv: list[str]) -> None:
    """From now on SIGTERM ends a bot in order, and not only once it looks after signals itself
    (`bridge.operation.signals`): a service that is stopped right after its start has not failed."""
    if {"run", "chat"}.intersection(argv):
        signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    """Nothing has been taken on yet."""
    raise SystemExit(0)


def open_streams() -> None:
    """Put /dev/null where a service manager closed standard input, output or errors: the next file
    or socket would be opened in its place."""
    streams = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
    for descriptor, (name, mode) in enumerate(streams):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))


def leave_folder() -> None:
    """Look for no module in the current folder, as `python -m` does before it looks anywhere else: in
    a data folder, `memory` is that of the chats."""
    from pathlib import Path

    here = Path.cwd()
    if sys.path[0] == str(here) and here != Path(__file__).parents[1]:
        del sys.path[0]


if __name__ == "__main__":
    leave_folder()
    sys.exit(main())
