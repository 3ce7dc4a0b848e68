"""Commands after a mention: Slack refuses slash commands in threads, where some have a meaning of
their own."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from channels.base import Command, InboundMessage
from channels.slack.markup import mentioned, without_mention

_COMMAND: Final = re.compile(
    r"(?P<name>limits)(?:\s+(?P<args>here|(?:here\s+)?(?:(?:set|replace)\s.+|undo|log|text)))?\s*",
    re.IGNORECASE | re.DOTALL,
)
"""Its words and nothing more: any other text is a question."""


def command_in(text: str) -> Command | None:
    """The command that a text is, after the bot's mention."""
    found = _COMMAND.fullmatch(text.strip())
    return None if found is None else Command(found["name"].lower(), found["args"] or "")


def is_command(text: str) -> bool:
    """Whether a text as Slack sends it is one, whoever is mentioned."""
    for person in mentioned(text):
        text = without_mention(text, person)
    return command_in(text) is not None


def with_command(message: InboundMessage, whisper: str) -> InboundMessage:
    """The message with the command that it is. `whisper`: the id of a message that its sender alone is
    answered. So is all of it but the command alone (also of the thread), which everybody may see."""
    if message.address.private or not (message.addressed and message.own_words):
        return message
    command = command_in(message.text)
    if command is None or command.args.lower() in ("", "here"):
        return replace(message, command=command)
    return replace(message, command=command, message_id=whisper, whispered=True)
