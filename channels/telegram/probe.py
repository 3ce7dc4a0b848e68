"""Requests to Telegram, to see whether a token works, and whether groups tell who is in them; for
`galata setup` and `galata doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from telegram import Bot, ChatMember
from telegram.error import TelegramError

from channels.telegram.api import build_api
from channels.telegram.errors import Meaning, listening_failed, meaning_of
from channels.telegram.parse import BotIdentity
from channels.telegram.settings import TelegramSettings


async def identify(settings: TelegramSettings) -> BotIdentity:
    """Who the bot of these settings is. Raises `ChannelFailed` (the token is refused) and
    `ChannelUnavailable`."""
    api = build_api(settings)
    try:
        user = await api.bot.get_me()
    except TelegramError as error:
        raise listening_failed(error) from None
    finally:
        await api.aclose()
    return BotIdentity(user.id, user.username or "", bool(user.can_read_all_group_messages))


Silent = Literal["outside", "hidden", "unknown"]
"""Why a bot is not told who is in a group: it is not there itself; the members are hidden, and it is no
administrator; or Telegram does not answer."""


async def silent_groups(settings: TelegramSettings) -> Sequence[tuple[str, Silent]]:
    """Those of `members_of` whose members the bot is not told, with why."""
    api = build_api(settings)
    found: list[tuple[str, Silent]] = []
    try:
        for group in settings.members_of:
            why = await _silent(api.bot, int(group))
            if why is not None:
                found.append((group, why))
    finally:
        await api.aclose()
    return found


async def _silent(bot: Bot, group: int) -> Silent | None:
    try:
        itself = await bot.get_chat_member(group, (await bot.get_me()).id)
        if itself.status in (ChatMember.OWNER, ChatMember.ADMINISTRATOR):
            return None
        if itself.status in (ChatMember.LEFT, ChatMember.BANNED):
            return "outside"
        return "hidden" if (await bot.get_chat(group)).has_hidden_members else None
    except TelegramError as error:
        return "outside" if meaning_of(error) is Meaning.UNREACHABLE else "unknown"
