"""Who is in a Telegram group, as far as a bot is told; and leaving one."""

from __future__ import annotations

import logging
from collections.abc import Callable

from telegram import Bot, ChatMember, ChatMemberRestricted
from telegram.error import TelegramError

from channels.base import Address
from channels.membership import Standing
from channels.telegram.errors import Meaning, meaning_of, name_of

log = logging.getLogger(__name__)

_IN = (ChatMember.OWNER, ChatMember.ADMINISTRATOR, ChatMember.MEMBER)


class TelegramMembership:
    """`username()`: the bot's, None before the first connection."""

    def __init__(self, bot: Bot, username: Callable[[], str | None]) -> None:
        self._bot = bot
        self._username = username

    async def standing(self, to: Address, person: str) -> Standing | None:
        """Telegram has no workspaces."""
        return "full"

    async def is_shared(self, to: Address) -> bool | None:
        """Nor organisations."""
        return False

    async def is_member(self, to: Address, person: str) -> bool | None:
        """Asked anew. Where the members are hidden, a bot is told only as an administrator."""
        try:
            member = await self._bot.get_chat_member(int(to.chat), int(person))
        except TelegramError as error:
            log.warning(
                "whether %s is in chat %s is not known: %s", person, to.chat, name_of(error)
            )
            return None
        if isinstance(member, ChatMemberRestricted):
            return member.is_member
        return member.status in _IN

    async def is_in(self, to: Address, person: str) -> bool | None:
        """The same."""
        return await self.is_member(to, person)

    async def title(self, to: Address) -> str | None:
        """The group's title."""
        try:
            return (await self._bot.get_chat(int(to.chat))).title
        except TelegramError as error:
            log.info("no title of chat %s: %s", to.chat, name_of(error))
            return None

    async def leave(self, to: Address) -> bool:
        """Also true where the bot is out already."""
        try:
            return await self._bot.leave_chat(int(to.chat))
        except TelegramError as error:
            log.warning("chat %s could not be left: %s", to.chat, name_of(error))
            return meaning_of(error) is Meaning.UNREACHABLE

    async def can_write_to(self, person: str) -> bool | None:
        """Whether Telegram knows a private chat with the person."""
        try:
            await self._bot.get_chat(int(person))
        except TelegramError as error:
            return False if meaning_of(error) is Meaning.UNREACHABLE else None
        return True

    def start_link(self, code: str) -> str | None:
        """`https://t.me/…?start=CODE`."""
        username = self._username()
        return None if username is None else f"https://t.me/{username}?start={code}"
