"""The same command by the same person again, within seconds: it is answered once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from channels.base import InboundMessage

WITHIN: Final = timedelta(seconds=30)
MOST_PLACES = 1_000
UNDO = "undo"  # done twice, it takes back two
FORM: Final = "limits"  # where it opens a form, that may have been closed again


class Repeats:
    """`is_one` is asked of every message but stops, in the order in which they come. Times are the
    platform's, so that what was kept during an outage counts as it was sent."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str, str, str], tuple[str, str, datetime, str]] = {}

    def is_one(self, message: InboundMessage, run: str = "") -> bool:
        """Whether it is the command that the sender has given there just before, with nothing in
        between: no message or press of theirs, and no run (`run`: the one under way) that has begun or
        ended. The same message delivered once more is none."""
        address, now = message.address, message.sent_at
        where = (address.channel, address.account, address.chat, message.sender.id)
        command = message.command
        words = "" if command is None else f"{command.name} {command.args}".strip()
        text, event, at, during = self._last.pop(where, ("", "", now, ""))
        same = (words, run) == (text, during) and event != message.event
        if words and same and abs(now - at) < WITHIN:
            self._last[where] = (text, event, at, during)
            return True
        opens = message.whispered and words == FORM
        if words and not opens and UNDO not in words.split()[:2]:
            self._last[where] = (words, message.event, now, run)
        if len(self._last) > MOST_PLACES:
            del self._last[next(iter(self._last))]
        return False
