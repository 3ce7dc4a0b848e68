"""The app's manifest, as Slack takes it under "Create New App" -> "From a manifest"."""

from __future__ import annotations

from typing import Any

COMMAND = "/galata"

SCOPES = (
    "app_mentions:read",
    "channels:history",
    "channels:manage",
    "channels:read",
    "chat:write",
    "commands",
    "files:read",
    "files:write",
    "groups:history",
    "groups:read",
    "groups:write",
    "im:history",
    "im:write",
    "mpim:history",
    "mpim:read",
    "reactions:write",
    "usergroups:read",
    "users:read",
)
"""What the bot token must be able to do; `galata doctor` compares. `channels:manage` and `groups:write`
are for leaving a channel that an owner refuses."""

EVENTS = (
    "app_mention",
    "app_uninstalled",
    "channel_left",
    "group_left",
    "member_joined_channel",
    "message.channels",
    "message.groups",
    "message.im",
    "message.mpim",
    "tokens_revoked",
)
"""What the app hears of. That it was removed needs the scopes that end in `:read`."""


def manifest(name: str, *, url: str | None = None) -> dict[str, Any]:
    """The manifest of an app called `name` (35 characters at most) for Socket Mode, or with `url`
    for signed HTTP requests to that public address."""
    where = {} if url is None else {"request_url": url}
    command = {
        "command": COMMAND,
        "description": "Stop, begin anew, ask for the status",
        "usage_hint": "cancel | new | status | help",
        "should_escape": True,
    }
    return {
        "display_information": {"name": name[:35], "description": "An agent that stops at once"},
        "features": {
            "app_home": {
                "home_tab_enabled": False,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": name[:80], "always_online": True},
            "slash_commands": [command if url is None else command | {"url": url}],
        },
        "oauth_config": {"scopes": {"bot": list(SCOPES)}},
        "settings": {
            "event_subscriptions": where | {"bot_events": list(EVENTS)},
            "interactivity": where | {"is_enabled": True},
            "org_deploy_enabled": False,
            "socket_mode_enabled": url is None,
            "token_rotation_enabled": False,
        },
    }
