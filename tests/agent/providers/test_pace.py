"""How often streams are read, in virtual time: a loop whose clock jumps to the next timer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

from agent.deadlines import StreamWatch
from agent.messages import assistant_text
from agent.provider import Completed, ModelRequest, StreamEvent, TextDelta
from agent.providers.client import LONGEST_PAUSE_S, READS_PER_S, SdkProvider
from agent.settings import ProviderSettings
from tests.virtual_time import in_virtual_time

REQUEST = ModelRequest("test-model", "", (), (), 100)


class Ready(SdkProvider[str]):
    """All of its answer is there at once."""

    def _build(self) -> str:
        return "client"

    async def _events(
        self, client: str, request: ModelRequest, watch: StreamWatch
    ) -> AsyncGenerator[StreamEvent]:
        for number in range(1000):
            yield TextDelta(f"{number} ")
        yield Completed(assistant_text("all"), "end", None)


async def read(others: int) -> tuple[list[float], float]:
    """When each piece of an answer came beside so many open streams, and when it was all there."""
    provider = Ready("p", ProviderSettings(kind="openai", base_url="http://127.0.0.1:1"))
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        for _ in range(others):
            await stack.enter_async_context(provider.stream(REQUEST))
        events = await stack.enter_async_context(provider.stream(REQUEST))
        began = loop.time()
        times = [loop.time() - began async for event in events if isinstance(event, TextDelta)]
        return times, loop.time() - began


def test_an_answer_that_streams_alone_is_never_held_up() -> None:
    times, all_there = in_virtual_time(lambda: read(others=0))
    assert (len(times), all_there) == (1000, 0.0)


def test_beside_others_the_first_words_come_at_once_and_nothing_that_is_there_waits_twice() -> None:
    times, all_there = in_virtual_time(lambda: read(others=4))
    assert (len(times), times[0], all_there) == (1000, 0.0, 4 / READS_PER_S)


def test_however_many_stream_a_pause_is_short() -> None:
    times, _ = in_virtual_time(lambda: read(others=500))
    assert times[1] == LONGEST_PAUSE_S
