"""A request to Slack for each token, to see whether they work; for `galata setup` and `doctor`."""

from __future__ import annotations

from channels.slack.api import BotIdentity, SlackApi
from channels.slack.manifest import SCOPES
from channels.slack.settings import SlackSettings


async def identify(settings: SlackSettings) -> BotIdentity:
    """Who the app of these settings is: `auth.test`, and `apps.connections.open` where there is an
    app token. Raises `ChannelFailed` (a token is refused) and `ChannelUnavailable`."""
    api = SlackApi(settings)
    try:
        identity = await api.identify()
        if settings.app_token is not None:
            await api.open_connection()
        return identity
    finally:
        await api.aclose()


def missing_scopes(identity: BotIdentity) -> tuple[str, ...]:
    """The scopes that the manifest asks for and the bot token lacks."""
    return tuple(scope for scope in SCOPES if scope not in identity.scopes)
