"""Halting: waits end, what is under way does not, and a delivery knows where it is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Delivered, ReplyPart
from channels.errors import ChannelUnavailable, NotStored, ReplyRefused, Uncertain, Unreachable
from channels.parts import NUMBER_ROOM, Halt, Halted, Parts, Passage, numbered

FATES = {
    "unavailable": ChannelUnavailable("down"),
    "refused": ReplyRefused("odd"),
    "uncertain": Uncertain("no answer"),
}
TROUBLES = {"refused": ReplyRefused, "uncertain": Uncertain, "was lost": Uncertain}
EARLIER: Mapping[str, Literal["sent", "lost"]] = {"was sent": "sent", "was lost": "lost"}


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


def opened(count: int) -> list[ReplyPart]:
    return [ReplyPart(str(number)) for number in range(count)]


class Journal:
    """What it heard. The first `faults` tries cannot be stored."""

    def __init__(self, faults: int = 0) -> None:
        self.heard: list[str] = []
        self.faults = faults

    async def showing(self) -> None:
        raise AssertionError("parts know no previews")

    async def previewed(self, message_id: str) -> bool:
        raise AssertionError("parts know no previews")

    async def leaving(self, number: int) -> None:
        if self.faults:
            self.faults -= 1
            raise NotStored("the disk is full")
        self.heard.append(f"leaving {number}")

    async def stayed(self, number: int) -> None:
        self.heard.append(f"stayed {number}")

    async def ended(self, number: int, how: str, message_id: str | None) -> None:
        self.heard.append(f"{how} {number} {message_id}")


@given(
    fates=st.lists(
        st.sampled_from(["sent", "unavailable", "refused", "uncertain", "was sent", "was lost"]),
        max_size=6,
    ),
    stop_at=st.none() | st.integers(0, 6),
)
def test_each_part_has_one_turn_and_what_arrived_is_counted(
    fates: list[str], stop_at: int | None
) -> None:
    async def main() -> None:
        halt, turns, fresh = Halt(), list[int](), set(range(len(fates)))
        parts = Parts(halt)

        async def deliver(number: int, part: ReplyPart, passage: Passage) -> None:
            fate = part.body
            if number == stop_at:
                halt.set()
                halt.check()
            if fate == "unavailable" and number in fresh:
                fresh.discard(number)
                raise FATES[fate]
            turns.append(number)
            if fate in ("refused", "uncertain"):
                raise FATES[fate]

        stored = [ReplyPart(fate, EARLIER.get(fate, "open")) for fate in fates]
        for _ in range(len(fates) + 1):
            try:
                await parts.send(stored, deliver)
                break
            except ChannelUnavailable:
                continue
        halted = stop_at is not None and stop_at < len(fates) and fates[stop_at] not in EARLIER
        reached = stop_at if halted and stop_at is not None else len(fates)
        assert turns == [n for n in range(reached) if fates[n] not in EARLIER]
        sent = sum(fate in ("sent", "unavailable", "was sent") for fate in fates[:reached])
        trouble = [TROUBLES[fate] for fate in fates if fate in TROUBLES]
        if trouble and reached == len(fates):
            with pytest.raises(trouble[0]):
                parts.outcome()
        else:
            assert parts.outcome() == Delivered(sent, len(fates))

    asyncio.run(main())


async def test_a_halted_delivery_that_could_not_reach_the_platform_is_over() -> None:
    halt = Halt()
    parts = Parts(halt)

    async def deliver(number: int, part: ReplyPart, passage: Passage) -> None:
        halt.set()
        raise ChannelUnavailable("down")

    await parts.send(opened(2), deliver)
    assert parts.outcome() == Delivered(0, 2)


async def test_an_unreachable_chat_is_raised_at_once() -> None:
    parts = Parts(Halt())

    async def deliver(number: int, part: ReplyPart, passage: Passage) -> None:
        raise Unreachable("gone")

    with pytest.raises(Unreachable):
        await parts.send(opened(2), deliver)


async def test_a_journal_hears_of_each_try_and_of_each_end() -> None:
    journal, tries = Journal(), iter(["unavailable", "sent", "refused", "uncertain"])
    parts = Parts(Halt(), journal)

    async def deliver(number: int, part: ReplyPart, passage: Passage) -> str:
        await passage.leaving()
        fate = next(tries)
        if fate == "unavailable":
            await passage.stayed()
            await passage.stayed()  # where it was heard already
        if fate in FATES:
            raise FATES[fate]
        return f"id {number}"

    with pytest.raises(ChannelUnavailable):
        await parts.send(opened(3), deliver)
    await parts.send(opened(3), deliver)
    assert journal.heard == [
        *("leaving 0", "stayed 0", "leaving 0", "sent 0 id 0"),
        *("leaving 1", "refused 1 None", "leaving 2", "uncertain 2 None"),
    ]


async def test_a_part_that_a_halt_meets_between_two_tries_has_stayed() -> None:
    journal, halt = Journal(), Halt()
    parts = Parts(halt, journal)

    async def deliver(number: int, part: ReplyPart, passage: Passage) -> None:
        await passage.leaving()
        halt.set()
        passage.check()

    await parts.send(opened(2), deliver)
    assert journal.heard == ["leaving 0", "stayed 0"]


async def test_what_cannot_be_stored_does_not_leave_until_it_can() -> None:
    journal = Journal(faults=1)
    parts, left = Parts(Halt(), journal), list[int]()

    async def deliver(number: int, part: ReplyPart, passage: Passage) -> None:
        await passage.leaving()
        left.append(number)

    with pytest.raises(NotStored):
        await parts.send(opened(2), deliver)
    assert (left, journal.heard, parts.begun) == ([], [], False)
    await parts.send(opened(2), deliver)
    assert left == [0, 1]
    assert parts.outcome() == Delivered(2, 2)


async def test_parts_of_an_earlier_process_are_heard_of_no_more() -> None:
    journal = Journal()
    parts = Parts(Halt(), journal)

    async def deliver(number: int, part: ReplyPart, passage: Passage) -> None:
        raise AssertionError("they had their turn")

    await parts.send([ReplyPart("a", "sent", "1"), ReplyPart("b", "lost")], deliver)
    assert journal.heard == []
    with pytest.raises(Uncertain):
        parts.outcome()


@given(number=st.integers(0, 998), of=st.integers(2, 999))
def test_a_number_has_room(number: int, of: int) -> None:
    assert len(numbered(number, of)) <= NUMBER_ROOM
    assert numbered(number, 1) == ""
