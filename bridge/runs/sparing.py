"""Images that a model has refused before: its next request goes out without them."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agent.images import NO_IMAGE, Spared, with_images
from agent.messages import ImageBlock, Message, TextBlock
from bridge.runs.loading import Loaded
from bridge.runs.pictures import Pictures
from memory.conversations import Context
from memory.errors import StoreError
from memory.refused_images import RefusedImage, RefusedImages

log = logging.getLogger(__name__)


class Sparing:
    """For one run on a `context`."""

    def __init__(
        self,
        store: RefusedImages,
        pictures: Pictures,
        *,
        session: int,
        run_id: str,
        context: Context,
    ) -> None:
        self._store = store
        self._pictures = pictures
        self._session = session
        self._run_id = run_id
        self._context = context
        self._whole: dict[ImageBlock, ImageBlock] = {}  # what was sent instead -> the stored one

    async def spare(self, loaded: Loaded, model: str) -> Loaded:
        """What was loaded, with each image as the model is known to take it."""
        messages = [*(m for turn in loaded.working.turns for m in turn), *loaded.resumed]
        if not any(message.images for message in messages):
            return loaded
        known = await self._store.known(self._session, model)
        if not known:
            return loaded
        digests = await asyncio.to_thread(lambda: _digests(_images(messages)))
        instead = {
            image: await self._instead(image, smaller=known[digest])
            for image, digest in digests.items()
            if digest in known
        }
        turns = loaded.working.turns
        return replace(
            loaded,
            working=replace(loaded.working, turns=tuple(_with(turn, instead) for turn in turns)),
            resumed=_with(loaded.resumed, instead),
        )

    async def note(self, model: str, spared: Sequence[Spared]) -> None:
        """The model has taken a request without these. One that was made smaller twice is left out
        next time."""
        stored = ((m.run_id, _images([m.message])) for m in self._context.messages)
        runs = {image: run for run, images in stored for image in images}
        whole = {self._whole.get(one.image, one.image): one for one in spared}
        digests = await asyncio.to_thread(_digests, whole)
        refused = [
            RefusedImage(
                runs.get(image, self._run_id), digests[image], one.smaller and one.image == image
            )
            for image, one in whole.items()
        ]
        try:
            await self._store.note(self._session, model, refused)
        except StoreError as error:
            log.warning("run %s: refused images are found out anew: %s", self._run_id, error)

    async def _instead(self, image: ImageBlock, *, smaller: bool) -> ImageBlock | TextBlock:
        made = await self._pictures.smaller(image) if smaller else None
        if made is None:
            return TextBlock(NO_IMAGE)
        self._whole[made] = image
        return made


def _with(
    messages: Sequence[Message], instead: Mapping[ImageBlock, ImageBlock | TextBlock]
) -> tuple[Message, ...]:
    return tuple(with_images(message, instead) for message in messages)


def _images(messages: Iterable[Message]) -> set[ImageBlock]:
    return {image for message in messages for image in message.images}


def _digests(images: Iterable[ImageBlock]) -> dict[ImageBlock, bytes]:
    return {image: hashlib.sha256(image.data).digest() for image in images}
