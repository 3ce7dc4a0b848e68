"""Whether a chat's memory is on: its limits may keep it off, and people may switch it off."""

from __future__ import annotations

from bridge.limits.keys import MEMORY
from bridge.limits.policies import ChatPolicies
from bridge.session import memory_scope
from channels.base import Address
from memory.chats.off import MemoryOff
from memory.notes.flushed import FlushMarks


class MemorySwitch:
    """While it is off nothing is added, and nothing is shown to a model; what there is stays. Each chat
    has a switch of its own, also where it shares a memory: it puts out nobody else's."""

    def __init__(self, off: MemoryOff, marks: FlushMarks, policies: ChatPolicies) -> None:
        self._off = off
        self._marks = marks
        self._policies = policies

    def is_allowed(self, address: Address, person: str) -> bool:
        """Whether the chat's limits let it be on."""
        return self._policies.of(address, person)[MEMORY]

    async def is_on(self, address: Address, person: str) -> bool:
        """Whether it is. Raises `StoreError`."""
        await self._policies.read(address)
        if not self.is_allowed(address, person):
            return False
        return not await self._off.holds(memory_scope(address))

    async def turn(self, address: Address, person: str, *, on: bool) -> None:
        """What was said while it was off is not noted later."""
        place = (address.channel, address.account, address.chat)
        if on:
            for session in await self._marks.sessions_of(place):
                await self._marks.skip(session)
        await self._off.switch(memory_scope(address), person, off=not on)
