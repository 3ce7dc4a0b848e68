"""Real picture files for tests."""

from __future__ import annotations

import base64
import random
import re
import struct
import zlib
from io import BytesIO

from PIL import ExifTags, Image

from tests.servers.llm import LlmRequest


def png(width: int = 40, height: int = 20) -> bytes:
    """One colour: small, whatever its size in pixels."""
    return _written(Image.new("RGB", (width, height), "teal"), "PNG")


def noise_png(width: int, height: int) -> bytes:
    """A PNG that cannot be packed: three bytes a pixel."""
    data = random.Random(width).randbytes(width * height * 3)
    return _written(Image.frombytes("RGB", (width, height), data), "PNG")


def jpeg(width: int, height: int, *, place: bool = False) -> bytes:
    """As a camera makes it; `place`: with where it was taken."""
    exif = Image.Exif()
    if place:
        exif.get_ifd(ExifTags.IFD.GPSInfo)[ExifTags.GPS.GPSLatitudeRef] = "N"
    return _written(Image.new("RGB", (width, height), "teal"), "JPEG", exif)


def cut_png() -> bytes:
    """Half of a file."""
    whole = noise_png(30, 30)
    return whole[: len(whole) // 2]


def huge_png(width: int = 100_000, height: int = 100_000) -> bytes:
    """A few bytes that say they are a picture of that size."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return b"\x89PNG\r\n\x1a\n" + chunk


def sent_sizes(request: LlmRequest) -> list[tuple[int, int]]:
    """Width and height of each image in a request to a model, of either API."""
    files = re.findall(r"(?:/9j/|iVBOR)[\w+/=]+", str(request.body))
    return [Image.open(BytesIO(base64.b64decode(file))).size for file in files]


def _written(image: Image.Image, kind: str, exif: Image.Exif | None = None) -> bytes:
    out = BytesIO()
    image.save(out, kind, **({"exif": exif} if exif is not None else {}))
    return out.getvalue()
