"""The time zone of a chat where neither the configuration nor a profile says it: asked for once in a
private chat, when it first matters; a group, where no one person can say it, is told once that its
days are those of UTC, and who can change that."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from agent.messages import Message
from bridge.limits.chat_commands import ZONE
from bridge.limits.keys import TIMEZONE
from bridge.limits.policy import BUILT_IN, Policy
from bridge.runs.turn_plan import TurnPlan, TurnServices
from bridge.texts import Say
from bridge.tools import CurrentTime
from channels.base import Button, InboundMessage
from memory.errors import StoreError

log = logging.getLogger(__name__)

_ONCE = timedelta(days=36_500)
_UTC = "UTC"
# Where most people live whose client speaks a language: a guess, to be pressed or not.
_NEAR: Final = {
    "ar": ("Africa/Cairo", "Asia/Riyadh", "Asia/Dubai"),
    "cs": ("Europe/Prague",),
    "de": ("Europe/Berlin",),
    "el": ("Europe/Athens",),
    "en": ("America/New_York", "America/Los_Angeles", "Europe/London", "Asia/Kolkata"),
    "es": ("Europe/Madrid", "America/Mexico_City", "America/Bogota"),
    "fa": ("Asia/Tehran",),
    "fi": ("Europe/Helsinki",),
    "fr": ("Europe/Paris", "America/Toronto"),
    "he": ("Asia/Jerusalem",),
    "hi": ("Asia/Kolkata",),
    "hu": ("Europe/Budapest",),
    "id": ("Asia/Jakarta", "Asia/Makassar"),
    "it": ("Europe/Rome",),
    "ja": ("Asia/Tokyo",),
    "ko": ("Asia/Seoul",),
    "nl": ("Europe/Amsterdam",),
    "pl": ("Europe/Warsaw",),
    "pt": ("America/Sao_Paulo", "Europe/Lisbon"),
    "ro": ("Europe/Bucharest",),
    "ru": ("Europe/Moscow", "Asia/Yekaterinburg", "Asia/Novosibirsk"),
    "sv": ("Europe/Stockholm",),
    "th": ("Asia/Bangkok",),
    "tr": ("Europe/Istanbul",),
    "uk": ("Europe/Kyiv",),
    "vi": ("Asia/Ho_Chi_Minh",),
    "zh": ("Asia/Shanghai", "Asia/Taipei"),
}


async def zone_question(
    services: TurnServices, plan: TurnPlan, said: Sequence[Message], *, remembered: bool, say: Say
) -> tuple[str, tuple[Button, ...]]:
    """The line under an answer, and its buttons; empty where there is nothing to ask. It matters to
    one that was given the time (`said`: the run's messages), to what is `remembered` with its date,
    and to notes of earlier days."""
    to = plan.question.newest
    if plan.quiet or plan.policy.origin(TIMEZONE) != BUILT_IN:
        return "", ()
    try:
        matters = remembered or _told_time(said)
        if not (matters or await services.memory.flushing.has_noted(plan.session)):
            return "", ()
    except StoreError as error:
        log.warning("the time zone is asked for another time: %s", error)
        return "", ()
    return await asked_zone(services, to, plan.policy, say)


async def asked_zone(
    services: TurnServices, message: InboundMessage, policy: Policy, say: Say
) -> tuple[str, tuple[Button, ...]]:
    """The same under what a command has written down with its date."""
    to = message.address
    if policy.origin(TIMEZONE) != BUILT_IN:
        return "", ()
    try:
        if not await services.people.tell_once(f"zone:{to.channel}:{to.account}:{to.chat}", _ONCE):
            return "", ()
    except StoreError as error:
        log.warning("the time zone is asked for another time: %s", error)
        return "", ()
    if not to.private:
        return say("zone_of_group"), ()
    buttons = _buttons(message.sender.language) if say.capabilities.buttons else ()
    return say("zone_question"), buttons


def _told_time(said: Sequence[Message]) -> bool:
    calls = (call for message in said for call in message.tool_uses)
    return any(call.name == CurrentTime.spec.name for call in calls)


def _buttons(language: str | None) -> tuple[Button, ...]:
    base = (language or "").lower().replace("_", "-").split("-")[0]
    zones = (*_NEAR.get(base, _NEAR["en"]), _UTC)
    return tuple(Button(_place(zone), ZONE, zone) for zone in zones)


def _place(zone: str) -> str:
    """`America/New_York` -> `New York`"""
    return zone.rpartition("/")[2].replace("_", " ")
