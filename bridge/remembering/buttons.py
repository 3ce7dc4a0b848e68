"""The buttons of the memory, and what their presses mean. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Final

from bridge.texts import Say
from channels.base import Button
from memory.night.nights import Night
from memory.whose.authors import Change

ACTION: Final = "memory"
SHOW: Final = "show"
KEEP: Final = "keep"
_UNDO, _NIGHT, _DELETE = "undo", "night", "delete"
MOST_UNDO = 4  # buttons under one answer


def undo_buttons(changes: Sequence[Change], say: Say) -> tuple[Button, ...]:
    """For what was remembered or corrected; with the entry's number where there are several."""
    if not say.capabilities.buttons:
        return ()
    several = len(changes) > 1
    return tuple(
        Button(
            say("undo_button_number", number=one.number) if several else say("undo_button"),
            ACTION,
            f"{_UNDO}:{one.id}",
        )
        for one in changes[:MOST_UNDO]
    )


def undo_button(change: int, say: Say) -> tuple[Button, ...]:
    """For one change, by its row."""
    if not say.capabilities.buttons:
        return ()
    return (Button(say("undo_button"), ACTION, f"{_UNDO}:{change}"),)


def night_buttons(night: Night, say: Say) -> tuple[Button, ...]:
    """What a night has changed: look at it, take it back."""
    return (
        Button(say("show_button"), ACTION, SHOW),
        Button(say("undo_button"), ACTION, f"{_NIGHT}:{night.day.isoformat()}"),
    )


def delete_buttons(changes: Iterable[int], say: Say) -> tuple[Button, ...]:
    """Whether the messages that said what was forgotten are deleted too."""
    ids = sorted(changes)
    return (
        Button(say("delete_button"), ACTION, f"{_DELETE}:{ids[0]}:{ids[-1]}"),
        Button(say("keep_button"), ACTION, KEEP),
    )


def undone(value: str) -> int | None:
    """The change that a press takes back."""
    kind, _, rest = value.partition(":")
    return int(rest) if kind == _UNDO and rest.isdecimal() else None


def undone_night(value: str) -> date | None:
    """The night that a press takes back."""
    kind, _, rest = value.partition(":")
    try:
        return date.fromisoformat(rest) if kind == _NIGHT else None
    except ValueError:
        return None


def deleted(value: str) -> tuple[int, int] | None:
    """The changes of which a press deletes the messages, from the first to the last."""
    kind, _, rest = value.partition(":")
    first, _, last = rest.partition(":")
    if kind != _DELETE or not (first.isdecimal() and last.isdecimal()):
        return None
    return int(first), int(last)
