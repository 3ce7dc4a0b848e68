"""What every `ReplySink` promises about a reply of several parts and about its end in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import pytest

from channels.base import Delivered, OutboundReply
from channels.errors import ChannelUnavailable
from channels.telegram import deliver
from tests.contracts.sinks import HELD, HeldRig, NoticeRig, Rig, console

Open = Callable[[], AbstractAsyncContextManager[Rig]]
OpenHeld = Callable[[], AbstractAsyncContextManager[HeldRig]]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliver, "_AGAIN_S", (0.01,))


@pytest.fixture(params=[console, *HELD], ids=lambda opened: opened.__name__)
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    opened: Open = request.param
    async with opened() as one:
        yield one


@pytest.fixture(params=HELD, ids=lambda opened: opened.__name__)
async def held(request: pytest.FixtureRequest) -> AsyncIterator[HeldRig]:
    opened: OpenHeld = request.param
    async with opened() as one:
        yield one


async def test_a_whole_reply_counts_its_messages_and_documents(rig: Rig) -> None:
    if isinstance(rig, NoticeRig):
        assert await rig.sink.finish(rig.answer(2)) == Delivered(2, 2)
        return  # what one person alone is shown has no documents
    delivered = await rig.sink.finish(rig.answer(1, documents=1))
    assert delivered == Delivered(2, 2)
    assert delivered.complete
    assert rig.arrived() == "a."


async def test_a_blank_reply_has_no_parts_and_is_complete(rig: Rig) -> None:
    delivered = await rig.sink.finish(OutboundReply(" \n"))
    assert delivered == Delivered(0, 0)
    assert delivered.complete
    assert rig.arrived() == ""


async def test_a_halt_before_the_end_begins_leaves_all_of_it_unsent(rig: Rig) -> None:
    rig.sink.halt()
    rig.sink.halt()
    rig.sink.show("too late")
    delivered = await rig.sink.finish(rig.answer(1, documents=2))
    assert delivered == Delivered(0, 3)
    assert not delivered.complete
    assert rig.arrived() == ""


async def test_a_halt_after_the_end_does_nothing(rig: Rig) -> None:
    reply = rig.answer(1)
    assert await rig.sink.finish(reply) == Delivered(1, 1)
    rig.sink.halt()
    assert rig.arrived() == "a"


async def test_a_reply_of_several_parts_arrives_in_order(held: HeldRig) -> None:
    assert await held.sink.finish(held.answer(3)) == Delivered(3, 3)
    assert held.arrived() == "abc"


async def test_a_halt_ends_the_wait_for_the_third_of_five_parts(held: HeldRig) -> None:
    held.hold(2)
    finishing = asyncio.create_task(held.sink.finish(held.answer(5)))
    await held.held()
    held.sink.halt()
    assert await finishing == Delivered(2, 5)
    assert held.arrived() == "ab"


async def test_a_halt_between_two_tries_leaves_the_rest_unsent(held: HeldRig) -> None:
    reply = held.answer(5)
    with pytest.raises(ChannelUnavailable):
        await held.lose(reply, 2)
    held.sink.halt()
    assert await held.sink.finish(reply) == Delivered(2, 5)
    assert held.arrived() == "ab"
