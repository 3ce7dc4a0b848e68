"""Pictures made fit for models, beside everything else that goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agent.estimate_images import image_size
from agent.messages import ImageBlock
from channels.errors import FileRefused


class Pictures:
    """One at a time: a large one takes some hundred megabytes while it is open. `room`: whether the
    disk has room for files; asked in a thread."""

    def __init__(self, room: Callable[[], bool] = lambda: True) -> None:
        self._one = asyncio.Lock()
        self._room = room

    async def check_room(self) -> None:
        """Before a file is fetched. Raises `FileRefused` when what room there is is left to words."""
        if not await asyncio.to_thread(self._room):
            raise FileRefused("disk_full")

    async def fit(self, data: bytes) -> ImageBlock:
        """The picture as it is stored and sent. Raises `FileRefused`."""
        async with self._one:
            return await asyncio.to_thread(_fit, data)

    async def smaller(self, image: ImageBlock) -> ImageBlock | None:
        """Half as many pixels on each side; None when that changes nothing, or cannot be done."""
        async with self._one:
            try:
                made = await asyncio.to_thread(_halve, image.data)
            except FileRefused:
                return None
        return None if made.data == image.data else made


# Pillow is loaded with the first picture, in its thread: the start does not wait for it.


def _fit(data: bytes) -> ImageBlock:
    from bridge.runs.picture_file import fitted

    made = fitted(data)
    return ImageBlock(made.media_type, made.data)


def _halve(data: bytes) -> ImageBlock:
    from bridge.runs.picture_file import LONGEST_SIDE, fitted

    longest = min(LONGEST_SIDE, max(image_size(data) or (LONGEST_SIDE,)))
    made = fitted(data, max(1, longest // 2))
    return ImageBlock(made.media_type, made.data)
