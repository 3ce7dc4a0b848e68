"""`galata version`."""

from __future__ import annotations

import platform
from importlib import metadata

from bridge.cli.options import FINE, Options, say

DISTRIBUTION = "galata"


def show(_: Options) -> int:
    """The version of Galata, and of the Python that runs it."""
    say(f"{DISTRIBUTION} {metadata.version(DISTRIBUTION)} (Python {platform.python_version()})")
    return FINE
