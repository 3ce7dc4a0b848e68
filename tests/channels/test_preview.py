"""The preview's mailbox of one: frames may be skipped, the model never waits, nothing comes late."""

from __future__ import annotations

import asyncio

from channels.preview import Preview


class Platform:
    """What a person sees; frames fail, or take until they are released."""

    def __init__(self, *, failures: int = 0, limit: int = 100) -> None:
        self.frames: list[str] = []
        self.failures = failures
        self.tried = 0
        self.came = asyncio.Event()
        self.began = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()
        self.preview = Preview(self.update, interval_s=0, limit=limit)

    async def update(self, text: str) -> None:
        self.tried += 1
        self.began.set()
        await self.open.wait()
        if self.failures:
            self.failures -= 1
            self.came.set()
            raise ConnectionError("busy")
        self.frames.append(text)
        self.came.set()

    async def next_frame(self) -> None:
        async with asyncio.timeout(10):
            await self.came.wait()
        self.came.clear()


async def test_frames_are_skipped_while_the_platform_is_slow() -> None:
    platform = Platform()
    platform.open.clear()
    for letter in "abcdef":
        platform.preview.show(letter)
        await asyncio.sleep(0)
    platform.open.set()
    while "abcdef" not in platform.frames:
        await platform.next_frame()
    await platform.preview.close()
    assert len(platform.frames) == 2


async def test_nothing_is_sent_after_close_and_a_frame_under_way_is_waited_for() -> None:
    platform = Platform()
    platform.open.clear()
    platform.preview.show("a")
    await platform.began.wait()
    closing = asyncio.ensure_future(platform.preview.close())
    await asyncio.sleep(0)
    assert not closing.done()
    platform.open.set()
    await closing
    platform.preview.show("b")
    platform.preview.refresh_in(0)
    await asyncio.sleep(0)
    assert platform.frames == ["a"]


async def test_a_refused_frame_comes_again_on_request_also_when_the_message_is_full() -> None:
    platform = Platform(failures=1, limit=3)
    platform.preview.show("abcdef")
    await platform.next_frame()
    assert platform.frames == []
    platform.preview.refresh_in(0)
    await platform.next_frame()
    await platform.preview.close()
    assert platform.frames == ["abc"]


async def test_a_refresh_shows_that_there_is_no_text_yet_and_white_space_alone_does_not() -> None:
    platform = Platform()
    platform.preview.show("\n")
    await asyncio.sleep(0)
    assert platform.tried == 0
    platform.preview.refresh_in(0)
    await platform.next_frame()
    await platform.preview.close()
    assert platform.frames == ["\n"]


async def test_closing_does_not_wait_for_the_time_of_the_next_frame() -> None:
    platform = Platform()
    preview = Preview(platform.update, interval_s=3600, limit=100)
    preview.show("a")
    await platform.next_frame()
    await asyncio.sleep(0)  # now it pauses
    closing = asyncio.ensure_future(preview.close())
    for _ in range(5):  # turns of the loop, no clock
        await asyncio.sleep(0)
    assert closing.done()
