"""Stored messages as they are read for a model: one that cannot be read takes nothing else with it.

A later version may have written it, or somebody by hand; it stays as it is stored. What stands for it
is not stored anywhere.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Final, Literal

from agent.messages import Message, MessageFormatError, TextBlock, decode

log = logging.getLogger(__name__)

STANDS_FOR: Final = "[A message stood here that cannot be read any more.]"


def readable(body: str) -> Message:
    """The message, or what stands for one that cannot be read."""
    try:
        return decode(body)
    except MessageFormatError as error:
        log.warning("a stored message cannot be read: %s", type(error.__cause__ or error).__name__)
        return Message(_role(body), (TextBlock(STANDS_FOR),))


def _role(body: str) -> Literal["user", "assistant"]:
    try:
        document: Any = json.loads(body)
    except ValueError:
        return "user"
    match document:
        case {"role": "assistant"}:
            return "assistant"
        case _:
            return "user"
