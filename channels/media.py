"""What a file is: by what its platform claims, and by its first bytes."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final, Literal

MAX_TEXT_BYTES: Final = 1_000_000  # of a text document

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


def kind_of(name: str, claimed: str) -> Literal["image", "document"] | None:
    """An image, a text document, or None for what cannot be read yet. `claimed` is the media type
    that the platform gives, in lower case."""
    if claimed in _IMAGE_TYPES:
        return "image"
    is_text = claimed.startswith("text/") or claimed in _TEXT_TYPES
    return "document" if is_text or PurePath(name).suffix.lower() in _TEXT_SUFFIXES else None


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
