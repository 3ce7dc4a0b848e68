"""Time zones by their IANA names, and the one that this system is set to."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

_LOCALTIME = Path("/etc/localtime")
_NAME = Path("/etc/timezone")
# What servers and containers are set to without anybody having chosen it.
_UNCHOSEN = re.compile(r"(Etc/)?(UTC|UCT|GMT([+-]?0)?|Greenwich|Universal|Zulu)", re.IGNORECASE)


def is_zone(name: str) -> bool:
    """Whether `name` is an IANA time zone. UTC always is, also without a zone database."""
    if name == "UTC":
        return True
    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        return False
    return True


def known_zones() -> set[str]:
    """All that this system has; none without a database of zones."""
    return available_timezones()


def zone_hint(name: str) -> str:
    """What to write instead of `name`, to be put after "is no IANA time zone"."""
    known = known_zones()
    if not known:
        return ": this system has no time zone database (install tzdata), so only UTC is known"
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else "; allowed are names such as Europe/Berlin"


def system_zone(
    environ: Mapping[str, str], *, localtime: Path = _LOCALTIME, name_file: Path = _NAME
) -> str | None:
    """The zone that TZ, /etc/localtime or /etc/timezone names; None when none of them does, and when it
    is UTC: that is what a machine is set to where nobody has said where the people are."""
    for name in (environ.get("TZ", "").removeprefix(":"), _linked(localtime), _written(name_file)):
        if name and is_zone(name):
            return None if _UNCHOSEN.fullmatch(name) else name
    return None


def _linked(localtime: Path) -> str:
    """`/usr/share/zoneinfo/Europe/Berlin` -> `Europe/Berlin`."""
    try:
        target = os.readlink(localtime)
    except OSError:  # no link
        return ""
    return target.partition("zoneinfo/")[2].removeprefix("posix/")


def _written(name_file: Path) -> str:
    try:
        return name_file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
