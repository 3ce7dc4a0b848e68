"""What a platform knows of the bot's place among people: who belongs where, and how to leave.

Rights hang on the answers, so that each method says None where the platform does not answer; none of
them raises.
"""

from __future__ import annotations

from typing import Literal, Protocol

from channels.base import Address

Standing = Literal["full", "guest", "foreign", "gone"]
"""What a person is to the workspace that the bot serves: a full member, a guest of it, somebody of
another organisation, or no member any more. Where there are no workspaces, everybody is `full`."""


class Membership(Protocol):
    """One bot's. What is kept is kept for an hour at most."""

    async def standing(self, to: Address, person: str) -> Standing | None:
        """What the person is to the bot's workspace."""
        ...

    async def is_shared(self, to: Address) -> bool | None:
        """Whether people of other organisations read what is written in this chat."""
        ...

    async def is_member(self, to: Address, person: str) -> bool | None:
        """Whether the person is in this chat; an empty `chat`: a full member of the workspace."""
        ...

    async def is_in(self, to: Address, person: str) -> bool | None:
        """Whether the person reads what is written in this chat: asked anew."""
        ...

    async def title(self, to: Address) -> str | None:
        """What the chat calls itself: untrusted text."""
        ...

    async def leave(self, to: Address) -> bool:
        """Leave the chat. False where that did not work, as without the right to."""
        ...

    async def can_write_to(self, person: str) -> bool | None:
        """Whether the bot may write to that person in private. On Telegram nobody can be written to
        before they have written first."""
        ...

    def start_link(self, code: str) -> str | None:
        """A link that opens the bot's private chat and sends it `/start CODE`; None where there are
        none, and the code itself is sent instead."""
        ...


class Alone:
    """For a channel without other people: the terminal."""

    async def standing(self, to: Address, person: str) -> Standing | None:
        """Whoever sits there."""
        return "full"

    async def is_shared(self, to: Address) -> bool | None:
        """Nobody else reads it."""
        return False

    async def is_member(self, to: Address, person: str) -> bool | None:
        """There is one person."""
        return True

    async def is_in(self, to: Address, person: str) -> bool | None:
        """There is one person."""
        return True

    async def title(self, to: Address) -> str | None:
        """It has none."""
        return None

    async def leave(self, to: Address) -> bool:
        """There is nothing to leave."""
        return False

    async def can_write_to(self, person: str) -> bool | None:
        """It is the only thing that it does."""
        return True

    def start_link(self, code: str) -> str | None:
        """None."""
        return None
