"""One request to Telegram, to see whether a token works; for `galata setup` and `galata doctor`."""

from __future__ import annotations

from telegram.error import TelegramError

from channels.telegram.api import build_api
from channels.telegram.errors import listening_failed
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
