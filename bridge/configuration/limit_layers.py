"""The configuration's part of every policy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agent.tools import Tool
from bridge.limits.keys import CONVERSATION, LANGUAGE, MODEL, TIMEZONE, WHO_CAN_STOP
from bridge.limits.kinds import Known
from bridge.limits.policies import PolicyLayers
from bridge.limits.sections import values_of
from bridge.tools import tool_names

if TYPE_CHECKING:
    from bridge.configuration.settings import Config


def known_of(config: Config, more_tools: Iterable[Tool] = ()) -> Known:
    """What a chat's lines may name."""
    if config.local_model:
        return Known((), tool_names(more_tools), ("embedded",))
    usable = dict.fromkeys((config.model, *config.fallback_models, *config.models_for_chats))
    notes = config.memory.notes_model  # a chat pays for its notes
    paid = usable if notes is None else {**usable, notes: None}
    unpriced = tuple(name for name in paid if config.models[name].price is None)
    return Known(tuple(usable), tool_names(more_tools), unpriced)


def layers_of(config: Config) -> PolicyLayers:
    """What the configuration sets at its top, in its sections of limits, and as ceilings."""
    channels = {
        name: values_of(section.defaults)
        for name, section in (
            ("telegram", config.channels.telegram),
            ("slack", config.channels.slack),
        )
        if section is not None
    }
    zone = {TIMEZONE.name: config.timezone} if config.zone_is_known else {}
    return PolicyLayers(
        top={
            **zone,
            LANGUAGE.name: config.language,
            MODEL.name: config.model,
            CONVERSATION.name: config.conversation,
            WHO_CAN_STOP.name: config.who_can_stop,
        },
        defaults=values_of(config.defaults),
        channels=channels,
        people={name: values_of(section) for name, section in config.people.items()},
        ceilings=values_of(config.ceilings),
    )
