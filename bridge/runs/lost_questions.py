"""Questions that waited in a database which was found damaged, and is set aside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from bridge.inbound import readable
from bridge.runs.delivery import ACT, Deliveries
from bridge.runs.notices import Notices
from channels.base import Address, InboundMessage, OutboundReply
from memory.access.people import People
from memory.conversations import SessionPlace
from memory.outbox import NewReply, Outbox
from memory.storage.integrity import open_questions, set_aside_since

LATELY: Final = timedelta(days=7)
"""Of what was set aside longer ago, nobody waits for an answer any more."""


class LostQuestions:
    """Whoever has asked one hears that it is lost, once for each file and conversation."""

    def __init__(
        self,
        people: People,
        outbox: Outbox,
        deliveries: Deliveries,
        notices: Notices,
        place_of: Callable[[InboundMessage], SessionPlace],
        is_on: Callable[[Address], bool],
    ) -> None:
        """`is_on`: whether its channel is switched on."""
        self._people = people
        self._outbox = outbox
        self._deliveries = deliveries
        self._notices = notices
        self._place_of = place_of
        self._is_on = is_on

    async def tell(self, database: Path) -> None:
        """Look at what was set aside beside the database, and tell its chats."""
        for file in await asyncio.to_thread(set_aside_since, database, datetime.now(UTC) - LATELY):
            bodies = await asyncio.to_thread(open_questions, file)
            read = filter(None, map(readable, bodies))
            newest = {self._place_of(one).key: one for one in read if self._is_on(one.address)}
            for key, message in newest.items():
                name = f"{ACT}{file.name}:{key}"
                if await self._people.tell_once(name, 2 * LATELY):
                    await self._tell(name, message)

    async def _tell(self, name: str, message: InboundMessage) -> None:
        async def store(reply: NewReply) -> int:
            return (await self._outbox.add(self._place_of(message), reply)).id

        said = self._notices.say(message)("questions_are_lost")
        silent = self._notices.quiet(message)
        await self._deliveries.announce(message, name, OutboundReply(said, silent=silent), store)
