"""Pictures: whatever people send, what goes on is within every provider's limits, or is refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import ExifTags, Image, PngImagePlugin

from agent.estimate_images import image_size
from bridge.runs.picture_file import LONGEST_SIDE, MOST_BYTES, MOST_PIXELS, Picture, fitted
from channels.errors import FileRefused
from channels.media import image_type
from tests.servers.pictures import huge_png

MODES = {
    "PNG": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"),
    "JPEG": ("L", "RGB", "CMYK"),
    "GIF": ("1", "L", "P", "RGB"),
    "WEBP": ("RGB", "RGBA"),
}
kinds = st.sampled_from([(kind, mode) for kind, modes in MODES.items() for mode in modes])
sides = st.integers(1, 120)


def noise(mode: str, size: tuple[int, int]) -> Image.Image:
    """A picture that no format makes small."""
    channels = {"1": 1, "L": 1, "LA": 2, "P": 1, "RGB": 3, "RGBA": 4, "CMYK": 4, "I;16": 2}[mode]
    if mode == "1":
        return noise("L", size).convert("1")
    data = random.Random(7).randbytes(size[0] * size[1] * channels)
    image = Image.frombytes(mode, size, data)
    if mode == "P":
        image.putpalette(list(range(256)) * 3)
    return image


def written(image: Image.Image, kind: str, **options: Any) -> bytes:
    out = BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def opened(picture: Picture) -> Image.Image:
    """Read anew, with all that its file says."""
    image = Image.open(BytesIO(picture.data))
    image.load()
    assert image.size == (picture.width, picture.height) == image_size(picture.data)
    assert picture.media_type == image_type(picture.data)
    return image


def located() -> Image.Exif:
    exif = Image.Exif()
    exif.get_ifd(ExifTags.IFD.GPSInfo)[ExifTags.GPS.GPSLatitudeRef] = "N"
    exif[ExifTags.Base.Make] = "ACME camera"
    return exif


def small(mode: str = "RGB") -> Image.Image:
    return Image.new(mode, (40, 20), "teal")


@settings(deadline=None)
@given(kinds, sides, sides, st.integers(1, 90), st.booleans(), st.integers(0, 9))
@example(("JPEG", "RGB"), 4_000, 1, LONGEST_SIDE, True, 6)
@example(("JPEG", "CMYK"), 3_000, 1_700, LONGEST_SIDE, False, 0)
@example(("PNG", "RGBA"), LONGEST_SIDE, LONGEST_SIDE, LONGEST_SIDE, False, 0)
@example(("PNG", "I;16"), 1_600, 1_200, LONGEST_SIDE, False, 0)
def test_every_picture_comes_within_the_limits_in_its_own_shape(
    how: tuple[str, str], width: int, height: int, side: int, located_too: bool, held: int
) -> None:
    kind, mode = how
    exif = located() if located_too else Image.Exif()
    if held:
        exif[ExifTags.Base.Orientation] = held
    about = {"exif": exif} if kind != "GIF" else {}
    picture = fitted(written(noise(mode, (width, height)), kind, **about), side)

    image = opened(picture)
    assert max(image.size) == min(side, max(width, height))
    assert len(picture.data) <= MOST_BYTES
    assert not {"exif", "xmp", "comment"} & set(image.info)
    if kind != "GIF" and held in (5, 6, 7, 8):
        width, height = height, width
    scale = min(1.0, side / max(width, height))
    for is_now, was in zip(image.size, (width, height), strict=True):
        assert abs(is_now - was * scale) <= 1
    assert fitted(picture.data).data == picture.data, "it is done once"


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_what_is_fit_already_comes_back_byte_for_byte(kind: str) -> None:
    data = written(small(), kind)
    assert fitted(data).data == data


XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><GPS>48.1</GPS></x:xmpmeta>'


def text_of_a_png() -> PngImagePlugin.PngInfo:
    text = PngImagePlugin.PngInfo()
    text.add_text("Comment", "GPS 48.1")
    return text


@pytest.mark.parametrize(
    ("kind", "about"),
    [
        ("JPEG", lambda: {"exif": located()}),
        ("JPEG", lambda: {"xmp": XMP}),
        ("JPEG", lambda: {"comment": "GPS 48.1"}),
        ("PNG", lambda: {"exif": located()}),
        ("PNG", lambda: {"pnginfo": text_of_a_png()}),
        ("GIF", lambda: {"comment": "GPS 48.1"}),
        ("WEBP", lambda: {"exif": located()}),
        ("WEBP", lambda: {"xmp": XMP}),
    ],
)
def test_nothing_goes_on_that_says_where_and_with_what_it_was_taken(
    kind: str, about: Callable[[], dict[str, Any]]
) -> None:
    data = written(small(), kind, **about())
    assert b"ACME" in data or b"GPS" in data
    picture = fitted(data)
    assert b"ACME" not in picture.data
    assert b"GPS" not in picture.data
    assert opened(picture).size == (40, 20)


def test_a_screenshot_loses_its_text_and_not_one_of_its_pixels() -> None:
    image = noise("RGB", (300, 200))
    picture = fitted(written(image, "PNG", pnginfo=text_of_a_png()))
    assert picture.media_type == "image/png"
    assert opened(picture).tobytes() == image.tobytes()


@pytest.mark.parametrize("held", range(1, 9))
@pytest.mark.parametrize(
    ("kind", "longest"), [("JPEG", 200), ("PNG", 200), ("WEBP", 200), ("JPEG", 3_200)]
)
def test_a_picture_stands_upright(kind: str, held: int, longest: int) -> None:
    """The corner at the top left is red, wherever the camera's own top was."""
    height = longest // 2
    upright = Image.new("RGB", (longest, height), "white")
    upright.paste("red", (0, 0, longest // 4, height // 4))
    turn = Image.Transpose
    as_taken = {
        2: turn.FLIP_LEFT_RIGHT,
        3: turn.ROTATE_180,
        4: turn.FLIP_TOP_BOTTOM,
        5: turn.TRANSPOSE,
        6: turn.ROTATE_90,
        7: turn.TRANSVERSE,
        8: turn.ROTATE_270,
    }.get(held)
    taken = upright if as_taken is None else upright.transpose(as_taken)
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = held
    image = opened(fitted(written(taken, kind, exif=exif))).convert("RGB")
    width, height = image.size
    assert width == 2 * height
    assert [_is_red(image, at) for at in ((5, 5), (width - 5, 5), (5, height - 5))] == [
        True,
        False,
        False,
    ]


def _is_red(image: Image.Image, at: tuple[int, int]) -> bool:
    red, green, _ = image.getpixel(at)  # type: ignore[misc]
    return red > 200 and green < 60


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_broken_exif_spoils_no_picture() -> None:
    data = written(small(), "JPEG", exif=b"Exif\0\0MM\0\x2a\xff\xff\xff\xffACME")
    picture = fitted(data)
    assert b"ACME" not in picture.data
    assert opened(picture).size == (40, 20)


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP"])
def test_of_a_moving_picture_the_first_frame_stays(kind: str) -> None:
    frames = [Image.new("RGB", (30, 30), colour) for colour in ("red", "blue")]
    picture = fitted(written(frames[0], kind, save_all=True, append_images=frames[1:]))
    image = opened(picture)
    assert not getattr(image, "is_animated", False)
    assert _is_red(image.convert("RGB"), (15, 15))


def test_what_shows_through_stays_so_while_it_fits() -> None:
    clear = Image.new("RGBA", (3_000, 1_500), (255, 0, 0, 0))
    picture = fitted(written(clear, "PNG"))
    assert (picture.media_type, picture.width) == ("image/png", LONGEST_SIDE)
    assert opened(picture).getchannel("A").getextrema() == (0, 0)
    large = noise("RGBA", (LONGEST_SIDE, LONGEST_SIDE))
    large.paste((0, 0, 0, 0), (0, 0, 100, 100))
    picture = fitted(written(large, "PNG"))
    assert picture.media_type == "image/jpeg"
    assert min(opened(picture).getpixel((50, 50))) > 250, "clear is white then, not black"  # type: ignore[arg-type]


def test_a_large_screenshot_in_which_nothing_shows_through_becomes_a_jpeg() -> None:
    picture = fitted(written(noise("RGBA", (2_000, 1_000)).convert("RGB").convert("RGBA"), "PNG"))
    assert (picture.media_type, picture.width, picture.height) == ("image/jpeg", 1_568, 784)


def test_sixteen_bits_keep_their_greys() -> None:
    grey = Image.new("I;16", (20, 20), 0x8000)
    assert opened(fitted(written(grey, "PNG"))).convert("L").getpixel((5, 5)) == 128


def test_the_worst_that_a_jpeg_can_hold_fits() -> None:
    """Black and white dots at random: nothing takes more bytes."""
    bits = random.Random(3).randbytes(3 * LONGEST_SIDE**2)
    dots = Image.frombytes("RGB", (LONGEST_SIDE,) * 2, bits).point(lambda v: 255 * (v > 127))
    picture = fitted(written(dots, "PNG"))
    assert len(picture.data) <= MOST_BYTES
    assert picture.media_type == "image/png", "two values a channel: no need for a JPEG"
    picture = fitted(written(dots, "WEBP", lossless=True, method=0, quality=0, exif=located()))
    assert picture.media_type == "image/jpeg"
    assert 2_000_000 < len(picture.data) <= MOST_BYTES


@pytest.mark.parametrize(
    "data",
    [
        huge_png(MOST_PIXELS // 1_000 + 1, 1_000),
        huge_png(2**31 - 1, 2**31 - 1),
        b"GIF89a\xff\xff\xff\xff" + bytes(20),
    ],
)
def test_a_picture_that_would_fill_the_memory_is_never_opened(data: bytes) -> None:
    with pytest.raises(FileRefused) as caught:
        fitted(data)
    assert (caught.value.reason, caught.value.limit) == ("too_many_pixels", "65")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
@pytest.mark.parametrize("part", [0.05, 0.5, 0.9])
def test_half_a_file_is_refused(kind: str, part: float) -> None:
    data = written(noise("RGB", (64, 64)), kind)
    with pytest.raises(FileRefused) as caught:
        fitted(data[: int(len(data) * part)])
    assert caught.value.reason == "broken_picture"


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@settings(deadline=None)
@given(
    st.sampled_from(["PNG", "JPEG", "GIF", "WEBP"]),
    st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 255)), min_size=1, max_size=8),
)
def test_damage_ends_in_a_picture_or_a_refusal(kind: str, damage: list[tuple[int, int]]) -> None:
    about = {} if kind == "GIF" else {"exif": located()}
    data = bytearray(written(noise("RGB", (24, 24)), kind, **about))
    for place, value in damage:
        data[place % len(data)] = value
    with suppress(FileRefused):
        picture = fitted(bytes(data))
        assert max(picture.width, picture.height) <= LONGEST_SIDE
        assert len(picture.data) <= MOST_BYTES


@pytest.mark.parametrize("data", [b"", b"<!DOCTYPE html>", b"BM" + bytes(60), b"II*\0" + bytes(60)])
def test_what_is_no_picture_is_refused(data: bytes) -> None:
    with pytest.raises(FileRefused) as caught:
        fitted(data)
    assert caught.value.reason == "no_picture"
