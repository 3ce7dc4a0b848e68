"""Pictures are opened beside everything else: one at a time, never at the start, never in the way."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest

from agent.estimate_images import image_size
from agent.messages import ImageBlock
from bridge.runs import picture_file
from bridge.runs.pictures import Pictures
from tests.servers.pictures import cut_png, noise_png, png


def test_what_a_start_does_not_need_is_not_loaded() -> None:
    """Pillow comes with the first picture; httpx would load its command line."""
    code = (
        "import sys, bridge.__main__, bridge.app, channels.telegram.channel\n"
        "later = {'PIL', 'bridge.runs.picture_file', 'rich', 'click', 'jsonschema'}\n"
        "later |= {'prometheus_client'}\n"
        "assert not later & set(sys.modules), later & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("width", "height", "half"),
    [(6_000, 3_000, (784, 392)), (1_568, 10, (784, 5)), (90, 61, (45, 30)), (2, 2, (1, 1))],
)
async def test_half_of_a_picture(width: int, height: int, half: tuple[int, int]) -> None:
    """Of one that was stored before pictures were brought down too."""
    made = await Pictures().smaller(ImageBlock("image/png", png(width, height)))
    assert made is not None
    assert image_size(made.data) == half


@pytest.mark.parametrize("data", [png(1, 1), cut_png(), b"<html>"])
async def test_nothing_is_smaller_than_what_cannot_be_halved(data: bytes) -> None:
    assert await Pictures().smaller(ImageBlock("image/png", data)) is None


async def test_one_is_open_at_a_time_and_nobody_waits_who_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[int] = []
    go_on = threading.Event()
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()
    real = picture_file.fitted

    def slow(data: bytes, *side: int) -> Any:
        opened.append(len(data))
        loop.call_soon_threadsafe(begun.set)
        assert go_on.wait(10)
        return real(data, *side)

    monkeypatch.setattr(picture_file, "fitted", slow)
    pictures = Pictures()
    first = asyncio.create_task(pictures.fit(noise_png(30, 30)))
    await begun.wait()
    others = [asyncio.create_task(pictures.fit(png())) for _ in range(2)]
    await asyncio.sleep(0)
    assert len(opened) == 1
    others[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await others[0]
    go_on.set()
    assert image_size((await first).data) == (30, 30)
    assert image_size((await others[1]).data) == (40, 20)
    assert len(opened) == 2
