"""Who may decide for a whole chat. Asked by the platform's id, at the moment of the act."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from bridge.access import Access
from bridge.limits.lists import People
from bridge.speakers import plain_name
from channels.base import Address, Channel, InboundMessage

TITLE_WAIT_S: Final = 2.0  # for the name of a group
MEMBER_WAIT_S: Final = 5.0  # for whether somebody is in one


class Rights:
    """Of whoever sends a message, in the chat that it comes from."""

    def __init__(self, access: Access, channels: Mapping[str, Channel]) -> None:
        self._access = access
        self._channels = channels

    async def title(self, address: Address) -> str | None:
        """The group's, as the platform tells it now; None where it does not, in time."""
        try:
            async with asyncio.timeout(TITLE_WAIT_S):
                title = await self._channels[address.channel].membership.title(address)
        except TimeoutError:
            return None
        return plain_name(title) if title else None

    async def reads(self, address: Address, person: str) -> bool:
        """Whether they are in that group now; where that is not known in time they are not."""
        try:
            async with asyncio.timeout(MEMBER_WAIT_S):
                return bool(await self._channels[address.channel].membership.is_in(address, person))
        except TimeoutError:
            return False

    async def is_among(self, people: People, message: InboundMessage) -> bool:
        """Whether they are meant by that; everybody is in their private chat, and owners always."""
        address, person = message.address, message.sender.id
        if self._access.is_owner(address.channel, person):
            return True
        return await is_among(people, address, person, self._channels[address.channel])

    async def over_all(self, message: InboundMessage) -> bool:
        """Whether they may change what others have said too: everybody in their private chat, owners,
        and a group's admins as the platform names them now."""
        address, person = message.address, message.sender.id
        if address.private or self._access.is_owner(address.channel, person):
            return True
        return bool(await self._channels[address.channel].is_admin(address, person))


async def is_among(people: People, address: Address, person: str, channel: Channel) -> bool:
    """Whether the person is meant by that, in a group."""
    if address.private:
        return True
    if people.ids is not None and person not in people.ids:
        return False
    return not people.admins or bool(await channel.is_admin(address, person))
