"""Halting: waits end, what is under way does not, and a delivery knows where it is."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Delivered
from channels.errors import ChannelUnavailable, ReplyRefused, Uncertain, Unreachable
from channels.parts import Halt, Halted, Parts

FATES = {
    "unavailable": ChannelUnavailable("down"),
    "refused": ReplyRefused("odd"),
    "uncertain": Uncertain("no answer"),
}


async def wait_for_ever(halt: Halt, waiting: asyncio.Event) -> None:
    async with halt.interruptible():
        waiting.set()
        await asyncio.Event().wait()


async def test_every_wait_under_a_halt_ends_with_it() -> None:
    halt = Halt()
    events = [asyncio.Event() for _ in range(3)]
    waits = [asyncio.create_task(wait_for_ever(halt, event)) for event in events]
    await asyncio.gather(*(event.wait() for event in events))
    halt.set()
    halt.set()
    outcomes = await asyncio.gather(*waits, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Halted] * 3


async def test_no_wait_begins_after_a_halt() -> None:
    halt = Halt()
    halt.set()
    with pytest.raises(Halted):
        await wait_for_ever(halt, asyncio.Event())
    with pytest.raises(Halted):
        halt.check()


def test_a_halt_without_a_loop_never_raises() -> None:
    Halt().set()


async def test_a_halt_that_comes_with_the_end_of_a_wait_is_seen_behind_it() -> None:
    halt = Halt()
    with pytest.raises(Halted):
        async with halt.interruptible():
            halt.set()


async def test_a_cancelled_wait_is_cancelled_and_a_time_out_in_it_stays_one() -> None:
    halt, waiting = Halt(), asyncio.Event()
    task = asyncio.create_task(wait_for_ever(halt, waiting))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(TimeoutError):
        async with halt.interruptible():
            raise TimeoutError
    halt.set()


@given(
    fates=st.lists(st.sampled_from(["sent", "unavailable", "refused", "uncertain"]), max_size=6),
    stop_at=st.none() | st.integers(0, 6),
)
def test_each_part_has_one_turn_and_what_arrived_is_counted(
    fates: list[str], stop_at: int | None
) -> None:
    async def main() -> None:
        halt, turns, fresh = Halt(), list[int](), set(range(len(fates)))
        parts = Parts(halt)

        async def deliver(index: int, fate: str) -> None:
            if index == stop_at:
                halt.set()
                halt.check()
            if fate == "unavailable" and index in fresh:
                fresh.discard(index)
                raise FATES[fate]
            turns.append(index)
            if fate in ("refused", "uncertain"):
                raise FATES[fate]

        for _ in range(len(fates) + 1):
            try:
                await parts.send(fates, deliver)
                break
            except ChannelUnavailable:
                continue
        reached = len(fates) if stop_at is None else min(stop_at, len(fates))
        assert turns == list(range(reached))
        sent = sum(fate in ("sent", "unavailable") for fate in fates[:reached])
        trouble = next((FATES[fate] for fate in fates if fate in ("refused", "uncertain")), None)
        if trouble is not None and reached == len(fates):
            with pytest.raises(type(trouble)):
                parts.outcome()
        else:
            assert parts.outcome() == Delivered(sent, len(fates))

    asyncio.run(main())


async def test_a_halted_delivery_that_could_not_reach_the_platform_is_over() -> None:
    halt = Halt()
    parts = Parts(halt)

    async def deliver(index: int, item: str) -> None:
        halt.set()
        raise ChannelUnavailable("down")

    await parts.send(["a", "b"], deliver)
    assert parts.outcome() == Delivered(0, 2)


async def test_an_unreachable_chat_is_raised_at_once() -> None:
    parts = Parts(Halt())

    async def deliver(index: int, item: str) -> None:
        raise Unreachable("gone")

    with pytest.raises(Unreachable):
        await parts.send(["a", "b"], deliver)
