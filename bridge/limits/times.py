"""Kinds of values that are times: the hours of a day in which a chat is quiet."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, tzinfo

from bridge.limits.kinds import Known
from bridge.limits.numbers import Wrong
from bridge.yaml_source import Value

_NONE = frozenset(("none", "no", "off", "false"))
_HOURS = re.compile(r"(\d{1,2})[:.](\d\d)\s*(?:-|–|—|to|until)\s*(\d{1,2})[:.](\d\d)")
_DAY = 24 * 60


@dataclass(frozen=True, slots=True)
class Hours:
    """From one minute of a day until another, which may be in the next; none where both are one."""

    begin: int = 0
    end: int = 0

    def hold(self, now: datetime, zone: tzinfo) -> bool:
        """Whether it is one of these hours in the zone."""
        local = now.astimezone(zone)
        since = (local.hour * 60 + local.minute - self.begin) % _DAY
        return since < (self.end - self.begin) % _DAY


@dataclass(frozen=True, slots=True)
class QuietHours:
    """`22:00-07:00`, or none."""

    words: str = "hours such as 22:00-07:00, or none"
    ordered: bool = False

    def read(self, written: Value, known: Known) -> Hours:
        """In the chat's zone; they may pass midnight."""
        text = written.strip().lower() if isinstance(written, str) else ""
        if text in _NONE:
            return Hours()
        found = _HOURS.fullmatch(text)
        if found is None:
            raise Wrong(f"must be {self.words}")
        begin_hour, begin, end_hour, end = map(int, found.groups())
        if max(begin_hour, end_hour) > 24 or max(begin, end) > 59:
            raise Wrong("must be times of a day, from 00:00 to 24:00")
        hours = Hours((begin_hour * 60 + begin) % _DAY, (end_hour * 60 + end) % _DAY)
        if hours.begin == hours.end:
            raise Wrong("begins and ends at the same time: give other hours, or none")
        return hours

    def show(self, value: Hours) -> str:
        """As it is written."""
        if value.begin == value.end:
            return "none"
        return f"{_shown(value.begin)}-{_shown(value.end)}"

    def meet(self, one: Hours, other: Hours) -> Hours:
        """There is no order."""
        return one


def _shown(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
