"""What was written while no event came: read from Slack's history after each start and reconnect.

Slack repeats an event for about five minutes. What came later is read here: `conversations.history` of
the known direct messages and `conversations.replies` of the known threads, from the newest stored
message on, oldest first; of a channel, too, in which each message is a question. What is found goes the
way of an event, so that a message that came both ways is one. So is the history of each place read
where a message came that could not be stored. The first mention in another channel, or a person's
first direct message, is in no known place: after a longer outage nothing tells of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol, cast

from aiolimiter import AsyncLimiter

from channels.base import InboundMessage
from channels.errors import NotStored
from channels.slack.api import SlackApi
from channels.slack.errors import FAILURES, Failure, Meaning, code_of, meaning_of, wait_asked_for
from channels.slack.parse import Bot

log = logging.getLogger(__name__)

OVERLAP: Final = timedelta(minutes=5)
"""How far before the newest stored message: so long Slack repeats an older one that was not stored."""

MOST_AGE: Final = timedelta(days=7)
MOST_MESSAGES: Final = 200  # of one place: the newest of those that were missed
MOST_PLACES: Final = 200  # those that were used last

_PAGE = 100  # Slack gives some apps 15 at most
_PAGES = 20
_AGAIN_S = 30.0  # after a round that has left something; twice as long after each further one
_MOST_AGAIN_S = 600.0
_TRIES = 3
_STORE_AGAIN_S = 5.0
_NOTE_EACH_S = 60.0


@dataclass(frozen=True, slots=True)
class KnownPlace:
    """A direct message (`thread` None), a thread in which the bot takes part, or a channel, and the
    time of the newest message of it that is stored. `every`: whatever is said there from then on is
    wanted; None: only what is addressed to the bot."""

    chat: str
    thread: str | None
    newest: datetime
    every: datetime | None = None


class Places(Protocol):
    """What is stored of the places of a workspace (its id)."""

    async def known(self, team: str, most: int) -> Sequence[KnownPlace]:
        """So many at most: those that were left unread first, then those that were used last; and the
        channels of these of which all is wanted."""
        ...

    async def leave(self, team: str, unread: Sequence[KnownPlace]) -> None:
        """These are still to be read, and no others, also after a crash. Raises `NotStored`."""
        ...

    async def connected(self, team: str, at: datetime) -> None:
        """All that was sent until then has come, or was read from the history. Never raises."""
        ...

    async def restored_at(self) -> datetime | None:
        """When the store was last made of a backup; None: never."""
        ...


HandOver = Callable[[Mapping[str, Any], KnownPlace], Awaitable[None]]
"""A message as the history has it, and where it was found. Raises what `receive` raises."""


class Nowhere:
    """For a channel without a store behind it."""

    async def known(self, team: str, most: int) -> Sequence[KnownPlace]:
        """None."""
        return ()

    async def leave(self, team: str, unread: Sequence[KnownPlace]) -> None:
        """They are forgotten."""

    async def connected(self, team: str, at: datetime) -> None:
        """Nobody asks."""

    async def restored_at(self) -> datetime | None:
        """There is nothing to restore."""
        return None


class CatchUp:
    """One workspace (`bot`: ours in it), during one `listen`."""

    def __init__(self, api: SlackApi, bot: Bot, places: Places, hand_over: HandOver) -> None:
        self._api = api
        self._bot = bot
        self._team = bot.team_id
        self._places = places
        self._hand_over = hand_over
        self._first = False
        self._restored: datetime | None = None
        self._connected: datetime | None = None  # when the connection was last seen
        self._connection: str | None = None
        self._gap: datetime | None = None
        self._unread: dict[tuple[str, str | None], KnownPlace] = {}
        self._wanted = asyncio.Event()
        self._reading = False
        # Tier 3 is 50 a minute for the whole app: some is left to what reads a thread for an answer.
        self._pace = AsyncLimiter(20, 30)

    async def prepare(self) -> None:
        """Before anything is received: once newer messages come, the newest stored one says nothing
        about what was missed before it."""
        for place in await self._places.known(self._team, MOST_PLACES):
            self._note(place)
        self._restored = await self._places.restored_at()
        self._first = True
        await self._keep()

    def see(self, connection: str | None) -> None:
        """Told at each look at the connection; None: there is none."""
        now = datetime.now(UTC)
        if connection is not None and connection != self._connection:
            self._gap = min(self._gap or now, self._connected or now)
            self._connection = connection
            self._wanted.set()
        if connection is not None:
            self._connected = now

    def missed(self, message: InboundMessage) -> None:
        """It came, could not be stored, and was not acknowledged. Slack repeats it for minutes only,
        and what is stored after it hides it from the next start: it is read as soon as it can be. One
        that is not addressed is found in its channel, with all others that were said there since."""
        to, at = message.address, message.sent_at
        if message.addressed or message.joined or message.left:
            self._note(KnownPlace(to.chat, to.thread, at))
        else:
            begins = to.thread == message.message_id
            self._note(KnownPlace(to.chat, None if begins else to.thread, at, at))
        self._wanted.set()

    async def _keep(self) -> None:
        """What is to be read outlives the process: the newest stored message may be one that has come
        since."""
        try:
            await self._places.leave(self._team, list(self._unread.values()))
        except NotStored as error:
            log.warning("what is still to be read on Slack cannot be kept: %s", error)

    def _note(self, place: KnownPlace) -> None:
        """To be read; what came since says nothing of what it missed."""
        key = place.chat, place.thread
        left = self._unread.get(key, place)
        every = min(filter(None, (place.every, left.every)), default=None)
        self._unread[key] = replace(place, newest=min(place.newest, left.newest), every=every)

    async def run(self) -> None:
        """Read after each new connection, and again what could not be read, until cancelled; note until
        when nothing was missed."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep_reading(), name="what was missed on Slack")
            group.create_task(self._keep_noting(), name="how long Slack is connected")

    async def note_connected(self) -> None:
        """Not while something is left to be read: a start would not look so far back then."""
        if self._connected and not (self._gap or self._unread or self._reading):
            await self._places.connected(self._team, self._connected)

    async def _keep_noting(self) -> None:
        while True:
            await asyncio.sleep(_NOTE_EACH_S)
            await self.note_connected()

    async def _keep_reading(self) -> None:
        failed = 0
        while True:
            await self._due(failed)
            self._wanted.clear()
            self._reading = True
            try:
                await self._round()
            except Exception:
                log.exception("what was missed on Slack is not read; it is tried again")
                failed += 1
            else:
                failed = failed + 1 if self._unread else 0
            self._reading = False  # not where it was cancelled: a place may be read by half

    async def _due(self, failed: int) -> None:
        """Return when there is something to read, or in time for the next try after `failed` rounds."""
        wait_s = None if not failed else min(_AGAIN_S * 2.0 ** min(failed - 1, 30), _MOST_AGAIN_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._wanted.wait()

    async def _round(self) -> None:
        await self._gather()
        await self._keep()
        places = list(self._unread.values())
        found = [await self._read(place.chat, place.thread) for place in places]
        await self._keep()
        log.info(
            "read what was missed: %d messages in %d places, %d places are left",
            sum(found),
            len(places) - len(self._unread),
            len(self._unread),
        )

    async def _gather(self) -> None:
        """Note the places to read after a new connection, beside those left by earlier rounds."""
        gap = self._gap
        if gap is not None and not self._first:
            for place in await self._places.known(self._team, MOST_PLACES):
                newest = min(place.newest, gap)
                self._note(replace(place, newest=newest, every=place.every and gap))
        self._first, self._gap = False, None

    async def _read(self, chat: str, thread: str | None) -> int:
        """Hand over what is new in one place; how many messages that were. Where it may work later
        the place is kept for the next round; so is one of which more is missed meanwhile."""
        place = self._unread.pop((chat, thread))
        try:
            messages = await self._messages(place)
        except FAILURES as error:
            passes = _passes(error)
            log.warning(
                "what was missed in %s is not read%s: %s",
                chat,
                " yet" if passes else "",
                code_of(error),
            )
            if passes:
                self._note(place)
            return 0
        except Exception:
            self._note(place)
            raise
        for message in messages:
            await self._store(message, place)
        return len(messages)

    async def _messages(self, place: KnownPlace) -> list[Mapping[str, Any]]:
        """The missed messages of one place, oldest first."""
        since = max(place.newest - OVERLAP, datetime.now(UTC) - MOST_AGE)
        params: dict[str, Any] = {"channel": place.chat, "oldest": _ts(since), "limit": _PAGE}
        method = "conversations.history"
        if place.thread is not None:
            method, params["ts"] = "conversations.replies", place.thread
        found: list[Mapping[str, Any]] = []
        for _ in range(_PAGES):
            page = await self._page(method, params)
            found += page.get("messages") or ()
            cursor = cast("Mapping[str, Any]", page.get("response_metadata") or {}).get(
                "next_cursor"
            )
            if not cursor:
                break
            params["cursor"] = cursor
        else:
            log.warning("in %s more was missed than is read", place.chat)
        first = _ts(since)  # a thread's first message comes along, however old it is
        new = [one for one in found if str(one.get("ts")) > first]
        if self._restored is not None:
            new = self._unanswered(new, _ts(self._restored))
        return sorted(new, key=lambda one: str(one["ts"]))[-MOST_MESSAGES:]

    def _unanswered(
        self, found: Sequence[Mapping[str, Any]], restored: str
    ) -> list[Mapping[str, Any]]:
        """Without what was said before the restore and stands before an answer of the bot's: that is
        an answer which the backup does not know."""
        own = [str(one["ts"]) for one in found if one.get("user") == self._bot.user_id]
        answered = min(max(own, default=""), restored)
        left = [one for one in found if str(one["ts"]) > answered]
        if len(left) < len(found):
            log.info("of the time before the restore %d are answered", len(found) - len(left))
        return left

    async def _page(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        for tries in range(1, _TRIES + 1):
            await self._pace.acquire()
            try:
                return await self._api.read(method, params)
            except FAILURES as error:
                if tries == _TRIES or not _passes(error):
                    raise
                await asyncio.sleep(wait_asked_for(error))
        raise AssertionError("unreachable")

    async def _store(self, message: Mapping[str, Any], place: KnownPlace) -> None:
        """Until it is stored; the ones after it wait, so that their order is kept."""
        while True:
            try:
                return await self._hand_over(message, place)
            except NotStored as error:
                log.warning("a missed message is not stored yet, and tried again: %s", error)
                await asyncio.sleep(_STORE_AGAIN_S)
            except Exception as error:  # noqa: BLE001 - a border: one message must not stop the rest
                # Where it happened and what kind of error: its text may quote the message.
                where = "".join(traceback.format_tb(error.__traceback__))
                log.error("a missed message is lost (%s)\n%s", type(error).__name__, where)
                return None


def _passes(error: Failure) -> bool:
    """Whether the same request may work later."""
    return meaning_of(error) in (Meaning.RATE_LIMITED, Meaning.NOT_SENT, Meaning.UNCERTAIN)


def _ts(moment: datetime) -> str:
    """As Slack writes it: equal lengths, so that text order is time order."""
    seconds = int(moment.timestamp())
    return f"{seconds}.{moment.microsecond:06}"
