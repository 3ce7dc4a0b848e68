"""Where Slack's history has to be read after a start or a lost connection."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice

from channels.errors import NotStored
from channels.slack.catch_up import KnownPlace
from memory.chats import ChatPlace, Chats
from memory.errors import StoreError
from memory.unread import KnownPlace as Stored
from memory.unread import UnreadPlaces

CHANNEL = "slack"


class SlackPlaces:
    """`channels.slack.catch_up.Places`, of the store."""

    def __init__(self, chats: Chats, unread: UnreadPlaces) -> None:
        self._chats = chats
        self._unread = unread

    async def known(self, team: str, most: int) -> list[KnownPlace]:
        """Direct messages and threads: of a channel itself nothing is read."""
        places = (
            KnownPlace(one.chat, one.thread, one.newest)
            for one in await self._unread.known(CHANNEL, team)
            if not self._chats.is_gone(ChatPlace(CHANNEL, team, one.chat))
            and (one.thread is not None or one.chat.startswith("D"))
        )
        return list(islice(places, most))

    async def leave(self, team: str, unread: Sequence[KnownPlace]) -> None:
        """Raises `NotStored`."""
        try:
            await self._unread.leave(
                CHANNEL, team, [Stored(one.chat, one.thread, one.newest) for one in unread]
            )
        except StoreError as error:
            raise NotStored(str(error)) from error

    async def restored_at(self) -> datetime | None:
        """When this folder was made of a backup."""
        return await self._unread.restored_at()
