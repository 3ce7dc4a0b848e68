"""The policy of each chat: the configuration's layers, the chat's files, and the ceilings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from bridge.limits.files import PolicyFiles
from bridge.limits.keys import PAUSED, QUIET_HOURS, TIMEZONE
from bridge.limits.kinds import Known
from bridge.limits.policy import Layer, Policy, Values, resolve
from bridge.limits.times import Paused
from bridge.timezones import is_zone
from channels.base import Address
from memory.access.people import People
from memory.chats.reach import ChatPlace, Chats
from memory.database import Database
from memory.policies import PolicyPlace, PolicyStore

CONFIG = "configuration"
PROFILE = "profile"  # of the person on the platform
MOST_KNOWN = 20_000  # private chats whose profiles' zones are kept in mind


def _none() -> Values:
    return dict[str, Any]()


@dataclass(frozen=True, slots=True)
class PolicyLayers:
    """What the configuration says: at its `top`, in `defaults`, for a channel, for a person (by
    `channel:id`), and as `ceilings`."""

    top: Values = field(default_factory=_none)
    defaults: Values = field(default_factory=_none)
    channels: Mapping[str, Values] = field(default_factory=dict[str, Values])
    people: Mapping[str, Values] = field(default_factory=dict[str, Values])
    ceilings: Values = field(default_factory=_none)


class ChatPolicies:
    """`names(address)`: all ids that a chat has and had; `told_zone(channel, account, chat)`: the time
    zone that the person's profile said last, as far as it is stored. `read` before `of`."""

    def __init__(
        self,
        layers: PolicyLayers,
        files: PolicyFiles,
        names: Callable[[Address], Sequence[str]],
        told_zone: Callable[[str, str, str], Awaitable[str | None]],
    ) -> None:
        self.layers = layers
        self.files = files
        self._names = names
        self._told_zone = told_zone
        self._zones: dict[tuple[str, str, str], str] = {}  # of private chats; '': none is known

    async def read(self, address: Address) -> None:
        """Take in what has changed in the chat's files. Raises `StoreError`."""
        former = [name for name in self._names(address) if name != address.chat]
        for place in places_of(address):
            await self.files.read(place, former)
        here = (address.channel, address.account, address.chat)
        if not address.private or TIMEZONE.name in self.layers.top or here in self._zones:
            return
        zone = await self._told_zone(*here) or ""
        if len(self._zones) >= MOST_KNOWN:
            self._zones.clear()
        self._zones.setdefault(here, zone if is_zone(zone) else "")

    def learn(self, address: Address, zone: str | None) -> None:
        """The profile of who has just written there says so."""
        if address.private and zone and is_zone(zone):
            self._zones[address.channel, address.account, address.chat] = zone

    def of(self, address: Address, person: str) -> Policy:
        """What holds for the person there, as of the last `read`."""
        return resolve(self.layers_of(address, person), self.layers.ceilings)

    def layers_of(self, address: Address, person: str) -> list[Layer]:
        """Everything that is set for the person there, the weakest first."""
        layers, channel = self.layers, address.channel
        zone = self._zones.get((channel, address.account, address.chat))
        found = [
            Layer(PROFILE, {TIMEZONE.name: zone} if zone else {}),
            Layer(CONFIG, layers.top),
            Layer("defaults", layers.defaults),
            Layer(f"channels.{channel}.defaults", layers.channels.get(channel, {})),
        ]
        found += self._of_files(places_of(address))
        name = f"{channel}:{person}"
        found.append(Layer(f"people.{name}", layers.people.get(name, {})))
        return found

    def _of_files(self, places: Sequence[PolicyPlace]) -> list[Layer]:
        """The chat's, and the topic's. A pause of the chat is one of its topics, whatever they say."""
        chat, *topics = [
            Layer(str(self.files.path(place)), self.files.state(place).values) for place in places
        ]
        paused = chat.values.get(PAUSED.name, False)
        return [chat, *(_also_paused(topic, paused) for topic in topics)]


def _also_paused(topic: Layer, paused: Paused) -> Layer:
    """Without a line of the topic that would end the chat's pause."""
    own = topic.values.get(PAUSED.name, False)
    if PAUSED.name not in topic.values or PAUSED.kind.meet(own, paused) == own:
        return topic
    rest = {name: value for name, value in topic.values.items() if name != PAUSED.name}
    return Layer(topic.origin, rest)


def chat_policies(
    layers: PolicyLayers, data: Path, database: Database, chats: Chats, known: Known
) -> ChatPolicies:
    """Policies with their files in the data folder."""

    def names(address: Address) -> Sequence[str]:
        return sorted(chats.names(ChatPlace(address.channel, address.account, address.chat)))

    files = PolicyFiles(data, PolicyStore(database), known)
    return ChatPolicies(layers, files, names, People(database).timezone)


def places_of(address: Address) -> list[PolicyPlace]:
    """The chat, and the topic where there is one."""
    chat = PolicyPlace(address.channel, address.chat)
    if address.thread is None:
        return [chat]
    return [chat, PolicyPlace(address.channel, address.chat, address.thread)]


def zone_of(policy: Policy) -> tzinfo:
    """The chat's time zone."""
    name = policy[TIMEZONE]
    return UTC if name == "UTC" else ZoneInfo(name)


def is_quiet(policy: Policy) -> bool:
    """Whether it is one of the chat's quiet hours."""
    return policy[QUIET_HOURS].hold(datetime.now(UTC), zone_of(policy))
