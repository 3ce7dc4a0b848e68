"""Files of a message: which can be read, and which cannot yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from channels.base import Attachment
from channels.media import kind_of

MAX_IMAGE_BYTES: Final = 20_000_000  # as much as Telegram hands out; Slack itself has no such limit

_SPOKEN = "slack_audio"  # the subtype of a clip that was recorded in Slack


def files_of(files: Iterable[Mapping[str, Any]]) -> tuple[tuple[Attachment, ...], str | None]:
    """The images and text documents, and the kind of the first file that is neither. One that is
    too large is among them: fetching it tells by how much."""
    attachments: list[Attachment] = []
    unreadable: str | None = None
    for file in files:
        attachment = _readable(file)
        if attachment is not None:
            attachments.append(attachment)
        elif unreadable is None:
            unreadable = _kind(file)
    return tuple(attachments), unreadable


def _readable(file: Mapping[str, Any]) -> Attachment | None:
    """None also for what Slack does not hold itself (a link to a drive) or shows no more."""
    url, size = file.get("url_private"), file.get("size")
    if not isinstance(url, str) or not isinstance(size, int) or file.get("is_external"):
        return None
    name = str(file.get("name") or file.get("id") or "file")
    claimed = str(file.get("mimetype") or "application/octet-stream").lower()
    kind = kind_of(name, claimed)
    return None if kind is None else Attachment(kind, url, name, claimed, size)


def _kind(file: Mapping[str, Any]) -> str:
    family = str(file.get("mimetype") or "").partition("/")[0]
    if file.get("subtype") == _SPOKEN:
        return "voice"
    return family if family in ("audio", "video") else "document"
