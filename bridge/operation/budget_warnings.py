"""Who can raise a budget hears of it in private when it is nearly used up, and when it is.

A chat's admins who have a private chat with the bot, once for each window of each limit; where none of
them is reached, one silent line in the chat says it, after quiet hours. Owners for the limits of the
installation, at the percentage of the operator's `defaults`: no chat's own decides about all of them.
What was told is stored before it is sent: rather once too few.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from bridge.access import Access
from bridge.inbound import readable
from bridge.limits.caps import amount_of, caps_of
from bridge.limits.gate import MonthlyGate, usd
from bridge.limits.keys import LANGUAGE, WARN_AT
from bridge.limits.policies import ChatPolicies, is_quiet, zone_of
from bridge.texts import Say, Texts
from channels.base import Address, Channel, InboundMessage, OutboundReply
from channels.errors import ChannelError
from memory.access.people import People
from memory.costs.days import Cap, Used
from memory.inbox import Inbox
from memory.usage import UsageStore

TOLD_FOR: Final = timedelta(days=62)  # longer than any window
MOST_ASKED = 30  # people of whom the platform is asked whether they are admins
FULL = 100

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Warning:
    """`key`: told once. `text` of the catalogue with its values."""

    key: str
    text: str
    values: Mapping[str, object]


class BudgetWarnings:
    """`look` after each run."""

    def __init__(
        self,
        usage: UsageStore,
        inbox: Inbox,
        people: People,
        policies: ChatPolicies,
        gate: MonthlyGate,
        access: Access,
        texts: Texts,
        channels: Mapping[str, Channel],
    ) -> None:
        self._usage = usage
        self._inbox = inbox
        self._people = people
        self._policies = policies
        self._gate = gate
        self._access = access
        self._texts = texts
        self._channels = channels

    async def look(self, address: Address, person: str) -> None:
        """Somebody has used something there. Raises `StoreError`."""
        policy = self._policies.of(address, person)
        await self._of_installation()
        caps = [
            cap
            for cap in caps_of(policy, private=address.private)
            if not cap.measure.startswith("person")
        ]
        if address.private or not caps:
            return
        place = (address.channel, address.account, address.chat)
        used = await self._usage.used(place, person, zone_of(policy))
        due = [one for cap in caps if (one := _due(address, cap, used, policy[WARN_AT]))]
        news = [one[0] for one in due if await self._is_news(one)]
        if news and any([await self._tell(one, news) for one in await self._admins(address)]):
            for levels in due:
                await self._is_news(_in_chat(levels))
        elif due and not is_quiet(policy):
            lines = [one[0] for one in map(_in_chat, due) if await self._is_news(one)]
            if lines:
                await self._tell_chat(address, lines)

    async def _of_installation(self) -> None:
        percent = self._policies.layers.defaults.get(WARN_AT.name, WARN_AT.default)
        for one in await self._gate.spending():
            due = [
                _Warning(
                    f"budget:installation:{one.limit}:{one.window}:{one.most}:{level}",
                    f"budget_installation_{'full' if level == FULL else 'near'}",
                    {"percent": level, "used": usd(one.cost.spent), "limit": usd(one.most)},
                )
                for level in _levels(one.cost.spent, one.most, percent)
            ]
            if await self._is_news(due):
                for heard in await self._owners():
                    await self._tell(heard, due[:1])

    async def _is_news(self, due: list[_Warning]) -> bool:
        """Whether the first and highest of them has not been told; all of them count as told now."""
        news = [one for one in due if await self._people.tell_once(one.key, TOLD_FOR)]
        return bool(due) and due[0] in news

    async def _admins(self, address: Address) -> list[InboundMessage]:
        """The newest message of each of the chat's admins to the bot alone."""
        found: list[InboundMessage] = []
        channel = self._channels[address.channel]
        place = (address.channel, address.account, address.chat)
        for body in await self._inbox.private_near(place, MOST_ASKED):
            message = readable(body)
            if message is not None and await channel.is_admin(address, message.sender.id):
                found.append(message)
        return found

    async def _owners(self) -> list[InboundMessage]:
        bodies = [
            await self._inbox.newest_private(channel, person)
            for channel, person in sorted(self._access.owners())
            if channel in self._channels
        ]
        found = [readable(body) for body in bodies if body is not None]
        return [message for message in found if message is not None]

    async def _tell_chat(self, address: Address, warnings: list[_Warning]) -> None:
        """One silent line in the chat itself, where anybody has written."""
        body = await self._inbox.newest(address.channel, address.chat)
        heard = None if body is None else readable(body)
        if heard is not None:
            await self._tell(replace(heard, address=address), warnings, silent=True)

    async def _tell(
        self, heard: InboundMessage, warnings: list[_Warning], *, silent: bool = False
    ) -> bool:
        """In the chat of which `heard` is a message, outside its threads; whether it arrived."""
        address = replace(heard.address, thread=None)
        language = self._policies.of(address, heard.sender.id)[LANGUAGE]
        wished = None if language == "auto" else language
        channel = self._channels[address.channel]
        language = self._texts.language(wished, heard.sender.language)
        say = Say(self._texts, language, channel.capabilities)
        text = "\n".join(say(one.text, **one.values) for one in warnings)
        sink = channel.open_reply(address, reply_to=None, silent=silent)
        try:
            delivered = await sink.finish(OutboundReply(text, silent=silent))
        except ChannelError as error:
            log.warning("%s is not told of a budget: %s", address.chat, error)
            return False
        return delivered.complete


def _due(address: Address, cap: Cap, used: Used, percent: int) -> list[_Warning]:
    """The highest first."""
    month = cap.measure.startswith("month")
    window = used.day.month if month else used.day.began_at
    place = f"{address.channel}:{address.account}:{address.chat}"
    return [
        _Warning(
            f"budget:{place}:{cap.key}:{window}:{cap.limit}:{level}",
            "budget_full" if level == FULL else "budget_near",
            {
                "chat": address.chat,
                "percent": level,
                "used": amount_of(cap, cap.spent(used)),
                "limit": amount_of(cap, cap.limit),
                "key": cap.key,
            },
        )
        for level in _levels(cap.spent(used), cap.limit, percent)
    ]


def _in_chat(levels: list[_Warning]) -> list[_Warning]:
    """As the chat itself is told: who has used how much is not said there."""
    return [
        _Warning(f"{one.key}:chat", one.text.replace("budget_", "budget_here_"), one.values)
        for one in levels
    ]


def _levels(used: int, limit: int, percent: int) -> list[int]:
    """What is reached of both, the highest first."""
    return [
        level for level in sorted({FULL, percent}, reverse=True) if 100 * used >= level * limit > 0
    ]
