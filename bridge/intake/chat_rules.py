"""What holds where a message was written, for whoever wrote it."""

from __future__ import annotations

from bridge.chats.private_talks import PrivateTalks
from bridge.limits.keys import CONVERSATION, LANGUAGE
from bridge.limits.policies import ChatPolicies, is_quiet
from bridge.limits.policy import Policy
from bridge.session import session_of
from channels.base import InboundMessage
from memory.conversations import SessionPlace


class ChatRules:
    """As of the last read of the chat's policies."""

    def __init__(self, policies: ChatPolicies) -> None:
        self._policies = policies

    def of(self, message: InboundMessage) -> Policy:
        """All that is set for the sender there."""
        return self._policies.of(message.address, message.sender.id)

    def language(self, message: InboundMessage) -> str | None:
        """That of the chat; None where each person's own counts."""
        language = self.of(message)[LANGUAGE]
        return None if language == "auto" else language

    def is_quiet(self, message: InboundMessage) -> bool:
        """Whether the chat wants no sound now."""
        return is_quiet(self.of(message))

    def place(self, message: InboundMessage, talks: PrivateTalks) -> SessionPlace:
        """The session of the message."""
        usual = session_of(message.address, message.sender.id, self.of(message)[CONVERSATION])
        return talks.place(message.address, usual)
