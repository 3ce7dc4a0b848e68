"""Files of a message: which can be read, which cannot yet, and what bytes really are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, Final

from channels.base import Attachment

MAX_TEXT_BYTES: Final = 1_000_000
MAX_IMAGE_BYTES: Final = 10_000_000

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
_SPOKEN = "slack_audio"  # the subtype of a clip that was recorded in Slack


def files_of(files: Iterable[Mapping[str, Any]]) -> tuple[tuple[Attachment, ...], str | None]:
    """The images and small text documents, and the kind of the first file that is neither."""
    attachments: list[Attachment] = []
    unreadable: str | None = None
    for file in files:
        attachment = _readable(file)
        if attachment is not None:
            attachments.append(attachment)
        elif unreadable is None:
            unreadable = _kind(file)
    return tuple(attachments), unreadable


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


def _readable(file: Mapping[str, Any]) -> Attachment | None:
    """None also for what Slack does not hold itself (a link to a drive) or shows no more."""
    url, size = file.get("url_private"), file.get("size")
    if not isinstance(url, str) or not isinstance(size, int) or file.get("is_external"):
        return None
    name = str(file.get("name") or file.get("id") or "file")
    claimed = str(file.get("mimetype") or "application/octet-stream").lower()
    if claimed in _IMAGE_TYPES:
        return Attachment("image", url, name, claimed, size) if size <= MAX_IMAGE_BYTES else None
    is_text = claimed.startswith("text/") or claimed in _TEXT_TYPES
    if not is_text and PurePath(name).suffix.lower() not in _TEXT_SUFFIXES:
        return None
    return Attachment("document", url, name, claimed, size) if size <= MAX_TEXT_BYTES else None


def _kind(file: Mapping[str, Any]) -> str:
    family = str(file.get("mimetype") or "").partition("/")[0]
    if file.get("subtype") == _SPOKEN:
        return "voice"
    return family if family in ("audio", "video") else "document"
