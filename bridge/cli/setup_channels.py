"""The questions of `galata setup` about a channel: its secrets, checked with real calls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from bridge.cli.options import CommandFailed, say, tell
from bridge.cli.probe import probe_slack, probe_telegram
from bridge.cli.setup_answers import Endpoint
from bridge.cli.setup_earlier import Earlier
from bridge.cli.setup_secrets import Offer, ask_secret, given_offer, kept_offer
from bridge.configuration.environment import CHANNEL_VARIABLES
from channels.errors import ChannelError
from channels.slack.settings import SlackSettings
from channels.telegram.settings import TelegramSettings

_QUESTIONS = {
    "token": "Bot token from @BotFather",
    "bot_token": "Bot token of Slack (xoxb-...)",
    "app_token": "App-level token of Slack (xapp-...)",
    "signing_secret": "Signing secret of Slack",
}
_NEW = {"telegram": ("token",), "slack": ("bot_token", "app_token")}
_SLACK_STEPS = """\
1. https://api.slack.com/apps -> Create New App -> From a manifest: paste what
   `galata slack manifest` prints.
2. Install it to the workspace: OAuth & Permissions shows the bot token (xoxb-...).
3. Basic Information -> App-Level Tokens: one with connections:write (xapp-...).
"""


def ask_channel(name: str, earlier: Earlier | None, given: Mapping[str, str]) -> Endpoint:
    """Ask until the platform knows the channel's secrets. What the earlier configuration holds is
    kept by Enter, else what is in the variables `given` is taken. Raises `CommandFailed`."""
    section = earlier.section(("channels", name)) if earlier else {}
    offers: dict[str, Offer]
    if earlier and section:
        offers = {
            key: kept_offer(earlier.secret(("channels", name, key)))
            for key in _QUESTIONS
            if key in section
        }
    else:
        variables = CHANNEL_VARIABLES[name]
        offers = {key: given_offer(variables[key], given) for key in _NEW[name]}
        if address := given.get(variables["base_url"]):
            section["base_url"] = address
    if name == "slack" and not (earlier and earlier.has_channel(name)):
        say(_SLACK_STEPS)
    while True:
        secrets = {key: ask_secret(_QUESTIONS[key], offer) for key, offer in offers.items()}
        try:
            say(f"  fine: {_identify(name, {**section, **secrets})}")
        except ValidationError as error:
            tell(f"  {_fault(name, error)}")
        except ChannelError as error:
            tell(f"  {error}")
        else:
            return Endpoint(name, name, secrets, section.get("base_url"))


def _identify(name: str, settings: Mapping[str, Any]) -> str:
    """Who the bot of these settings is. Raises `ValidationError`, `ChannelError`."""
    if name == "telegram":
        bot = asyncio.run(probe_telegram(TelegramSettings.model_validate(settings)))
        return f"@{bot.username}"
    app = asyncio.run(probe_slack(SlackSettings.model_validate(settings)))
    return f"{app.name} in {app.team}"


def _fault(name: str, error: ValidationError) -> str:
    """What is wrong, without the value. Raises `CommandFailed` for what no answer can mend."""
    found = error.errors(include_input=False, include_url=False)[0]
    if found["loc"] == ("base_url",):
        raise CommandFailed(
            f"{CHANNEL_VARIABLES[name]['base_url']} is no address such as https://host/path"
        )
    return found["msg"].removeprefix("Value error, ")
