"""Whether a question is taken: asked before it is stored, and while it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from bridge.access import Access
from bridge.limits.caps import (
    MINUTE,
    Reach,
    caps_of,
    everywhere,
    full,
    of_installation,
    reached,
    sentence,
    windows_of,
)
from bridge.limits.gate import MonthlyGate
from bridge.limits.keys import (
    BLOCKED,
    BY_NAME,
    PAUSED,
    QUESTIONS_PER_DAY,
    TOPICS,
    WHEN_LIMIT_REACHED,
    WHO_CAN_ASK,
)
from bridge.limits.lists import ALL_TOPICS
from bridge.limits.policies import zone_of
from bridge.limits.policy import Policy, Values
from bridge.limits.times import is_blocked, is_paused
from bridge.texts import Say
from channels.base import Address, Channel, InboundMessage
from memory.access.people import People
from memory.costs.days import Day, day_of, first_met
from memory.inbox import Full, Window
from memory.usage import UsageStore

TOLD_FOR = timedelta(days=1)  # of what opens by no waiting
ANY_WINDOW = timedelta(days=366)  # longer than any that opens by itself, pauses too
FIRST_TOPIC = "1"  # what is in no other one


@dataclass(frozen=True, slots=True)
class Admitted:
    """A question may be asked, as long as these windows of questions are not full."""

    day: Day
    windows: tuple[Window, ...]


class Admission:
    """The door of all chats."""

    def __init__(
        self,
        usage: UsageStore,
        people: People,
        access: Access,
        channels: Mapping[str, Channel],
        installation: MonthlyGate,
    ) -> None:
        self._installation = installation
        self._usage = usage
        self._people = people
        self._access = access
        self._channels = channels

    def is_blocked(self, message: InboundMessage, policy: Policy) -> bool:
        """Whether the person is kept out here. Owners cannot be."""
        person = message.sender.id
        if self._access.is_owner(message.address.channel, person):
            return False
        blocked = policy[BLOCKED]
        return is_blocked(blocked, person, datetime.now(UTC))

    async def admit(self, message: InboundMessage, policy: Policy) -> Admitted | Reach:
        """Whether the message may be a question now."""
        paused = policy[PAUSED]
        # What was sent in a pause is not answered later either, however late it comes.
        if is_paused(paused, datetime.now(UTC)) or is_paused(paused, message.sent_at):
            return Reach(PAUSED.name, opens=None if isinstance(paused, bool) else paused)
        if self.is_blocked(message, policy):
            return Reach(BLOCKED.name)
        if not self._is_open(message.address, policy):
            return Reach(TOPICS.name)
        if not await self._may_ask(message, policy):
            return Reach(WHO_CAN_ASK.name)
        spending = await self._installation.full()
        if spending is not None:
            return of_installation(spending)
        zone, address = zone_of(policy), message.address
        person = self._installation.person_cap()
        if person is not None:
            spent = await self._usage.of_person(address.channel, message.sender.id, person.since)
            if spent.counted >= person.limit:
                return everywhere(spent, person, self._installation.zone)
        place = (address.channel, address.account, address.chat)
        caps = caps_of(policy, private=address.private)
        if not caps and policy[QUESTIONS_PER_DAY] is None:
            day = day_of(datetime.now(UTC), zone, None)
            return Admitted(day, tuple(windows_of(policy, message.sent_at, day)))
        month = any(cap.measure == "month_cost" for cap in caps)
        used = await self._usage.used(place, message.sender.id, zone, month=month)
        met = first_met(caps, used)
        if met is not None:
            return reached(met, used, datetime.now(UTC), zone)
        return Admitted(used.day, tuple(windows_of(policy, message.sent_at, used.day)))

    def too_many(self, found: Full, admitted: Admitted, policy: Policy) -> Reach:
        """A window was full when the question was to be stored."""
        return full(found, admitted.day, datetime.now(UTC), zone_of(policy))

    async def told(
        self, reach: Reach, message: InboundMessage, policy: Policy, say: Say
    ) -> str | None:
        """What the person is told of it; None when they are told nothing, or were told already."""
        how = policy[WHEN_LIMIT_REACHED]
        if not message.addressed and reach.opens is None and not reach.held:
            return None  # nobody has asked the bot
        if how == "silent":
            return None
        if how == "tell_once" and not await self._first_time(reach, message):
            return None
        return sentence(reach, policy, say, message.address)

    async def _first_time(self, reach: Reach, message: InboundMessage) -> bool:
        """Since it was reached: each person once for each time at which it opens. What goes
        over all chats is told in one of them."""
        address = message.address
        place = (address.channel, address.account, address.chat)
        begins = _told_in(place)
        if reach.everywhere or reach.installation:
            begins = f"limit:{address.channel}:everywhere:"
        # One that was raised, also by the configuration, is another one.
        key = f"{begins}{message.sender.id}:{reach.key}:{reach.limit}"
        if reach.held:  # running answers are done in about a minute
            return await self._people.tell_once(f"{key}:held", MINUTE)
        if reach.opens is None:
            return await self._people.tell_once(key, TOLD_FOR)
        return await self._people.tell_once(f"{key}:{reach.opens:%Y%m%dT%H%M%S}", ANY_WINDOW)

    def _is_open(self, address: Address, policy: Policy) -> bool:
        """Whether questions are answered in this topic."""
        topics = policy[TOPICS]
        if topics == ALL_TOPICS or address.private:
            return True
        has_topics = self._channels[address.channel].capabilities.topics
        return not has_topics or (address.thread or FIRST_TOPIC) in topics

    async def _may_ask(self, message: InboundMessage, policy: Policy) -> bool:
        wanted, address, person = policy[WHO_CAN_ASK], message.address, message.sender.id
        if address.private or self._access.is_owner(address.channel, person):
            return True
        if wanted.ids is not None and person not in wanted.ids:
            return False
        if not wanted.admins:
            return True
        return bool(await self._channels[address.channel].is_admin(address, person))


async def reopen(
    people: People, place: tuple[str, str, str], before: Values, after: Values
) -> None:
    """What a change in a chat opens is told again when it is reached again; what it closes may have
    been told by now. Of blocks only to those who were let in."""
    opened = {name for name in before if _is_wider(name, before[name], after.get(name))}
    blocks: frozenset[str] = before.get(BLOCKED.name, frozenset())
    freed = {one.partition(" ")[0] for one in blocks - after.get(BLOCKED.name, frozenset())}
    begins = _told_in(place)

    def is_meant(key: str) -> bool:
        person, name, *_ = key.removeprefix(begins).split(":")
        return name in opened and (name != BLOCKED.name or person in freed)

    if opened:
        await people.tell_anew(begins, is_meant)


def _is_wider(name: str, before: Any, after: Any) -> bool:
    """Whether more may be done than before; without the line, whatever holds in its place."""
    return after is None or BY_NAME[name].kind.meet(before, after) != after


def _told_in(place: tuple[str, str, str]) -> str:
    """How the names begin under which is kept that a limit of a chat was told."""
    return f"limit:{':'.join(place)}:"
