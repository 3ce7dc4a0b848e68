"""Without an owner nobody can use the bot: a one-time link makes the first one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping

from bridge.access import Access
from channels.base import Channel
from channels.errors import ChannelFailed, ChannelUnavailable
from memory.access.people import OWNER_LINK_LIFETIME, People

RETRY_S = 5.0
LOOK_S = 0.1  # between two looks at a channel that is not connected yet


def telegram_link(username: str, code: str) -> str:
    """The link that sends `/start CODE` to the bot."""
    return f"https://t.me/{username}?start={code}"


def show_link(link: str) -> str:
    """What is printed for a Telegram link: the sentence, the link, and a QR code of it."""
    import io

    import segno

    picture = io.StringIO()
    segno.make(link, error="l").terminal(out=picture, border=2, compact=True)
    minutes = int(OWNER_LINK_LIFETIME.total_seconds() // 60)
    return (
        f"Whoever opens this link first, within {minutes} minutes, owns the bot:\n"
        f"  {link}\n\n{picture.getvalue()}"
    )


def show_code(code: str) -> str:
    """What is printed where there are no links: send the code as a direct message."""
    minutes = int(OWNER_LINK_LIFETIME.total_seconds() // 60)
    return (
        f"Whoever sends this to the bot as a direct message in Slack first, within {minutes} "
        f"minutes, owns it:\n  {code}\n"
    )


async def offer_ownership(access: Access, people: People, channels: Mapping[str, Channel]) -> None:
    """Print a one-time link for each channel that has no owner, as soon as it works."""
    without = {name: channel for name, channel in channels.items() if not access.has_owner(name)}
    await asyncio.gather(*(_offer(people, name, channel) for name, channel in without.items()))


async def _offer(people: People, name: str, channel: Channel) -> None:
    if name == "telegram":
        username = await _telegram_name(channel)
        if username is not None:
            _print(show_link(telegram_link(username, await people.create_owner_link(name))))
        return
    # Never, where a token is refused: the channel itself reports that.
    while not channel.receiving:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(LOOK_S)
    _print(show_code(await people.create_owner_link(name)))


async def _telegram_name(channel: Channel) -> str | None:
    """The bot's name, asked until Telegram answers; None when the token is refused (the channel
    itself reports that)."""
    from channels.telegram.channel import TelegramChannel

    while isinstance(channel, TelegramChannel):
        try:
            return (await channel.identify()).username
        except ChannelFailed:
            return None
        except ChannelUnavailable:
            await asyncio.sleep(RETRY_S)
    return None


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - to whoever started it
