"""`galata config check` and `galata config show`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bridge.cli.options import FINE, CommandFailed, Options, say, tell

if TYPE_CHECKING:
    from bridge.config import Config
    from bridge.limits.files import PolicyFiles
    from bridge.limits.policy import Policy
    from channels.base import Address


def check(options: Options) -> int:
    """Say that the configuration and all chats' limits are fine; their faults come out as
    `CommandFailed`."""
    from bridge.configuration.limit_layers import known_of
    from bridge.limits.files import PolicyFiles
    from memory.policies import NothingStored

    config = options.load_config()
    faults = PolicyFiles(options.data, NothingStored(), known_of(config)).check()
    if faults:
        raise CommandFailed("\n".join(faults))
    say(f"{options.config or 'environment'}: fine")
    return FINE


def show(options: Options) -> int:
    """The configuration as it is understood; with a chat what holds there, and where it was set."""
    config = options.load_config()
    if options.chat:
        asyncio.run(_show_chat(options, config))
        return FINE
    from bridge.config import masked

    say(masked(config).rstrip())
    return FINE


async def _show_chat(options: Options, config: Config) -> None:
    from bridge.configuration.limit_layers import layers_of
    from bridge.limits.files import located
    from bridge.limits.keys import COST_PER_PERSON, KEYS, TOKENS_PER_DAY
    from bridge.limits.policies import ChatPolicies, places_of
    from bridge.limits.policy import CEILINGS
    from memory.errors import StoreError

    address = _address(options)
    try:
        async with _files(options, config) as files:
            policies = ChatPolicies(
                layers_of(config), files, lambda found: [found.chat], _no_profile
            )
            await policies.read(address)
    except StoreError as error:
        raise CommandFailed(str(error)) from None
    policy = policies.of(address, options.person)
    for key in KEYS:
        found = policy.effective[key.name]
        origin = found.origin
        if origin == CEILINGS and found.wished is not None:
            origin += f" (wished: {key.show(found.wished)})"
        shown = key.show(found.value) or "-"
        if key is COST_PER_PERSON and found.value is None and not address.private:
            shown, origin = _third(policy) or (shown, origin)
        if key is TOKENS_PER_DAY:
            origin += _share_of_tokens(policy, address)
        say(f"{key.name}: {shown}  # {origin}")
    for place in places_of(address):
        for line in located(files.path(place), files.state(place).pending):
            tell(f"{line}; what held before holds on")


def _third(policy: Policy) -> tuple[str, str] | None:
    """What one person may use of a group's day, where nothing else is set, and where it comes from."""
    from bridge.limits.caps import SHARE
    from bridge.limits.keys import COST_PER_DAY
    from bridge.limits.kinds import usd_text

    day = policy[COST_PER_DAY]
    return None if day is None else (usd_text(day // SHARE), f"a third of {COST_PER_DAY.name}")


def _share_of_tokens(policy: Policy, address: Address) -> str:
    """What one person may use of a group's tokens, for which no key of its own is there."""
    from bridge.limits.caps import caps_of

    caps = caps_of(policy, private=address.private)
    mine = [cap.limit for cap in caps if cap.measure == "person_tokens"]
    return f" (one person: {mine[0]}, a third)" if mine else ""


async def _no_profile(_channel: str, _account: str, _chat: str) -> None:
    """What a person's profile says is not told here."""


@asynccontextmanager
async def _files(options: Options, config: Config) -> AsyncGenerator[PolicyFiles]:
    """With the last good texts of the database, where there is one."""
    from bridge.configuration.limit_layers import known_of
    from bridge.limits.files import PolicyFiles
    from bridge.operation.data_folder import DATABASE
    from memory.database import Database
    from memory.policies import NothingStored, PolicyStore

    path, known = options.data / DATABASE, known_of(config)
    if not path.is_file():
        yield PolicyFiles(options.data, NothingStored(), known)
        return
    database = await Database.open_beside(path)
    try:
        yield PolicyFiles(options.data, PolicyStore(database), known)
    finally:
        await database.close()


def _address(options: Options) -> Address:
    from channels.base import Address

    channel, _, chat = options.chat.partition(":")
    if not channel or not chat:
        raise CommandFailed("--chat must be a channel and an id, such as telegram:-1001234567890")
    # Ids of groups are negative in Telegram, those of direct messages begin with D in Slack.
    private = chat.startswith("D") if channel == "slack" else not chat.startswith("-")
    return Address(channel, "", chat, options.topic or None, private=private)
