"""What a night has changed, in one line under the next answer."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from bridge.remembering.buttons import night_buttons
from bridge.texts import Say
from channels.base import Button
from memory.errors import StoreError
from memory.night.nights import Night, Nights
from memory.scopes import ChatScope

log = logging.getLogger(__name__)

TOLD_WITHIN = timedelta(days=7)  # later it is no news
_COUNTS = ("added", "merged", "corrected", "dropped")


async def overnight(nights: Nights, chat: ChatScope, say: Say) -> tuple[str, tuple[Button, ...]]:
    """The line and its buttons, once in a chat for each night that changed something; empty when there
    is nothing to tell."""
    try:
        night = await nights.to_tell_in(chat, datetime.now(UTC) - TOLD_WITHIN)
    except StoreError as error:
        log.warning("what the night changed is told another time: %s", error)
        return "", ()
    if night is None:
        return "", ()
    if not say.capabilities.buttons:
        return say("overnight", changes=changes(night, say)), ()
    return say("overnight_short", changes=changes(night, say)), night_buttons(night, say)


def changes(night: Night, say: Say) -> str:
    """`3 added, 1 merged, 1 dropped`"""
    counts = {name: int(getattr(night, name)) for name in _COUNTS}
    parts = [say(f"overnight_{name}", count=count) for name, count in counts.items() if count]
    return say("overnight_comma").join(parts)


def outcome(night: Night, say: Say) -> str:
    """How it went, in a sentence or two: one that ended early may have changed something before."""
    if night.outcome == "changed" or not any(night.counts):
        return say(f"night_{night.outcome}", changes=changes(night, say))
    done = say("night_changed", changes=changes(night, say))
    return f"{done} {say(f'night_rest_{night.outcome}')}"
