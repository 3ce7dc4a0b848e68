"""Who belongs to the Slack workspace, and which channels other organisations read along in."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import Any, cast

from channels.base import Address
from channels.membership import Standing
from channels.slack.api import SlackApi
from channels.slack.errors import FAILURES, code_of, is_outside
from channels.slack.managers import is_in_channel
from channels.slack.people import People

log = logging.getLogger(__name__)

_KEPT = 2_000  # channels
_KNOWN_S = 3600.0
_WAIT_S = 1.0  # Slack wants its acknowledgement within three seconds
_MEMBERS_WAIT_S = 5.0  # for all pages; nothing that is acknowledged waits for it


class SlackMembership:
    """Of one app in one workspace."""

    def __init__(self, api: SlackApi, people: People) -> None:
        self._api = api
        self._people = people
        self._shared: OrderedDict[str, tuple[bool, float]] = OrderedDict()

    async def standing(self, to: Address, person: str) -> Standing | None:
        """As users.info tells it, kept for an hour."""
        return await self._people.standing(person, to.account)

    async def is_shared(self, to: Address) -> bool | None:
        """As conversations.info tells it, kept for an hour. A direct message has two people."""
        if to.private:
            return False
        now = asyncio.get_running_loop().time()
        known = self._shared.get(to.chat)
        if known is not None and known[1] > now:
            return known[0]
        channel = await self._info(to.chat)
        shared = None if channel is None else channel.get("is_ext_shared")
        if not isinstance(shared, bool):
            return None
        self._shared[to.chat] = (shared, now + _KNOWN_S)
        self._shared.move_to_end(to.chat)
        while len(self._shared) > _KEPT:
            self._shared.popitem(last=False)
        return shared

    async def is_member(self, to: Address, person: str) -> bool | None:
        """Of the workspace: Slack's channels let nobody in."""
        standing = await self.standing(to, person)
        return None if standing is None else standing == "full"

    async def is_in(self, to: Address, person: str) -> bool | None:
        """Of the channel, as conversations.members tells it."""
        try:
            async with asyncio.timeout(_MEMBERS_WAIT_S):
                return await is_in_channel(self._api, to.chat, person)
        except FAILURES as error:
            log.warning("who is in channel %s is not known: %s", to.chat, code_of(error))
            return None

    async def title(self, to: Address) -> str | None:
        """The channel's name."""
        channel = await self._info(to.chat)
        name = None if channel is None else channel.get("name")
        return f"#{name}" if name else None

    async def leave(self, to: Address) -> bool:
        """Needs `channels:manage`, in private channels `groups:write`. True where it is out already."""
        try:
            await self._api.write("conversations.leave", {"channel": to.chat})
        except FAILURES as error:
            log.warning("channel %s could not be left: %s", to.chat, code_of(error))
            return is_outside(error)
        return True

    async def can_write_to(self, person: str) -> bool | None:
        """A bot may begin."""
        return True

    def start_link(self, code: str) -> str | None:
        """Slack has none."""
        return None

    async def _info(self, channel: str) -> dict[str, Any] | None:
        try:
            async with asyncio.timeout(_WAIT_S):
                answer = await self._api.read("conversations.info", {"channel": channel})
        except FAILURES as error:
            log.warning("nothing is known of channel %s: %s", channel, code_of(error))
            return None
        found: Any = answer.get("channel")
        return cast("dict[str, Any]", found) if isinstance(found, dict) else None
