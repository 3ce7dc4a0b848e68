"""Who may change a chat's limits: asked of the platform anew each time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from bridge.access import Access
from bridge.limits.keys import EDITORS
from bridge.limits.policies import ChatPolicies
from bridge.texts import Say
from channels.base import Address, Channel
from memory.access.people import People

NO_EVERY = timedelta(hours=1)  # somebody who may not is told so


class LimitRights:
    """Owners everywhere, and in a group those of its admins who may change what it is, whom the
    configuration names as managers, and the chat's `editors` as long as they are in it."""

    def __init__(
        self,
        access: Access,
        channels: Mapping[str, Channel],
        people: People,
        policies: ChatPolicies,
    ) -> None:
        self._policies = policies
        self._access = access
        self._channels = channels
        self._people = people

    def is_owner(self, address: Address, person: str) -> bool:
        """Whether the person owns the bot."""
        return self._access.is_owner(address.channel, person)

    async def may_change(self, address: Address, person: str) -> bool | None:
        """None when the platform does not say."""
        if self._access.is_owner(address.channel, person):
            return True
        if address.private:
            return False
        channel = self._channels[address.channel]
        if person in self._policies.of(address, person)[EDITORS]:
            is_in = await channel.membership.is_in(address, person)
            if is_in is not False:
                return is_in
        named = self._access.rules(address.channel).managers
        return await channel.is_admin(address, person, managing=True, named=named)

    async def no(
        self, address: Address, person: str, may: bool | None, say: Say, *, always: bool = False
    ) -> str:
        """Why not; blank for somebody who was told within the hour (`always`: all the same, as they
        alone see it)."""
        if may is None:
            return say("limits_unknown_admin")
        key = f"limits_no:{address.channel}:{address.account}:{address.chat}:{person}"
        if not always and not await self._people.tell_once(key, NO_EVERY):
            return ""
        return say("limits_no_private" if address.private else "limits_no")
