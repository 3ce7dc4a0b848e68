"""The same command by the same person again, within seconds: it is answered once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from channels.base import InboundMessage

WITHIN: Final = timedelta(seconds=30)
MOST_PLACES = 1_000
UNDO = "undo"  # done twice, it takes back two
FORM: Final = "limits"  # where it opens a form, that may have been closed again


@dataclass(frozen=True, slots=True)
class _Given:
    """What was asked for, and by whom: a command about another message or person (`/block` as a reply),
    or in another topic or thread, is another one, whatever its words."""

    sender: str
    words: str
    thread: str | None
    message: str | None
    person: str | None
    run: str


class Repeats:
    """`is_one` is asked of every message in the order in which they come. Times are the platform's, so
    that what was kept during an outage counts as it was sent."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str, str], tuple[_Given, str, datetime]] = {}

    def is_one(self, message: InboundMessage, run: str = "") -> bool:
        """Whether it is the command that was given in that chat just before by the same person, with
        nothing in between: no message, command or press by anybody, which could have changed what it
        does, and no run (`run`: the one under way) that has begun or ended. The same message delivered
        once more is none."""
        address, now = message.address, message.sent_at
        where = (address.channel, address.account, address.chat)
        given = _given(message, run)
        last, event, at = self._last.pop(where, (None, "", now))
        if given is None:
            return False
        if given == last and event != message.event and abs(now - at) < WITHIN:
            self._last[where] = (given, event, at)
            return True
        opens = message.whispered and given.words == FORM
        if not opens and UNDO not in given.words.split()[:2]:
            self._last[where] = (given, message.event, now)
        if len(self._last) > MOST_PLACES:
            del self._last[next(iter(self._last))]
        return False


def _given(message: InboundMessage, run: str) -> _Given | None:
    """None where it is no command."""
    command, about = message.command, message.reply_to_person
    if command is None:
        return None
    return _Given(
        message.sender.id,
        f"{command.name} {command.args}".strip(),
        message.address.thread,
        message.reply_to_id,
        None if about is None else about.id,
        run,
    )
