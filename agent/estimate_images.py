"""What an image costs: by its size in pixels, read from the first bytes of the file."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

PATCH = 28  # pixels of a side


@dataclass(frozen=True, slots=True)
class ImageRule:
    """A model sees an image in patches of 28 pixels, one token each, once its long side is scaled
    down to `side` pixels; never more than `most` tokens."""

    side: int
    most: int


# Anthropic's page on vision: Claude up to 4.6, and from 4.7 on. The others have rules of their own
# (tiles of 512 or 768 pixels) and come out at or below the first.
STANDARD = ImageRule(1_568, 1_568)
HIGH = ImageRule(2_576, 4_784)


def image_tokens(data: bytes, rule: ImageRule) -> int:
    """Tokens of an image; the most when its size cannot be read."""
    size = image_size(data)
    if size is None:
        return rule.most
    scale = max(1.0, max(size) / rule.side)
    across, down = (max(1, ceil(side / scale / PATCH)) for side in size)
    return min(across * down, rule.most)


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG, GIF, JPEG or WebP; None when the bytes do not say."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    if data.startswith((b"GIF87a", b"GIF89a")) and len(data) >= 10:
        return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    if data.startswith(b"\xff\xd8"):
        return _jpeg(data)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP" and len(data) >= 30:
        return _webp(data)
    return None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    """From the frame header; the segments before it are skipped by their lengths."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        kind = data[at + 1]
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(data[at + 7 : at + 9]), int.from_bytes(data[at + 5 : at + 7])
        alone = kind == 0xFF or kind == 0x01 or 0xD0 <= kind <= 0xD8
        at += (1 if kind == 0xFF else 2) if alone else 2 + int.from_bytes(data[at + 2 : at + 4])
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        width = int.from_bytes(data[24:27], "little") + 1
        return width, int.from_bytes(data[27:30], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width = int.from_bytes(data[26:28], "little") & 0x3FFF
        return width, int.from_bytes(data[28:30], "little") & 0x3FFF
    return None
