"""What commands and presses are answered with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from bridge.texts import Say
from channels.base import Button, InboundMessage, OutboundDocument, OutboundReply
from memory.conversations import SessionPlace


@dataclass(frozen=True, slots=True)
class Answer:
    """`text` is Markdown; blank: nothing is said. `buttons` go under it, `documents` after it;
    `silent`: without a sound where the platform can.

    A press is answered by a short notice for the person who pressed, without buttons or documents.
    `spent`: the buttons that were pressed are of no more use, and go. `in_place`: instead of the
    notice, the message with the button becomes this text with these buttons; where it has no room for
    them it is as with `apart`: instead of the notice a message of its own.
    """

    text: str
    buttons: tuple[Button, ...] = ()
    documents: tuple[OutboundDocument, ...] = ()
    silent: bool = False
    spent: bool = False
    in_place: bool = False
    apart: bool = False

    @property
    def reply(self) -> OutboundReply:
        """As a message."""
        return OutboundReply(self.text, self.documents, self.buttons, self.silent)


Handler = Callable[[InboundMessage, SessionPlace, Say], Awaitable[Answer | str | None]]
"""Carries out a command or a press; a bare sentence is an answer of nothing else, None is silence."""

Handlers = Mapping[str, Handler]
"""Commands by name, or presses by the action of the button."""


class FormHandler(Protocol):
    """What becomes of a form that was sent."""

    async def check(self, message: InboundMessage, say: Say) -> Mapping[str, str]:
        """What is wrong, by field: it is shown in the form, and nothing else happens."""
        ...

    async def carry_out(self, message: InboundMessage, say: Say) -> Answer:
        """It is stored: do it."""
        ...


FormHandlers = Mapping[str, FormHandler]
"""Forms by their action."""


class Replies(Protocol):
    """Messages that answer one of the bot's, and are no question."""

    async def awaits(self, message: InboundMessage) -> bool:
        """Whether this is one."""
        ...

    async def reply(self, message: InboundMessage, say: Say) -> Answer:
        """It is stored: do what it says."""
        ...


def answer_of(said: Answer | str | None) -> Answer:
    """A whole answer of what a handler gave."""
    return said if isinstance(said, Answer) else Answer(said or "")
