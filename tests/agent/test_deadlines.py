"""When a stream counts as silent, in virtual time: a loop whose clock jumps to the next timer."""

from __future__ import annotations

import asyncio

import pytest

from agent.deadlines import DeadlineExceeded, StreamWatch
from agent.provider import Deadlines
from tests.virtual_time import VirtualLoop, in_virtual_time

LIMITS = Deadlines(first_s=120, between_s=60, total_s=900)


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize(
    ("beats", "which", "at"),
    [
        ([], "first_chunk_s", 120),
        ([0], "between_chunks_s", 60),
        ([119], "between_chunks_s", 179),
        ([100, 50, 59], "between_chunks_s", 269),
        ([59] * 15, "total_s", 900),
    ],
)
def test_each_deadline_ends_the_stream_at_its_time(
    beats: list[float], which: str, at: float
) -> None:
    async def read() -> None:
        async with StreamWatch(LIMITS) as watch:
            for pause in beats:
                await asyncio.sleep(pause)
                watch.beat()
            await asyncio.Event().wait()

    async def main() -> tuple[str, float]:
        with pytest.raises(DeadlineExceeded) as caught:
            await read()
        return caught.value.which, round(now())

    assert in_virtual_time(main) == (which, at)


@pytest.mark.parametrize(
    ("chunks", "pings", "which", "at"),
    [
        (0, [], "first_chunk_s", 120),
        (0, [119], "first_chunk_s", 239),
        (1, [59, 59], "between_chunks_s", 178),
        (1, [15] * 80, "total_s", 900),
    ],
)
def test_a_provider_that_pings_is_alive_and_one_that_only_pings_ends_in_time(
    chunks: int, pings: list[float], which: str, at: float
) -> None:
    async def read() -> None:
        async with StreamWatch(LIMITS) as watch:
            for _ in range(chunks):
                watch.beat()
            for pause in pings:
                await asyncio.sleep(pause)
                watch.alive()
            await asyncio.Event().wait()

    async def main() -> tuple[str, float]:
        with pytest.raises(DeadlineExceeded) as caught:
            await read()
        return caught.value.which, round(now())

    assert in_virtual_time(main) == (which, at)


def test_many_chunks_set_few_timers() -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        async with StreamWatch(LIMITS) as watch:
            for _ in range(8_000):
                await asyncio.sleep(0.01)
                watch.beat()
        return loop.timers - 8_000  # those of the sleeps

    assert in_virtual_time(main) <= 3


def test_nothing_fires_after_the_stream_is_left() -> None:
    async def main() -> float:
        async with StreamWatch(LIMITS) as watch:
            watch.beat()
        await asyncio.sleep(10_000)
        return now()

    assert in_virtual_time(main) == 10_000


def test_an_error_inside_passes_through() -> None:
    async def main() -> None:
        with pytest.raises(KeyError):
            async with StreamWatch(LIMITS):
                raise KeyError

    in_virtual_time(main)


def test_a_cancel_from_outside_stays_a_cancel() -> None:
    async def main() -> int:
        started = asyncio.Event()

        async def read() -> None:
            async with StreamWatch(LIMITS) as watch:
                watch.beat()
                started.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(read())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return task.cancelling()

    assert in_virtual_time(main) == 1


@pytest.mark.parametrize("cancel_at", [119.0, 120.0, 121.0])
def test_a_cancel_at_the_same_instant_as_a_deadline_is_never_swallowed(cancel_at: float) -> None:
    """The reader cleans up for a while, so that the second of the two meets the first's work."""

    async def main() -> str:
        async def read() -> None:
            async with StreamWatch(LIMITS):
                try:
                    await asyncio.Event().wait()
                finally:
                    await asyncio.sleep(5)

        task = asyncio.create_task(read())
        asyncio.get_running_loop().call_at(cancel_at, task.cancel)
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        return type(outcome).__name__

    assert in_virtual_time(main) == "CancelledError"


def test_a_deadline_leaves_the_task_fit_for_timeouts_and_cancels() -> None:
    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        for _ in range(2):
            with pytest.raises(DeadlineExceeded):
                async with StreamWatch(LIMITS):
                    await asyncio.Event().wait()
            assert task.cancelling() == 0
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await asyncio.Event().wait()

    in_virtual_time(main)


def test_a_timeout_around_the_stream_is_not_taken_for_a_deadline() -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(30), StreamWatch(LIMITS):
                await asyncio.Event().wait()
        assert not isinstance(caught.value, DeadlineExceeded)

    in_virtual_time(main)
