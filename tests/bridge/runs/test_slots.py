"""Runs that wait for a slot are taken by turns over people, and one chat does not take all."""

from __future__ import annotations

import asyncio

from bridge.runs.slots import Slots


async def test_people_take_turns_however_much_one_of_them_asks() -> None:
    slots, order, go_on = Slots(1), list[str](), asyncio.Event()

    async def run(name: str) -> None:
        async with slots.one(("t", "bot", name), ("t", name[0])):
            order.append(name)
            await go_on.wait()

    async with asyncio.TaskGroup() as group:
        for name in ("a1", "a2", "a3", "b1", "c1", "b2"):
            group.create_task(run(name))
            await asyncio.sleep(0)
        assert order == ["a1"]
        go_on.set()
    assert order == ["a1", "a2", "b1", "c1", "a3", "b2"]


async def test_one_chat_has_a_share_and_who_is_stopped_waits_no_more() -> None:
    slots, running, go_on = Slots(3, 2), list[str](), asyncio.Event()

    async def run(chat: str, person: str) -> None:
        async with slots.one(("t", "bot", chat), ("t", person)):
            running.append(chat + person)
            await go_on.wait()

    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(run("x", person)) for person in "abcd"]
        await asyncio.sleep(0)
        group.create_task(run("y", "e"))
        await asyncio.sleep(0.0)
        await asyncio.sleep(0.0)
        assert running == ["xa", "xb", "ye"]
        waiting[2].cancel()
        go_on.set()
    assert running == ["xa", "xb", "ye", "xd"]
