"""What was asked long before it could be answered: after an outage, all at once.

A chat in which such a question comes in is held until no more come, since platforms hand over what
they have kept one by one. Then it is sorted out: a private chat gets all answers in order; in a group
each person's newest question is answered, and older ones are set aside, counted in a notice with a
button that has them asked after all. A chat gets one notice at most.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

from bridge.chats.holds import Holds
from bridge.chats.keeper import place_of
from bridge.inbound import readable
from bridge.runs.delivery import ACT
from bridge.runs.stopping import ASK_NOW, key_of
from bridge.session import chat_key
from bridge.texts import Say
from channels.base import Button, InboundMessage, OutboundReply
from memory.access.people import People
from memory.backlog import BacklogStore, MissedRow
from memory.chats.reach import ChatPlace
from memory.inbox import InboxKey
from memory.outbox import NewReply

log = logging.getLogger(__name__)

LONG: Final = timedelta(minutes=30)
"""A question that was sent longer ago than this has waited through an outage."""

NOTICE_EVERY: Final = timedelta(hours=12)  # of one that sets nothing aside
_NAME = "backlog:"  # of what was set aside together, beside the events of stops


@dataclass(frozen=True, slots=True)
class BacklogTiming:
    """Seconds without another such question after which a chat is sorted out, and in all."""

    quiet_s: float = 2.0
    most_s: float = 20.0


DEFAULT_TIMING: Final = BacklogTiming()


@dataclass(frozen=True, slots=True)
class Missed:
    """A row of the inbox with its message."""

    row: MissedRow
    message: InboundMessage

    @property
    def key(self) -> InboxKey:
        """Its key in the inbox."""
        return key_of(self.message)


@dataclass(frozen=True, slots=True)
class Sorted:
    """What of a chat's open questions is old, and what of that is set aside; oldest first."""

    old: tuple[Missed, ...]
    aside: tuple[Missed, ...]


def sort_out(waiting: Sequence[Missed], now: datetime) -> Sorted:
    """Which questions of one chat (by time) are answered and which are set aside. One that a run has
    taken is never set aside, nor is the beginning of a text that its client has cut."""
    old = tuple(missed for missed in waiting if is_old(missed.message, now))
    aside: list[Missed] = []
    kept: dict[str, InboundMessage] = {}  # of each person, the last one in time that is kept
    for missed in reversed(waiting):
        person = missed.message.sender.id
        later = kept.get(person)
        if later is not None and _may_wait(missed, later, now):
            aside.append(missed)
        else:
            kept[person] = missed.message
    return Sorted(old, tuple(reversed(aside)))


def _may_wait(missed: Missed, later: InboundMessage, now: datetime) -> bool:
    message = missed.message
    if message.address.private or missed.row.run_id is not None or not is_old(message, now):
        return False
    # A second more: Telegram's times are whole seconds.
    within = timedelta(seconds=message.more_expected_s + 1)
    continued = message.more_expected_s > 0 and later.sent_at - message.sent_at <= within
    return not continued


def is_old(message: InboundMessage, now: datetime) -> bool:
    """Whether it has waited through an outage."""
    return now - message.sent_at > LONG


def is_backlog(value: str) -> bool:
    """Whether a button names questions that were set aside after an outage."""
    return value.startswith(_NAME)


Tell = Callable[[InboundMessage, str], Awaitable[bool]]
Announce = Callable[
    [InboundMessage, str, OutboundReply, Callable[[NewReply], Awaitable[int]]], Awaitable[None]
]
Dropped = Callable[[str, list[InboxKey]], None]


