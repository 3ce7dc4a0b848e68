"""A picture as people send it -> one that every provider takes. Pillow is known here only.

It takes time and is to run in a thread; what asks for it is `bridge.runs.pictures`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Final

from PIL import ExifTags, Image
from PIL.Image import Resampling, Transpose

from agent.estimate_images import image_size
from channels.errors import FileRefused
from channels.media import image_type

# platform.claude.com, build-with-claude/vision: what is larger is scaled down to this before the
# model sees it, so that more pixels cost time and money only. Far below all hard limits: 8,000
# pixels, and 2,000 in a request with more than 20 images.
LONGEST_SIDE: Final = 1_568
MOST_BYTES: Final = 5 * 1024 * 1024 * 3 // 4  # the API's 5 MB are of base64
# A picture takes 4 bytes a pixel while it is open, twice where something shows through. The largest
# cameras of phones that are in use give 64 megapixels (9,248 x 6,936).
MOST_PIXELS: Final = 65_000_000

_FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP")
_LOSSLESS: Final = frozenset({"PNG", "GIF"})
_QUALITY: Final = 90  # a picture of noise, 1,568 pixels on each side, comes to 2.7 MB
_WHITE: Final = (255, 255, 255, 255)
# What a file may say of its picture and be passed on. All else can tell where, when, by whom and
# with what it was made: EXIF, XMP, IPTC, texts of a PNG, comments of a JPEG or GIF.
_HARMLESS: Final = frozenset(
    (
        *("adobe", "adobe_transform", "aspect", "background", "chromaticity", "dpi", "duration"),
        *("extension", "gamma", "icc_profile", "interlace", "jfif", "jfif_density", "jfif_unit"),
        *("jfif_version", "loop", "progression", "progressive", "srgb", "timestamp"),
        *("transparency", "version"),
    )
)
_PLAIN_MODES: Final = frozenset({"1", "L", "LA", "P", "PA", "RGB", "RGBA"})
# EXIF's number of how the camera was held -> what puts the picture upright.
_UPRIGHT: Final[Mapping[object, Transpose]] = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG, JPEG, GIF or WebP file, and its size in pixels."""

    media_type: str
    data: bytes
    width: int
    height: int


def fitted(data: bytes, side: int = LONGEST_SIDE) -> Picture:
    """The picture upright, still, up to `side` pixels on each side and `MOST_BYTES`, and without
    anything but the picture. What is all that already comes back byte for byte.

    Raises `FileRefused` for what is no picture, damaged, or has more than `MOST_PIXELS`.
    """
    if image_type(data) is None:
        raise FileRefused("no_picture")
    _check_pixels(image_size(data))  # from its first bytes: nothing is opened to find that out
    try:
        with Image.open(BytesIO(data), formats=_FORMATS) as image:
            _check_pixels(image.size)
            return _fitted(image, data, side)
    except FileRefused:
        raise
    except Exception as error:  # noqa: BLE001 - a border: decoders raise whatever they stumble over
        raise FileRefused("broken_picture", f"{type(error).__name__}: {error}") from None


def _check_pixels(size: tuple[int, int] | None) -> None:
    if size is not None and size[0] * size[1] > MOST_PIXELS:
        limit = f"{MOST_PIXELS // 1_000_000}"
        raise FileRefused("too_many_pixels", f"{size[0]} x {size[1]}", limit=limit)


def _fitted(image: Image.Image, data: bytes, side: int) -> Picture:
    width, height = image.size
    scale = min(1.0, side / max(width, height))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    moves = getattr(image, "is_animated", False)
    if scale < 1:  # a JPEG can be opened at an eighth, a quarter or half of its size
        image.draft("RGB", (2 * size[0], 2 * size[1]))
    image.load()
    legal = scale == 1 and len(data) <= MOST_BYTES and not moves and image.mode in _PLAIN_MODES
    kind = image.format
    if legal and _HARMLESS.issuperset(map(str, image.info)) and kind in _FORMATS:
        return Picture(f"image/{kind.lower()}", data, width, height)
    pixels = _pixels(image, size)
    if pixels.mode == "RGBA" or (scale == 1 and kind in _LOSSLESS):
        made = _written(pixels, "PNG")
        if len(made.data) <= MOST_BYTES:
            return made
    return _written(_on_white(pixels), "JPEG")


def _pixels(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """The picture upright, as RGBA where something shows through, else as RGB. `size`: before it is
    put upright."""
    upright = _UPRIGHT.get(_orientation(image))
    if image.mode.startswith("I"):
        image = _eight_bits(image)
    mode = "RGBA" if image.has_transparency_data else "RGB"
    pixels = image if image.mode == mode else image.convert(mode)
    if pixels.size != size:
        pixels = pixels.resize(  # pyright: ignore[reportUnknownMemberType] - numpy, if it were there
            size, Resampling.LANCZOS, reducing_gap=3.0
        )
    if upright is not None:
        pixels = pixels.transpose(upright)
    if mode == "RGBA" and pixels.getchannel("A").getextrema() == (255, 255):
        pixels = pixels.convert("RGB")
    return pixels


def _eight_bits(image: Image.Image) -> Image.Image:
    """Of 16 bits a pixel; converting alone would make all but the darkest white."""
    image.info.pop("transparency", None)  # a number of 16 bits
    sixteen = image.convert("I")
    eight = sixteen.point(lambda value: value / 256)  # pyright: ignore[reportUnknownMemberType]
    return eight.convert("L")


def _orientation(image: Image.Image) -> object:
    try:
        return image.getexif().get(ExifTags.Base.Orientation)
    except Exception:  # noqa: BLE001 - broken EXIF raises anything, and the picture may be fine
        return None


def _on_white(pixels: Image.Image) -> Image.Image:
    if pixels.mode != "RGBA":
        return pixels
    paper = Image.new("RGBA", pixels.size, _WHITE)
    return Image.alpha_composite(paper, pixels).convert("RGB")


def _written(pixels: Image.Image, kind: str) -> Picture:
    """The file, with nothing of what the picture's own file said."""
    bare = pixels.copy()
    bare.info.clear()
    out = BytesIO()
    bare.save(out, kind, quality=_QUALITY)
    return Picture(f"image/{kind.lower()}", out.getvalue(), *bare.size)
