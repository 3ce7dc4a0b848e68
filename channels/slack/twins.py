"""The two events about one text that mentions the bot.

Slack tells it as `message` and as `app_mention`, in any order, and leaves the files out of the second
at times (openclaw/openclaw#62927, NousResearch/hermes-agent#77141). Since the first that is stored
wins, a mention without files lets its `message` go first. That one has an acknowledgement of its
own, so that nothing is lost if it cannot be stored.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Final

from channels.base import InboundMessage

WAIT_S: Final = 0.5
"""Only an app that does not hear `message` events in channels ever waits that long."""

_KEPT = 1_000


class Twins:
    """Which texts have come as `message`."""

    def __init__(self) -> None:
        self._came: OrderedDict[tuple[str, str], asyncio.Event] = OrderedDict()

    def has_come(self, message: InboundMessage) -> None:
        """It is here as `message`."""
        self._event(message).set()

    async def comes(self, message: InboundMessage) -> bool:
        """Whether it has come as `message`, or does so within `WAIT_S`."""
        try:
            async with asyncio.timeout(WAIT_S):
                await self._event(message).wait()
        except TimeoutError:
            return False
        return True

    def _event(self, message: InboundMessage) -> asyncio.Event:
        event = self._came.setdefault((message.address.chat, message.event), asyncio.Event())
        while len(self._came) > _KEPT:
            self._came.popitem(last=False)
        return event
