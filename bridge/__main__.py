"""`galata`, also as `python -m bridge`."""

from __future__ import annotations

import logging
import os
import sys

from bridge.cli.options import FAILED, CommandFailed, tell
from bridge.cli.parser import function, parse
from bridge.log import Redactor, setup

log = logging.getLogger(__name__)

INTERRUPTED = 130  # what shells report for a program that Ctrl-C ended


def main(argv: list[str] | None = None) -> int:
    """Carry out a command. Returns the exit code; exits with 2 on wrong use."""
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


if __name__ == "__main__":
    sys.exit(main())
