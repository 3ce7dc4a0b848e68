"""Files of a message: which can be read, and which cannot yet."""

from __future__ import annotations

from typing import Final

from telegram import Document, Message, Update
from telegram.ext import filters

from channels.base import Attachment
from channels.media import kind_of

MAX_IMAGE_BYTES: Final = 20_000_000  # what getFile hands out: core.telegram.org/bots/api#getfile

# Kinds that cannot be read yet, as fields of a message. A venue also has a location, an animation
# also a document, so those come first.
_UNREADABLE = (
    "animation",
    "audio",
    "voice",
    "video",
    "video_note",
    "sticker",
    "venue",
    "location",
    "contact",
    "poll",
    "dice",
    "story",
    "game",
    "paid_media",
    "checklist",
    "giveaway",
    "giveaway_winners",
    "invoice",
    "passport_data",
)
_UNKNOWN = "unknown"  # something newer than the library


def attachments_of(message: Message) -> tuple[Attachment, ...]:
    """The photo (its largest size, of a live photo the still), image or text document of a message.
    One that is too large is among them: fetching it tells by how much."""
    sizes = message.photo or (message.live_photo.photo if message.live_photo else ())
    if sizes:
        photo = max(sizes, key=lambda size: size.width * size.height)
        name = f"photo-{message.message_id}.jpg"
        return (Attachment("image", photo.file_id, name, "image/jpeg", photo.file_size),)
    if message.document is None or message.animation is not None:
        return ()
    document = _readable(message.document)
    return () if document is None else (document,)


def unreadable_kind(message: Message) -> str | None:
    """The kind of a message that cannot be read yet, None if there is nothing of that kind: it can
    be read, or nobody wrote it (a service message)."""
    for kind in _UNREADABLE:
        if getattr(message, kind):
            return kind
    if message.document is not None and _readable(message.document) is None:
        return "document"
    if message.live_photo is not None and not attachments_of(message):
        return "live_photo"
    content = message.text or message.caption or attachments_of(message)
    return None if content or _is_service(message) else _UNKNOWN


def _is_service(message: Message) -> bool:
    known = filters.StatusUpdate.ALL.check_update(Update(0, message=message))
    return bool(known or message.boost_added or message.successful_payment)


def _readable(document: Document) -> Attachment | None:
    name = document.file_name or f"file-{document.file_unique_id}"
    claimed = (document.mime_type or "application/octet-stream").lower()
    kind = kind_of(name, claimed)
    if kind is None:
        return None
    return Attachment(kind, document.file_id, name, claimed, document.file_size)
