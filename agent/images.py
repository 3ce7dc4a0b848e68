"""Images that a model refuses: made smaller, then left out, one after the other.

The one that the provider names, else those of the newest message that has any, at last all; of too
many the oldest are left out. What was changed is noted once a model has taken the rest, so that no
later run sends it again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from agent.context import Turn, map_blocks
from agent.messages import Block, ImageBlock, Message, TextBlock, ToolResultBlock

NO_IMAGE = "[An image was here that the model could not take.]"
MOST_SINGLE = 6  # refusals in a row that are about some of the images; then all of them are meant

# Gives a smaller version of an image; None where there is none.
Shrink = Callable[[ImageBlock], Awaitable[ImageBlock | None]]


@dataclass(frozen=True, slots=True)
class Spared:
    """An image that a model, by the configuration's name, is not sent as it is: it gets a smaller one,
    or none."""

    image: ImageBlock
    smaller: bool


class Copy(Protocol):
    """What of a working copy is changed here."""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns as they stand."""
        ...

    def replace_images(self, images: Mapping[ImageBlock, ImageBlock | TextBlock]) -> bool:
        """Put something else in the place of these; whether that changed anything."""
        ...


class ImageMending:
    """The images of one run's requests to one model after the other."""

    def __init__(self, working: Copy, shrink: Shrink) -> None:
        self._working = working
        self._shrink = shrink
        self._made_of: dict[ImageBlock, ImageBlock] = {}  # a smaller one -> the whole one
        self._changed: dict[ImageBlock, bool] = {}  # a whole one -> whether a smaller one stands in
        self._refusals = 0

    async def mend(self, named: bytes | None, most: int | None) -> bool:
        """After a refusal of the image with these bytes, of more than `most`, or of one that nobody
        names; false when there is none left that can be changed."""
        self._refusals += 1
        groups = list(_by_message(self._working.turns))
        if not groups:
            return False
        all_ = [image for group in groups for image in group]
        kept = all_ if most is None else all_[max(0, len(all_) - most) :]
        if too_many := [image for image in all_ if image not in kept]:
            return self._leave_out(too_many)
        all_ = list(dict.fromkeys(all_))
        meant = [image for image in all_ if image.data == named] or groups[-1]
        chosen = meant if self._refusals <= MOST_SINGLE else all_
        return await self._smaller(chosen) or self._leave_out(chosen)

    def taken(self) -> list[Spared]:
        """What was changed since the last time: a model has taken the rest."""
        spared = [Spared(image, smaller) for image, smaller in self._changed.items()]
        self.forget()
        return spared

    def forget(self) -> None:
        """Another model is asked: what the last one refuses is not known."""
        self._changed.clear()
        self._refusals = 0

    async def _smaller(self, images: Sequence[ImageBlock]) -> bool:
        """Each once; whether there was one that can be made smaller."""
        whole = [image for image in images if image not in self._made_of]
        made = [(image, await self._shrink(image)) for image in whole]
        less = {image: smaller for image, smaller in made if smaller is not None}
        self._made_of |= {smaller: image for image, smaller in less.items()}
        self._changed |= dict.fromkeys(less, True)
        return self._working.replace_images(less)

    def _leave_out(self, images: Iterable[ImageBlock]) -> bool:
        out = list(images)
        self._changed |= {self._made_of.get(image, image): False for image in out}
        return self._working.replace_images(dict.fromkeys(out, TextBlock(NO_IMAGE)))


def _by_message(turns: Iterable[Turn]) -> Iterator[list[ImageBlock]]:
    """The images of each message that has any, oldest first."""
    for turn in turns:
        for message in turn:
            if message.images:
                yield list(message.images)


def with_images(message: Message, images: Mapping[ImageBlock, ImageBlock | TextBlock]) -> Message:
    """The message with something else in the place of these images; itself where it has none."""

    def change(block: Block) -> Block:
        match block:
            case ImageBlock():
                return images.get(block, block)
            case ToolResultBlock():
                parts = tuple(
                    images.get(part, part) if isinstance(part, ImageBlock) else part
                    for part in block.content
                )
                return block if parts == block.content else replace(block, content=parts)
            case _:
                return block

    return map_blocks(message, change)
