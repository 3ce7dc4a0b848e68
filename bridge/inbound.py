"""An inbound message as the inbox keeps it."""

from __future__ import annotations

import logging

from pydantic import TypeAdapter, ValidationError

from channels.base import InboundMessage
from memory.clock import stamp
from memory.conversations import SessionPlace
from memory.inbox import Entry, Kind

log = logging.getLogger(__name__)

_adapter = TypeAdapter(InboundMessage)


def dump(message: InboundMessage) -> str:
    """The message as JSON; `load(dump(m)) == m`."""
    return _adapter.dump_json(message, exclude_defaults=True).decode()


def load(body: str) -> InboundMessage:
    """The message that `dump` wrote. Raises `pydantic.ValidationError`."""
    return _adapter.validate_json(body)


def readable(body: str) -> InboundMessage | None:
    """The message of a stored row, or None when it cannot be read: one bad row must not keep all the
    others from being answered. It stays open, for a version that can."""
    try:
        return load(body)
    except ValidationError as error:
        # Without a trace: it would repeat the message.
        log.error("a stored message cannot be read (%d faults)", error.error_count())
        return None


def entry(message: InboundMessage, place: SessionPlace, kind: Kind) -> Entry:
    """What is put into the inbox; of what somebody without access wrote only the key."""
    body = None if kind == "refused" else dump(message)
    return Entry(place, message.event, message.sender.id, kind, body, stamp(message.sent_at))
