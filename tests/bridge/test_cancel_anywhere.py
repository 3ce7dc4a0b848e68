"""A cancel at any await of a turn: the history stays legal, nothing comes after "Stopped.", and the
conversation goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent.history import repair, violations
from agent.messages import JsonObject
from agent.testing import calls
from agent.tools import ToolContext, ToolOutput, ToolSpec
from bridge.runs.loading import load
from tests.bridge.bed import Bed, bed

MOST = 60  # accesses of the store in one turn; there are fewer


class Slow:
    spec = ToolSpec("pay", "Pays.", {"type": "object"}, side_effects=True)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        for _ in range(5):
            await asyncio.sleep(0)
        return ToolOutput.of("paid")


class StopAt:
    """Sends /cancel some turns of the event loop after the k-th access of the store has begun."""

    def __init__(self, it: Bed, k: int, turns: int) -> None:
        self._it = it
        self._k = k
        self._turns = turns
        self._count = 0
        self.sent: asyncio.Task[None] | None = None
        database: Any = it.database
        for name in ("read", "write"):
            setattr(database, name, self._counted(getattr(database, name)))

    def _counted(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counted(*arguments: Any) -> Any:
            self._count += 1
            if self._count == self._k and self.sent is None:
                self.sent = asyncio.create_task(self._stop())
            return await method(*arguments)

        return counted

    async def _stop(self) -> None:
        for _ in range(self._turns):
            await asyncio.sleep(0)
        await self._it.send("/cancel")


@pytest.mark.parametrize("turns", [0, 1, 2, 4])
async def test_a_cancel_at_any_await_leaves_a_conversation_that_goes_on(
    tmp_path: Path, turns: int
) -> None:
    for k in range(1, MOST):
        folder = tmp_path / str(k)
        folder.mkdir()
        if not await _one(folder, k, turns):
            return
    pytest.fail("the turn never came to its end")


async def _one(folder: Path, k: int, turns: int) -> bool:
    """Whether the stop was sent."""
    step = calls(("a", "pay", {}), text="I pay now.")
    async with bed(folder, [step, "All paid.", "fine"], more_tools=[Slow()]) as it:
        stop = StopAt(it, k, turns)
        await it.send("pay")
        await it.bridge.idle()
        if stop.sent is not None:
            await stop.sent
            await it.bridge.idle()
        was_sent = stop.sent is not None
        stop.sent = stop.sent or asyncio.create_task(asyncio.sleep(0))  # none from now on
        finals = list(it.channel.finals)
        assert finals, "never silence"
        stopped = [text for text in finals if "Stopped." in text]
        assert len(stopped) <= 1
        if stopped:
            last = stopped[0].rsplit("\n\n", 1)[-1]
            assert last == "Stopped." or last.endswith("`pay`."), "nothing is sent after it"
        rows = await it.database.read("SELECT id FROM sessions")
        context = await it.services.conversations.context(int(rows[0][0]))
        messages = load(context, None).working.messages()
        if messages:
            assert violations([*messages, messages[0]]) == [], k
            assert violations(repair(messages)) == []
        assert await it.services.inbox.open_sessions(("fake",)) == []
        answer = await it.ask("and now?")
        assert answer in ("All paid.", "fine", "I pay now.\n\nAll paid."), (k, answer)
        return was_sent
