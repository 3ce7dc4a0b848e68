"""Who runs a command, for the audit table."""

from __future__ import annotations

import os
import pwd


def actor() -> str:
    """As the system knows them: a variable could say anything."""
    user = os.getuid()
    try:
        return f"os:{pwd.getpwuid(user).pw_name}"
    except KeyError:  # in a container
        return f"os:{user}"
