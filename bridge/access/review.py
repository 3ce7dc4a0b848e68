"""Looks again at what is asked and not yet answered: who has lost access gets no answer any more."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from bridge.access.policy import Access
from bridge.access.silence import Silence
from bridge.inbound import readable
from channels.base import Channel, InboundMessage
from memory.inbox import Inbox, InboxRow

log = logging.getLogger(__name__)


class Review:
    """Of all sessions, after the configuration's rules have changed and at a start."""

    def __init__(
        self, access: Access, inbox: Inbox, channels: Mapping[str, Channel], silence: Silence
    ) -> None:
        self._access = access
        self._inbox = inbox
        self._channels = channels
        self._silence = silence

    async def everything(self) -> None:
        """Running answers stop, and what waits is dropped, of all who have lost access. Raises
        `StoreError`."""
        for session_key in await self._inbox.open_sessions(tuple(self._channels)):
            newest: dict[str, tuple[InboxRow, InboundMessage]] = {}
            for row in await self._inbox.open_turns(session_key):
                message = readable(row.body)
                if message is not None:
                    newest[row.person] = (row, message)
            for row, message in newest.values():
                if await self._is_out(message):
                    await self.silence(row)

    async def one(self, message: InboundMessage, session_key: str) -> None:
        """The same for one that was stored while the rules changed. Raises `StoreError`."""
        if await self._is_out(message):
            for row in await self._inbox.open_turns(session_key):
                if row.person == message.sender.id:
                    await self.silence(row)

    async def _is_out(self, message: InboundMessage) -> bool:
        """Where the platform does not answer, nobody has lost anything yet: their next question meets
        that by itself."""
        verdict = await self._access.verdict(message.address, message.sender)
        return verdict not in ("yes", "unreadable")

    async def silence(self, row: InboxRow) -> None:
        """Of this row's person in its session."""
        channel = row.session_key.partition(":")[0]
        await self._access.stores.admissions.close_in(channel, row.person, row.session)
        self._silence.person_in(row.session_key, row.person)
        log.info("%s:%s has lost access, and is not answered", channel, row.person)
