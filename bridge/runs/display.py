"""What a run shows while it goes on: the preview's text, a paragraph between steps."""

from __future__ import annotations

import re
from html import unescape
from typing import Final

from agent.errors import RefusalKind
from agent.events import Retrying, RunEvent, StepEnded, TextShown, ToolStarted
from bridge.errors import retrying_key
from bridge.texts import Say
from channels.base import ReplySink

OUR_SIGN: Final = "📝"
"""Before each line of ours that tells of what was written down; it goes from what a model says."""


# Slack shows the names as the sign.
_SIGN = re.compile(rf"{OUR_SIGN}|:(?:memo|pencil):", re.IGNORECASE)
_MAY_HOLD = re.compile(rf"[{OUR_SIGN}&:\\]")
_BEGUN = re.compile(r"[&:\\]\S{0,40}$")
_PASSES = 3  # so many signs may be hidden in one another; then a space stands where one was
# What Markdown shows as another character, or not at all: entities, escapes, emphasis; and what nobody
# sees.
_WRITTEN = re.compile(
    r"(?P<entity>&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])|(?P<unseen>[*_~`\u00ad\u200b-\u200f\u2060-\u2064\ufe0f\ufeff])"
    r"|(?P<plain>.)",
    re.DOTALL,
)


def without_our_sign(text: str) -> str:
    """A model's words, which cannot look like a receipt however they are written: the sign goes from
    what a platform will show."""
    if not _MAY_HOLD.search(text):
        return text
    for instead in ("",) * _PASSES + (" ",):
        without = _without_shown(text, instead)
        if without == text:
            break
        text = without  # what stood around it may be one now
    return text


def _without_shown(text: str, instead: str) -> str:
    shown: list[str] = []
    spans: list[tuple[int, int]] = []  # of each shown character in the text
    for found in _WRITTEN.finditer(text):
        written = found["entity"] and unescape(found["entity"])
        for character in written or found["escaped"] or found["plain"] or "":
            shown.append(character)
            spans.append(found.span())
    kept, done = "", 0
    for sign in _SIGN.finditer("".join(shown)):
        kept += text[done : spans[sign.start()][0]] + instead
        done = spans[sign.end() - 1][1]
    return kept + text[done:]


class Display:
    """Takes a run's events and shows them in a reply. When something that was shown, or a tool that
    ran, is followed by another try of a model call, it says so, and why. `most`: characters that the
    preview shows."""

    def __init__(self, sink: ReplySink, say: Say, most: int | None = None) -> None:
        self._sink = sink
        self._room = most
        self._say = say
        self._parts: list[str] = []
        self._held = ""  # the end of the preview, which may be the beginning of a sign
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
                self._show(text)
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
        text = without_our_sign(self._held + text)
        begun = _BEGUN.search(text)
        text, self._held = (text[: begun.start()], begun[0]) if begun else (text, "")
        if self._room is not None:
            text, self._room = text[: self._room], max(0, self._room - len(text))
        if text:
            self._sink.show(text)
