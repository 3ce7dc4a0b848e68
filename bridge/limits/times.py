"""Kinds of values with times: the hours in which a chat is quiet, and what holds until a moment."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from bridge.limits.kinds import NO, YES, Known
from bridge.limits.lists import Ids, unquoted
from bridge.limits.numbers import Wrong
from bridge.texts import Wording, wording
from bridge.yaml_source import Value

_NONE = NO | {"none"}
_HOUR = r"(\d{1,2})(?:[:.](\d\d))?"
_HOURS = re.compile(rf"{_HOUR}\s*(?:-|–|—|to|until)\s*{_HOUR}")
_DAY = 24 * 60
_HOURS_WORDS: Final = wording("words_hours")
_PAUSE_WORDS: Final = wording("words_pause")
_BLOCKS_WORDS: Final = wording("words_blocks")


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

    words: Wording = _HOURS_WORDS
    ordered: bool = False

    def read(self, written: Value, known: Known) -> Hours:
        """In the chat's zone; they may pass midnight."""
        text = written.strip().lower() if isinstance(written, str) else ""
        if text in _NONE:
            return Hours()
        found = _HOURS.fullmatch(text)
        if found is None:
            raise Wrong("words", words=self.words)
        begin_hour, begin, end_hour, end = map(int, found.groups("0"))
        if max(begin_hour, end_hour) > 24 or max(begin, end) > 59:
            raise Wrong("hours")
        hours = Hours((begin_hour * 60 + begin) % _DAY, (end_hour * 60 + end) % _DAY)
        if hours.begin == hours.end:
            raise Wrong("no_hours")
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


# Until when -----------------------------------------------------------------------------------

_NEVER, _FOR_EVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
Paused = bool | datetime  # no, yes, or until then
_UNTIL = re.compile(r"until\s+(\d{4}-\d\d-\d\d)[T ]+(\d\d:\d\d)\s*(?:utc|z)?", re.IGNORECASE)
_BLOCK = re.compile(r"(?P<id>\S+)(?P<until>\s+until\s.*)?", re.IGNORECASE | re.DOTALL)


def until_text(moment: datetime) -> str:
    """`until 2026-11-30 18:00 UTC`, the next minute."""
    shown = (moment + timedelta(seconds=59)).astimezone(UTC)
    return f"until {shown:%Y-%m-%d %H:%M} UTC"


def read_until(text: str) -> datetime:
    """The moment of `until_text`. Raises `Wrong`."""
    found = _UNTIL.fullmatch(text.strip())
    try:
        if found is None:
            raise ValueError
        return datetime.fromisoformat(f"{found[1]}T{found[2]}+00:00")
    except ValueError:
        raise Wrong("until") from None


def is_paused(value: Paused, now: datetime) -> bool:
    """Whether it holds at `now`."""
    return value if isinstance(value, bool) else now < value


@dataclass(frozen=True, slots=True)
class Pause:
    """Yes, no, or until a time; longer is narrower."""

    words: Wording = _PAUSE_WORDS
    ordered: bool = True

    def read(self, written: Value, known: Known) -> Paused:
        """Also on, off, true, false."""
        text = written.strip() if isinstance(written, str) else ""
        word = text.lower()
        if word in YES or word in _NONE:
            return word in YES
        if word.startswith("until"):
            return read_until(text)
        raise Wrong("words", words=self.words)

    def show(self, value: Paused) -> str:
        """As it is written."""
        if isinstance(value, bool):
            return "yes" if value else "no"
        return until_text(value)

    def meet(self, one: Paused, other: Paused) -> Paused:
        """The longer one."""
        return max(one, other, key=_end)


def _end(value: Paused) -> datetime:
    if isinstance(value, bool):
        return _FOR_EVER if value else _NEVER
    return value


@dataclass(frozen=True, slots=True)
class Blocks:
    """Ids of people that are kept out, for good or until a time: more is narrower. As a value they are
    texts, `42` or `43 until 2026-11-30 18:00 UTC`."""

    words: Wording = _BLOCKS_WORDS
    ordered: bool = True

    def read(self, written: Value, known: Known) -> frozenset[str]:
        """Also one id, or ids with commas between."""
        if isinstance(written, str) and "until" not in written.lower():
            return Ids().read(written, known)
        items = written.split(",") if isinstance(written, str) else written
        return frozenset(_block(item, known) for item in items)

    def show(self, value: frozenset[str]) -> str:
        """As a list in order."""
        return Ids().show(value)

    def meet(self, one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
        """Those of both."""
        return one | other


def _block(item: object, known: Known) -> str:
    found = _BLOCK.fullmatch(unquoted(item)) if isinstance(item, str) else None
    if found is None:
        raise Wrong("blocks")
    (person,) = Ids().read([found["id"]], known)
    return f"{person} {until_text(read_until(found['until']))}" if found["until"] else person


def is_blocked(blocks: Iterable[str], person: str, now: datetime) -> bool:
    """Whether one of them holds for the person at `now`."""
    return person in {block.partition(" ")[0] for block in standing(blocks, now)}


def standing(blocks: Iterable[str], now: datetime) -> list[str]:
    """Those that are not over."""
    return sorted(
        block for block in blocks if " " not in block or now < read_until(block.partition(" ")[2])
    )
