"""Who may talk to the bot: owners, and the people and chats that the configuration lists.

Rights are checked by numeric id at the moment of the act. Names and text prove nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from channels.base import Address, Sender
from memory.chats import ChatPlace, Chats, Move
from memory.people import People


@dataclass(frozen=True, slots=True)
class ChannelAccess:
    """One channel's lists from the configuration: ids of owners, and of people and chats.

    `open`: everybody may talk (the terminal, where who sits at it is the owner).
    """

    owners: frozenset[str] = frozenset()
    allowed: frozenset[str] = frozenset()
    open: bool = False


class Access:
    """The one place that answers who may do what."""

    def __init__(self, channels: Mapping[str, ChannelAccess], people: People, chats: Chats) -> None:
        self._channels = channels
        self._people = people
        self._chats = chats
        self._owners: set[tuple[str, str]] = set()

    async def load(self) -> None:
        """Read the owners that are not in the configuration; call it before anything else."""
        self._owners = await self._people.owners()

    def is_owner(self, channel: str, person: str) -> bool:
        """Whether the person owns the bot on that channel."""
        rules = self._channels.get(channel, ChannelAccess())
        return rules.open or person in rules.owners or (channel, person) in self._owners

    def has_owner(self, channel: str) -> bool:
        """Whether anybody owns the bot on that channel."""
        rules = self._channels.get(channel, ChannelAccess())
        return rules.open or bool(rules.owners) or any(c == channel for c, _ in self._owners)

    def may_talk(self, address: Address, sender: Sender) -> bool:
        """Whether a message of this person at this place is answered."""
        rules = self._channels.get(address.channel, ChannelAccess())
        if self.is_owner(address.channel, sender.id) or sender.id in rules.allowed:
            return True
        if address.private:
            return False
        if address.chat in rules.allowed:
            return True
        names = self._chats.names(ChatPlace(address.channel, address.account, address.chat))
        return not rules.allowed.isdisjoint(names)

    @property
    def outdated(self) -> list[Move]:
        """The moves of chats which the configuration still lists under an id that is no more."""
        return [
            move
            for move in self._chats.moves
            if move.old in self._channels.get(move.channel, ChannelAccess()).allowed
        ]

    async def claim(self, channel: str, person: str, code: str) -> bool:
        """Make the person an owner by a one-time code; false for a used, old or wrong code."""
        if not await self._people.claim_ownership(channel, person, code):
            return False
        self._owners.add((channel, person))
        return True
