"""The commands with all that carries them out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo

from agent.cancel import CancelTokenRegistry
from bridge.access import Access
from bridge.access.door import Door
from bridge.chats.erasing import Eraser
from bridge.chats.holds import Holds
from bridge.chats.private_talks import PrivateTalks
from bridge.chats.rights import Rights
from bridge.commands.dispatch import Commands
from bridge.commands.erase import EraseCommands
from bridge.commands.memory import MemoryCommands
from bridge.commands.memory_presses import MemoryPresses
from bridge.commands.privacy import PrivacyCommands
from bridge.commands.usage import UsageCommand
from bridge.lanes import Lanes
from bridge.limits.changes import Changes
from bridge.limits.chat_commands import ChatCommands
from bridge.limits.command import limits_command
from bridge.limits.rights import LimitRights
from bridge.models.chat_models import ModelChoice
from bridge.runs.outage import Outages
from bridge.runs.turn_plan import TurnServices
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
    holds: Holds,
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
        policies=policies,
        store=services.limits,
        usage=services.usage,
        inbox=services.inbox,
        dialogues=services.dialogues,
        rights=limit_rights,
        changes=changes,
        channels=channels,
    )
    return Commands(
        timezone=timezone,
        services=services,
        access=access,
        models=models,
        lanes=lanes,
        holds=holds,
        outages=outages,
        tokens=tokens,
        limits=limits,
        chat_commands=ChatCommands(
            policies, changes, limit_rights, policies.files.known.models or ()
        ),
        usage=UsageCommand(services, rights, names=usage_names),
        memory=memory,
        memory_presses=MemoryPresses(services, rights, memory),
        privacy=PrivacyCommands(services, rights, channels),
        erasing=EraseCommands(eraser, services, rights),
        rights=rights,
        talks=talks,
        letting_in=door.commands,
        desk=door.desk,
        owner_came=door.owner_came,
    )
