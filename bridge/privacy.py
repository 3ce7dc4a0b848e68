"""`/privacy`: what is stored and for how long, who reads it, and what a person can do about it."""

from __future__ import annotations

from bridge.answers import Handlers
from bridge.limits.keys import MODEL
from bridge.texts import Say
from bridge.turn_plan import TurnServices
from channels.base import InboundMessage
from memory.conversations import SessionPlace


class PrivacyCommands:
    """What people ask about their data."""

    def __init__(self, services: TurnServices) -> None:
        self._services = services

    @property
    def commands(self) -> Handlers:
        """`/privacy`."""
        return {"privacy": self.show}

    async def show(self, message: InboundMessage, _place: SessionPlace, say: Say) -> str:
        """Everything at once, for whoever asks."""
        return await self.tell(message, say)

    async def tell(self, message: InboundMessage, say: Say, *, stranger: bool = False) -> str:
        """`stranger`: somebody without access, of whom nothing is kept yet."""
        storing, address = self._services.storing, message.address
        policy = self._services.policies.of(address, message.sender.id)
        keep, days = storing.keep, storing.backup_days
        companies = storing.companies(policy[MODEL])
        where = "private" if address.private else "group"
        parts = [
            say("privacy_stranger") if stranger else "",
            say(
                "privacy_stored",
                messages=keep.messages_days,
                pictures=keep.attachments_days,
                transcripts=keep.transcripts_days,
                usage=keep.usage_days,
            ),
            "" if address.private else say("privacy_group_rest"),
            say("privacy_backups", days=days) if days else say("privacy_no_backups"),
            say("privacy_model", companies=say("list_comma").join(companies))
            if companies
            else say("privacy_local_model"),
            say(f"privacy_who_{where}"),
            say("privacy_commands"),
        ]
        return "\n\n".join(filter(None, parts))
