"""Files of a message: which can be read, which cannot yet, and what bytes really are."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

from telegram import Document, Message

from channels.base import Attachment

MAX_TEXT_BYTES: Final = 1_000_000
MAX_IMAGE_BYTES: Final = 20_000_000  # what getFile hands out: core.telegram.org/bots/api#getfile

_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_TEXT_TYPES = frozenset(
    "application/" + name
    for name in (
        *("csv", "javascript", "json", "sql", "toml", "x-ndjson", "x-sh", "x-yaml", "xml", "yaml"),
    )
)
_TEXT_SUFFIXES = frozenset(
    "." + name
    for name in (
        *("txt", "md", "markdown", "rst", "csv", "tsv", "json", "jsonl", "yaml", "yml", "toml"),
        *("ini", "cfg", "conf", "env", "log", "xml", "html", "css", "sql", "tex", "diff", "patch"),
        *("py", "js", "ts", "tsx", "jsx", "go", "rs", "c", "h", "cpp", "hpp", "java", "kt", "rb"),
        *("php", "pl", "lua", "r", "sh", "bash", "bat", "ps1", "swift", "cs"),
    )
)
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
)


def attachments_of(message: Message) -> tuple[Attachment, ...]:
    """The photo (its largest size), image or small text document of a message."""
    if message.photo:
        photo = max(message.photo, key=lambda size: size.width * size.height)
        name = f"photo-{message.message_id}.jpg"
        return (Attachment("image", photo.file_id, name, "image/jpeg", photo.file_size),)
    if message.document is None or message.animation is not None:
        return ()
    document = _readable(message.document)
    return () if document is None else (document,)


def unreadable_kind(message: Message) -> str | None:
    """The kind of a message that cannot be read yet, None if there is nothing of that kind."""
    for kind in _UNREADABLE:
        if getattr(message, kind):
            return kind
    if message.document is not None and _readable(message.document) is None:
        return "document"
    return None


def image_type(data: bytes) -> str | None:
    """The media type of an image by its first bytes, None for anything but PNG, JPEG, GIF, WebP."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def _readable(document: Document) -> Attachment | None:
    name = document.file_name or f"file-{document.file_unique_id}"
    claimed = (document.mime_type or "application/octet-stream").lower()
    size = document.file_size
    if claimed in _IMAGE_TYPES:
        if size is not None and size > MAX_IMAGE_BYTES:
            return None
        return Attachment("image", document.file_id, name, claimed, size)
    is_text = claimed.startswith("text/") or claimed in _TEXT_TYPES
    if PurePath(name).suffix.lower() not in _TEXT_SUFFIXES and not is_text:
        return None
    if size is not None and size > MAX_TEXT_BYTES:
        return None
    return Attachment("document", document.file_id, name, claimed, size)
