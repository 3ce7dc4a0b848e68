"""Who is in a group that lets its members in. The platform is asked, and its answer kept for a while:
whoever leaves loses access within the hour."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from channels.base import Address, Channel

KNOWN_S: Final = 1800.0  # a yes
REFUSED_S: Final = 60.0  # a no: somebody may join right now
MOST_KEPT: Final = 10_000
WAIT_S: Final = 2.0  # a platform that is slower has not answered


class Members:
    """A cache over `Membership.is_member`."""

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._channels = channels
        self._known: OrderedDict[tuple[str, str, str], tuple[bool, float]] = OrderedDict()

    async def is_in_one(self, of: Address, groups: Collection[str], person: str) -> bool | None:
        """Whether the person is in one of these groups on the channel of `of`. None when no group says
        yes, and one does not answer."""
        answers = [await self._is_in(replace(of, chat=group), person) for group in sorted(groups)]
        if any(answers):
            return True
        return None if None in answers else False

    async def _is_in(self, group: Address, person: str) -> bool | None:
        key, now = (group.channel, group.chat, person), _now()
        known = self._known.get(key)
        if known is not None and known[1] > now:
            return known[0]
        try:
            async with asyncio.timeout(WAIT_S):
                answer = await self._channels[group.channel].membership.is_member(group, person)
        except TimeoutError:
            answer = None
        if answer is None:
            return None
        self._known[key] = (answer, now + (KNOWN_S if answer else REFUSED_S))
        self._known.move_to_end(key)
        while len(self._known) > MOST_KEPT:
            self._known.popitem(last=False)
        return answer


def _now() -> float:
    return asyncio.get_running_loop().time()
