"""The commands with all that carries them out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo

from agent.cancel import CancelTokenRegistry
from bridge.access import Access
from bridge.access.door import Door
from bridge.chat_models import ModelChoice
from bridge.commands import Commands
from bridge.erase_commands import EraseCommands
from bridge.erasing import Eraser
from bridge.lanes import Lanes
from bridge.limits.changes import Changes
from bridge.limits.chat_commands import ChatCommands
from bridge.limits.command import limits_command
from bridge.limits.rights import LimitRights
from bridge.memory_commands import MemoryCommands
from bridge.memory_presses import MemoryPresses
from bridge.outage import Outages
from bridge.privacy import PrivacyCommands
from bridge.private_talks import PrivateTalks
from bridge.rights import Rights
from bridge.turn_plan import TurnServices
from bridge.usage_command import UsageCommand
from channels.base import Channel


def build_commands(
    timezone: tzinfo,
    services: TurnServices,
    access: Access,
    models: ModelChoice,
    channels: Mapping[str, Channel],
    lanes: Lanes,
    outages: Outages,
    tokens: CancelTokenRegistry,
    talks: PrivateTalks,
    eraser: Eraser,
    door: Door,
    *,
    usage_names: bool,
) -> Commands:
    """`usage_names`: /usage tells admins who has used how much."""
    policies = services.policies
    rights = Rights(access, channels)
    memory = MemoryCommands(services, rights, talks)
    changes = Changes(policies, services.limits, access)
    limit_rights = LimitRights(access, channels, services.people, policies)
    limits = limits_command(
        policies,
        services.limits,
        services.usage,
        services.inbox,
        services.dialogues,
        limit_rights,
        changes,
        channels,
    )
    return Commands(
        timezone,
        services,
        access,
        models,
        lanes,
        outages,
        tokens,
        limits,
        ChatCommands(policies, changes, limit_rights, policies.files.known.models or ()),
        UsageCommand(services, rights, names=usage_names),
        memory,
        MemoryPresses(services, rights, memory),
        PrivacyCommands(services, rights, channels),
        EraseCommands(eraser, services, rights),
        rights,
        talks,
        door.commands,
        door.desk,
        door.owner_came,
    )
