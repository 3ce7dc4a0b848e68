"""What a run tells the display while it goes on. Emitting is synchronous and may drop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextShown:
    """Some more text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool begins; `name` is the tool's name."""

    name: str


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A model call and its tools are done; text that comes now belongs to the next step."""


RunEvent = TextShown | ToolStarted | StepEnded
Emit = Callable[[RunEvent], None]
