"""What a night has changed, or could make nothing of, in a line under the next answer."""

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
    """The lines and their buttons, once in a chat for each night that changed something, and once for
    notes that nights have passed over; empty when there is nothing to tell."""
    try:
        night = await nights.to_tell_in(chat, datetime.now(UTC) - TOLD_WITHIN)
        passed = await nights.passed_to_tell(chat.scope)
    except StoreError as error:
        log.warning("what the night changed is told another time: %s", error)
        return "", ()
    lines = [f"_{_passed(passed, say)}_"] if passed else []
    if night is None:
        return "\n".join(lines), ()
    if not say.capabilities.buttons:
        return "\n".join((say("overnight", changes=changes(night, say)), *lines)), ()
    told = say("overnight_short", changes=changes(night, say))
    return "\n".join((told, *lines)), night_buttons(night, say)


def changes(night: Night, say: Say) -> str:
    """`3 added, 1 merged, 1 dropped`"""
    counts = {name: int(getattr(night, name)) for name in _COUNTS}
    parts = [say(f"overnight_{name}", count=count) for name, count in counts.items() if count]
    return say("overnight_comma").join(parts)


def outcome(night: Night, say: Say) -> str:
    """How it went, in some sentences: one that ended early may have changed something before."""
    told = [say(f"night_{night.outcome}", changes=changes(night, say))]
    if night.outcome != "changed" and any(night.counts):
        done = say("night_changed", changes=changes(night, say))
        told = [done, say(f"night_rest_{night.outcome}")]
    if night.passed:
        told.append(_passed(night.passed, say))
    return " ".join(told)


def _passed(count: int, say: Say) -> str:
    return say("night_passed", count=count)