class Backlog:
    """`tell` replies to a message, and whether that arrived; `announce` is that of the deliveries;
    `say` gives the words for its sender, `is_quiet` whether its chat wants no sound;
    `dropped(session_key, keys)` is told whose rows are closed."""

    def __init__(
        self,
        store: BacklogStore,
        people: People,
        holds: Holds,
        tell: Tell,
        announce: Announce,
        say: Callable[[InboundMessage], Say],
        is_quiet: Callable[[InboundMessage], bool],
        dropped: Dropped,
        beside: Callable[[Coroutine[Any, Any, None], str], None],
        timezone: tzinfo,
        timing: BacklogTiming,
    ) -> None:
        self._store = store
        self._people = people
        self._holds = holds
        self._tell = tell
        self._announce = announce
        self._say = say
        self._quiet = is_quiet
        self._dropped = dropped
        self._beside = beside
        self._timezone = timezone
        self._timing = timing
        self._coming: dict[ChatPlace, asyncio.Event] = {}

    def note(self, message: InboundMessage) -> None:
        """A question comes in or is found open; an old one holds its chat. Call it before its lane is
        woken."""
        if not is_old(message, datetime.now(UTC)):
            return
        place = place_of(message.address)
        coming = self._coming.get(place)
        if coming is not None:
            coming.set()
            return
        self._coming[place] = asyncio.Event()
        self._holds.hold(_key(place))
        self._beside(self._collect(place), "backlog")

    async def reopen(self, message: InboundMessage, name: str) -> list[MissedRow]:
        """A person of the chat wants what was set aside to be asked after all."""
        return await self._store.reopen(place_of(message.address), name)

    async def _collect(self, place: ChatPlace) -> None:
        """What comes in while it is sorted out is sorted out after that: nothing is counted twice."""
        coming = self._coming[place]
        coming.set()
        try:
            while coming.is_set():
                await self._until_quiet(coming)
                await self._holds.quiet(_key(place))
                coming.clear()
                await self._sort_out(place)
        finally:
            del self._coming[place]
            self._holds.release(_key(place))

    async def _until_quiet(self, coming: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._timing.most_s
        while loop.time() < end:
            coming.clear()
            try:
                async with asyncio.timeout(self._timing.quiet_s):
                    await coming.wait()
            except TimeoutError:
                return

    async def _sort_out(self, place: ChatPlace) -> None:
        rows = await self._store.waiting(place)
        read = [(row, readable(row.body)) for row in rows]
        missed = [Missed(row, message) for row, message in read if message is not None]
        found = sort_out(missed, datetime.now(UTC))
        if not found.old:
            return
        newest, since = found.old[-1].message, self._local(found.old[0].message.sent_at)
        key = f"{_NAME}{place.channel}:{place.account}:{place.chat}"
        untold = await self._people.tell_once(key, NOTICE_EVERY)
        if found.aside:
            await self._set_aside(found, since)
        elif untold:
            await self._tell(newest, self._say(newest)("backlog", since=since))

    async def _set_aside(self, found: Sorted, since: str) -> None:
        """Never without a word: the notice is stored with it."""
        last, ids = found.old[-1], [missed.row.id for missed in found.aside]
        # By the time as well: what was asked after all can be set aside once more, in another notice.
        name = f"{_NAME}{max(ids)}:{int(datetime.now(UTC).timestamp())}"
        say = self._say(last.message)
        notice = OutboundReply(
            say("backlog_aside", since=since, count=len(ids)),
            buttons=(Button(say("ask_now"), ASK_NOW, name),),
            silent=self._quiet(last.message),
        )

        async def store(reply: NewReply) -> int:
            return await self._store.set_aside(ids, name, last.row.session, reply)

        await self._announce(last.message, f"{ACT}{name}", notice, store)
        log.info("%d questions of a chat were set aside after an outage", len(ids))
        for session_key in {missed.row.session_key for missed in found.aside}:
            keys = [one.key for one in found.aside if one.row.session_key == session_key]
            self._dropped(session_key, keys)

    def _local(self, moment: datetime) -> str:
        when, today = moment.astimezone(self._timezone), datetime.now(self._timezone).date()
        return f"{when:%H:%M}" if when.date() == today else f"{when:%Y-%m-%d %H:%M}"


def _key(place: ChatPlace) -> str:
    return chat_key(place.channel, place.account, place.chat)
