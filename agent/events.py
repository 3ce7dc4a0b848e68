"""What a run tells the display while it goes on. Emitting is synchronous and may drop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent.errors import RefusalKind


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


@dataclass(frozen=True, slots=True)
class Retrying:
    """A model call failed and is made again in `wait_s` seconds; what it had said is void. `why`: what
    the failure was; None: another model is asked."""

    wait_s: float
    why: RefusalKind | None


RunEvent = TextShown | ToolStarted | StepEnded | Retrying
Emit = Callable[[RunEvent], None]
