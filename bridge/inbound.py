"""An inbound message as the inbox keeps it."""

from __future__ import annotations

from pydantic import TypeAdapter

from channels.base import InboundMessage
from memory.clock import stamp
from memory.conversations import SessionPlace
from memory.inbox import Entry, Kind

_adapter = TypeAdapter(InboundMessage)


def dump(message: InboundMessage) -> str:
    """The message as JSON; `load(dump(m)) == m`."""
    return _adapter.dump_json(message, exclude_defaults=True).decode()


def load(body: str) -> InboundMessage:
    """The message that `dump` wrote. Raises `pydantic.ValidationError`."""
    return _adapter.validate_json(body)


def entry(message: InboundMessage, place: SessionPlace, kind: Kind) -> Entry:
    """What is put into the inbox; of what somebody without access wrote only the key."""
    body = None if kind == "refused" else dump(message)
    return Entry(place, message.event, message.sender.id, kind, body, stamp(message.sent_at))
