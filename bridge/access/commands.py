"""What owners do in a chat: `/approve`, `/invite`, `/people`, `/revoke`, and the buttons under their
questions."""

from __future__ import annotations

from collections.abc import Mapping

from bridge.access.groups import GROUP_IN, GROUP_OUT, GroupDoor
from bridge.access.invites import InviteLinks
from bridge.access.pairing import KEEP_OUT, LET_IN, PairingRequests, someone
from bridge.access.people import MOST_LINES, Revoking, roster
from bridge.access.policy import Access
from bridge.answers import Answer, Handler, Handlers
from bridge.texts import Say
from channels.base import Channel, InboundMessage
from memory.conversations import SessionPlace


class AccessCommands:
    """Each checks that an owner does it, by id, when it is done."""

    def __init__(
        self,
        access: Access,
        pairing: PairingRequests,
        invites: InviteLinks,
        groups: GroupDoor,
        revoking: Revoking,
        channels: Mapping[str, Channel],
    ) -> None:
        self._access = access
        self._pairing = pairing
        self._invites = invites
        self._groups = groups
        self._revoking = revoking
        self._channels = channels

    @property
    def commands(self) -> Handlers:
        """By name."""
        handlers = {
            "approve": self._approve,
            "invite": self._invite,
            "people": self._people,
            "revoke": self._revoke,
        }
        return {name: self._for_owners(handler) for name, handler in handlers.items()}

    @property
    def presses(self) -> Handlers:
        """By the action of the button."""
        actions = (LET_IN, KEEP_OUT, GROUP_IN, GROUP_OUT)
        return dict.fromkeys(actions, self._for_owners(self._press))

    def _for_owners(self, handler: Handler) -> Handler:
        async def checked(
            message: InboundMessage, place: SessionPlace, say: Say
        ) -> Answer | str | None:
            if not self._is_owner(message):
                return say("owners_only")
            return await handler(message, place, say)

        return checked

    def _is_owner(self, message: InboundMessage) -> bool:
        return self._access.is_owner(message.address.channel, message.sender.id)

    async def _approve(self, message: InboundMessage, _place: SessionPlace, say: Say) -> str:
        code = _args(message)
        if not code:
            return say("approve_how")
        return (await self._pairing.approve(code, str(someone(message)), say)).text

    async def _invite(self, message: InboundMessage, _place: SessionPlace, say: Say) -> str:
        return await self._invites.make(message, self._channels[message.address.channel], say)

    async def _people(self, _message: InboundMessage, _place: SessionPlace, say: Say) -> str:
        access = self._access
        return await roster(access.stores, access.all_rules, access.owners(), say, MOST_LINES)

    async def _revoke(self, message: InboundMessage, _place: SessionPlace, say: Say) -> str:
        by = str(someone(message))
        home = message.address.channel
        return (await self._revoking.revoke(_args(message), home, by, say)).text

    async def _press(self, message: InboundMessage, _place: SessionPlace, say: Say) -> Answer:
        action = message.press.action if message.press else ""
        if action in (LET_IN, KEEP_OUT):
            return await self._pairing.press(message, say, allow=action == LET_IN)
        return await self._groups.press(message, say, allow=action == GROUP_IN)


def _args(message: InboundMessage) -> str:
    return message.command.args.strip() if message.command else ""
