"""What a run shows while it goes on: the preview's text, a paragraph between steps."""

from __future__ import annotations

import re
from typing import Final

from agent.errors import RefusalKind
from agent.events import Retrying, RunEvent, StepEnded, TextShown, ToolStarted
from bridge.errors import retrying_key
from bridge.texts import Say
from channels.base import ReplySink

OUR_SIGN: Final = "📝"
"""Before each line of ours that tells of what was written down; it goes from what a model says."""


# Also as what Markdown and Slack make of it. `:pencil:` is Slack's other name of it.
_SIGN = re.compile(rf"{OUR_SIGN}|&#(?:0*128221|x0*1f4dd);?|:(?:memo|pencil):", re.IGNORECASE)


def without_our_sign(text: str) -> str:
    """A model's words, which cannot look like a receipt."""
    while (without := _SIGN.sub("", text)) != text:
        text = without  # what stood around it may be one now
    return text


class Display:
    """Takes a run's events and shows them in a reply. When something that was shown, or a tool that
    ran, is followed by another try of a model call, it says so, and why. `most`: characters that the
    preview shows."""

    def __init__(self, sink: ReplySink, say: Say, most: int | None = None) -> None:
        self._sink = sink
        self._room = most
        self._say = say
        self._parts: list[str] = []
        self._paragraph_due = False
        self._tools_ran = False

    @property
    def text(self) -> str:
        """Everything that there was to be shown."""
        return without_our_sign("".join(self._parts)).strip()

    def take(self, event: RunEvent) -> None:
        """One event; never blocks and never raises."""
        match event:
            case TextShown(text):
                self._show(without_our_sign(text))
            case StepEnded():
                self._paragraph_due = bool(self._parts)
            case ToolStarted():
                self._tools_ran = True
            case Retrying(_, why):
                self._say_that_it_is_tried_again(why)

    def _say_that_it_is_tried_again(self, why: RefusalKind | None) -> None:
        if self._parts or self._tools_ran:
            self._paragraph_due = bool(self._parts)
            self._show(self._say(retrying_key(why)))
            self._paragraph_due = True

    def _show(self, text: str) -> None:
        if self._paragraph_due:
            self._paragraph_due = False
            text = "\n\n" + text
        self._parts.append(text)
        if self._room is not None:
            text, self._room = text[: self._room], max(0, self._room - len(text))
        if text:
            self._sink.show(text)
