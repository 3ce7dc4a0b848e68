"""An inbound message as the JSON that the inbox keeps."""

from __future__ import annotations

from pydantic import TypeAdapter

from channels.base import InboundMessage

_adapter = TypeAdapter(InboundMessage)


def dump(message: InboundMessage) -> str:
    """The message as JSON; `load(dump(m)) == m`."""
    return _adapter.dump_json(message, exclude_defaults=True).decode()


def load(body: str) -> InboundMessage:
    """The message that `dump` wrote. Raises `pydantic.ValidationError`."""
    return _adapter.validate_json(body)
