"""The chat platforms: one line each. Their libraries are imported only where they are used."""

from __future__ import annotations

from collections.abc import Mapping

from bridge.access import ChannelAccess
from bridge.commands.table import MENU
from bridge.config import Config
from bridge.limits.policies import ChatPolicies
from bridge.texts import FALLBACK, Texts
from channels.base import Channel
from memory.chats.reach import Chats
from memory.connected import Connected
from memory.database import Database
from memory.policies import PolicyStore
from memory.unread import UnreadPlaces


def build_channels(
    config: Config, texts: Texts, database: Database, chats: Chats, policies: ChatPolicies
) -> dict[str, Channel]:
    """The channels that the configuration switches on, by name."""
    channels: dict[str, Channel] = {}
    if config.channels.telegram is not None:
        from channels.telegram.channel import TelegramChannel

        channels["telegram"] = TelegramChannel(config.channels.telegram, menu=_menus(texts))
    if config.channels.slack is not None:
        from bridge.chats.places import SlackPlaces
        from channels.slack.channel import SlackChannel

        unread, connected = UnreadPlaces(database), Connected(database)
        places = SlackPlaces(chats, policies, PolicyStore(database), unread, connected)
        channels["slack"] = SlackChannel(config.channels.slack, places=places)
    return channels


def access_rules(config: Config) -> dict[str, ChannelAccess]:
    """Who may talk and set limits, by channel. Whoever sits at the terminal runs the bot and is its
    owner."""
    rules = {"console": ChannelAccess(terminal=True)}
    telegram, slack = config.channels.telegram, config.channels.slack
    if telegram is not None:
        rules["telegram"] = ChannelAccess(
            frozenset(telegram.owners),
            frozenset(telegram.allowed),
            open=telegram.access == "open",
            members_of=frozenset(telegram.members_of),
        )
    if slack is not None:
        rules["slack"] = ChannelAccess(
            frozenset(slack.owners),
            frozenset(slack.allowed),
            open=slack.access == "open",
            members_of=frozenset({""} if slack.workspace_members else ()),
            guests=slack.guests,
            other_organizations=slack.other_organizations,
            shared_channels=slack.shared_channels,
            managers=frozenset(slack.managers),
        )
    return rules


def _menus(texts: Texts) -> Mapping[str | None, list[tuple[str, str]]]:
    """The command menu in each language; English for all others."""
    return {
        None if language == FALLBACK else language: [
            (name, texts.say(language, f"menu_{name}")) for name in MENU
        ]
        for language in texts.catalogue
    }
