"""Where Slack's history has to be read after a start or a lost connection."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from bridge.limits.keys import ANSWER_WHEN
from bridge.limits.kinds import Known
from bridge.limits.policies import ChatPolicies, places_of
from bridge.limits.reading import read
from channels.base import Address
from channels.errors import NotStored
from channels.slack.catch_up import KnownPlace
from memory.chats.reach import ChatPlace, Chats
from memory.connected import Connected
from memory.errors import StoreError
from memory.policies import PolicyPlace, PolicyStore
from memory.unread import KnownPlace as Stored
from memory.unread import UnreadPlaces

CHANNEL = "slack"
_EVERY = "every_message"
_MOST_CHANGES = 50  # of one place within a minute

log = logging.getLogger(__name__)


class SlackPlaces:
    """`channels.slack.catch_up.Places`, of the store."""

    def __init__(
        self,
        chats: Chats,
        policies: ChatPolicies,
        changes: PolicyStore,
        unread: UnreadPlaces,
        connected: Connected,
    ) -> None:
        self._chats = chats
        self._policies = policies
        self._changes = changes
        self._unread = unread
        self._connected = connected
        self._started = datetime.now(UTC)

    async def known(self, team: str, most: int) -> list[KnownPlace]:
        """Direct messages and threads, and channels in which each message is a question. What was said
        while the bot was connected was judged when it was said, and what the time between a backup and
        its restore knew of is not known: only what came later is wanted without a mention."""
        moments = (await self._connected.until(CHANNEL, team), await self._unread.restored_at())
        since = None if moments[0] is None else max(filter(None, moments))
        found: list[KnownPlace] = []
        channels: dict[str, None] = {}
        for one in await self._unread.known(CHANNEL, team):
            if len(found) == most:
                break
            if self._chats.is_gone(ChatPlace(CHANNEL, team, one.chat)):
                continue
            if one.chat.startswith("D"):
                found.append(KnownPlace(one.chat, one.thread, one.newest))
                continue
            channels[one.chat] = None
            if one.thread is not None:
                every = await self._answers_all(team, one.chat, one.thread, since)
                found.append(KnownPlace(one.chat, one.thread, one.newest, every))
        of_all = [(chat, await self._answers_all(team, chat, None, since)) for chat in channels]
        return [*found, *(KnownPlace(chat, None, at, at) for chat, at in of_all if at is not None)]

    async def leave(self, team: str, unread: Sequence[KnownPlace]) -> None:
        """Raises `NotStored`."""
        try:
            await self._unread.leave(
                CHANNEL, team, [Stored(one.chat, one.thread, one.newest) for one in unread]
            )
        except StoreError as error:
            raise NotStored(str(error)) from error

    async def connected(self, team: str, at: datetime) -> None:
        """Remember it for the next start."""
        try:
            await self._connected.note(CHANNEL, team, at)
        except StoreError as error:
            log.warning("until when Slack was connected is not stored: %s", error)

    async def restored_at(self) -> datetime | None:
        """When this folder was made of a backup."""
        return await self._unread.restored_at()

    async def _answers_all(
        self, team: str, chat: str, thread: str | None, since: datetime | None
    ) -> datetime | None:
        """From when on, at or after `since`, each message there is a question; None: none is."""
        if since is None:
            return None
        address = Address(CHANNEL, team, chat, thread, private=False)
        await self._policies.read(address)
        if self._policies.of(address, "")[ANSWER_WHEN] != _EVERY:
            return None
        return max([await self._begun(place, since) for place in places_of(address)])

    async def _begun(self, place: PolicyPlace, since: datetime) -> datetime:
        """When the lines of the place began to say so, if that was after `since` and before this start:
        the connection is noted once a minute, and what was said until then was judged by others."""
        for change in await self._changes.changes(place, _MOST_CHANGES):
            at = datetime.fromisoformat(change.at)
            if at <= since:
                break
            says, said = (
                read(text.encode(), Known()).values.get(ANSWER_WHEN.name) == _EVERY
                for text in (change.after, change.before)
            )
            if at < self._started and says and not said:
                return at
        return since
