"""What an image costs: by its size in pixels, read from the first bytes of the file."""

from __future__ import annotations

UNKNOWN_SIZE = 1_600  # tokens: the most that a usual model counts for an image
PIXELS_A_TOKEN = 750  # Anthropic's formula; OpenAI's tiles and Gemini's come out lower
MOST_TOKENS = 1_600  # a larger image is scaled down by the provider
LEAST_TOKENS = 85


def image_tokens(data: bytes) -> float:
    """Tokens of an image, for the model that counts most for it."""
    size = image_size(data)
    if size is None:
        return UNKNOWN_SIZE
    return min(max(size[0] * size[1] / PIXELS_A_TOKEN, LEAST_TOKENS), MOST_TOKENS)


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
