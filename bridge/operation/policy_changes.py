"""What follows when a chat's limits change: a pause ends what runs, and some changes are announced."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from bridge.inbound import readable
from bridge.lanes import Lanes
from bridge.limits.admission import reopen
from bridge.limits.changes import shown
from bridge.limits.editing import differences
from bridge.limits.files import Changed
from bridge.limits.keys import BY_NAME, PAUSED, QUIET_HOURS
from bridge.limits.policies import ChatPolicies, is_quiet, zone_of
from bridge.limits.policy import Policy
from bridge.limits.reading import read
from bridge.limits.times import is_paused
from bridge.runs.notices import Notices
from bridge.runs.stopping import key_of
from bridge.runs.turns import Turns
from bridge.scheduler import Due, Scheduler
from channels.base import Address, Channel, InboundMessage, OutboundReply
from channels.errors import ChannelError
from memory.access.people import People
from memory.chats.reach import ChatPlace, Chats
from memory.inbox import Inbox
from memory.policies import PolicyPlace, PolicyStore

ANNOUNCE: Final = "announce"  # the kind of job that tells what has changed in quiet hours
ANNOUNCE_LIMIT_S = 60.0
_MOST_CHANGES = 50
_A_DAY = timedelta(days=1)

log = logging.getLogger(__name__)

Beside = Callable[[Coroutine[Any, Any, None], str], object]


class PolicyChanges:
    """`changed` is told of every change, by a file or in a chat."""

    def __init__(
        self,
        policies: ChatPolicies,
        store: PolicyStore,
        chats: Chats,
        inbox: Inbox,
        lanes: Lanes,
        turns: Turns,
        notices: Notices,
        channels: Mapping[str, Channel],
        people: People,
        beside: Beside,
    ) -> None:
        self._policies = policies
        self._store = store
        self._chats = chats
        self._inbox = inbox
        self._lanes = lanes
        self._turns = turns
        self._notices = notices
        self._channels = channels
        self._people = people
        self._beside = beside
        self._scheduler: Scheduler | None = None

    def bind(self, scheduler: Scheduler) -> None:
        """What is changed in quiet hours is announced after them."""
        self._scheduler = scheduler

    def changed(self, change: Changed) -> None:
        """Never blocks."""
        if change.place.channel not in self._channels:
            return
        if PAUSED.name in change.after:
            self.end_paused()
            self._beside(self._drop_waiting(change.place), "a pause")
        self._beside(self._reopen(change), "limits that open")
        names = _announced(change)
        if names and not change.told:
            self._beside(self._announce(change.place, names), "an announcement")

    async def _reopen(self, change: Changed) -> None:
        channel, chat = change.place.channel, change.place.chat
        for account in await self._inbox.accounts(channel, chat):
            await reopen(self._people, (channel, account, chat), change.before, change.after)

    # Pauses ----------------------------------------------------------------------------------------

    def end_paused(self) -> None:
        """Runs in chats that are paused now end as by `/cancel`."""
        for run in self._lanes.all_active():
            if self._is_paused(run.address, run.person):
                run.token.cancel()

    async def _drop_waiting(self, place: PolicyPlace) -> None:
        """What waits there is not answered, also not later."""
        for account in await self._inbox.accounts(place.channel, place.chat):
            for key in await self._chats.session_keys(
                ChatPlace(place.channel, account, place.chat)
            ):
                await self._drop_in(key)

    async def _drop_in(self, session_key: str) -> None:
        rows = await self._inbox.open_turns(session_key)
        found = [(row, readable(row.body)) for row in rows if row.run_id is None]
        dropped = [
            (row.id, key_of(message))
            for row, message in found
            if message is not None and self._is_paused(message.address, message.sender.id)
        ]
        if dropped:
            await self._inbox.close([id_ for id_, _ in dropped], "cancelled")
            keys = [key for _, key in dropped]
            self._turns.dropped(session_key, keys)
            self._turns.unmark(keys)

    def _is_paused(self, address: Address, person: str) -> bool:
        return is_paused(self._policies.of(address, person)[PAUSED], datetime.now(UTC))

    # Announcements ---------------------------------------------------------------------------------

    async def by_the_clock(self, due: Due) -> str:
        """Tell what has changed while a chat was quiet. The job's scope names the place."""
        channel, chat, topic = due.scope.split("|")
        place = PolicyPlace(channel, chat, topic)
        since = due.planned_at - _A_DAY
        changes = [
            change
            for change in await self._store.changes(place, _MOST_CHANGES)
            if datetime.fromisoformat(change.at) >= since
        ]
        if not changes:
            return "nothing has changed"
        files = self._policies.files
        before, after = (
            read(text.encode(), files.known).values
            for text in (changes[-1].before, changes[0].after)
        )
        names = _announced(Changed(place, before, after, told=False))
        if names:
            await self._announce(place, names)
        return f"{len(names)} announced"

    async def _announce(self, place: PolicyPlace, changed: Sequence[tuple[str, str, str]]) -> None:
        """One silent line in the chat, after its quiet hours."""
        heard = await self._newest(place)
        if heard is None:
            return  # a chat in which nobody has spoken to the bot
        address = replace(heard.address, thread=place.topic or None)
        message = replace(heard, address=address, message_id="")
        await self._policies.read(address)
        policy = self._policies.of(address, message.sender.id)
        if is_quiet(policy) and self._scheduler is not None:
            scope = "|".join((place.channel, place.chat, place.topic))
            await self._scheduler.once(ANNOUNCE, _end_of_quiet(policy), scope)
            return
        say = self._notices.say(message)
        text = "\n".join((say("limits_announced"), *shown(changed, say)))
        sink = self._channels[place.channel].open_reply(address, reply_to=None, silent=True)
        try:
            await sink.finish(OutboundReply(text, silent=True))
        except ChannelError as error:
            log.warning("a change is not announced in %s: %s", place.target, error)

    async def _newest(self, place: PolicyPlace) -> InboundMessage | None:
        body = await self._inbox.newest(place.channel, place.chat)
        return None if body is None else readable(body)


def _announced(change: Changed) -> list[tuple[str, str, str]]:
    return [one for one in differences(change.before, change.after) if BY_NAME[one[0]].announced]


def _end_of_quiet(policy: Policy) -> datetime:
    """When the quiet hours end that hold now."""
    hours, local = policy[QUIET_HOURS], datetime.now(UTC).astimezone(zone_of(policy))
    minutes = (hours.end - local.hour * 60 - local.minute) % (24 * 60)
    return (local + timedelta(minutes=minutes)).astimezone(UTC)
