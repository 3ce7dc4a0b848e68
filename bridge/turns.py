"""A lane's work: the oldest open messages of a session become one turn, and the turn is carried out.

The inbox is the queue of record; here is only what this process has to keep in mind about it: tokens
of messages that wait, marks that are to be taken away, rows that could not be closed yet.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from agent.cancel import CancelTokenRegistry
from agent.model import ChatModel
from bridge.inbound import load
from bridge.lanes import ActiveRun, Lanes
from bridge.notices import Notices
from bridge.outage import Outages
from bridge.question import Question
from bridge.session import memory_scope
from bridge.speakers import label
from bridge.stopping import key_of
from bridge.turn import Turn, TurnPlan, TurnServices
from channels.base import Channel, InboundMessage
from memory.clock import stamp
from memory.inbox import InboxRow

RETRY = "retry"  # the command whose message stands for the question before it


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An open row with its message."""

    row: InboxRow
    message: InboundMessage


class Turns:
    """Makes turns. `beside(work, name)` starts something that the lane does not wait for."""

    def __init__(
        self,
        services: TurnServices,
        models: tuple[ChatModel, ...],
        channels: Mapping[str, Channel],
        timezone: tzinfo,
        notices: Notices,
        tokens: CancelTokenRegistry,
        beside: Callable[[Awaitable[None], str], None],
    ) -> None:
        self._services = services
        self._models = models
        self._channels = channels
        self._timezone = timezone
        self._notices = notices
        self._tokens = tokens
        self._beside = beside
        self._ended: list[tuple[tuple[int, ...], str]] = []  # turns whose rows are to be closed
        self._marked: set[int] = set()  # inbox rows whose message had to wait
        self._since = stamp()

    def bind(self, lanes: Lanes, outages: Outages) -> None:
        """The lanes call `next_turn`, which needs them and what they wake."""
        self._lanes = lanes
        self._outages = outages

    def mark(self, inbox_id: int) -> None:
        """The message of this row had to wait, and its sender was told so."""
        self._marked.add(inbox_id)

    async def next_turn(self, session_key: str) -> bool:
        """Make a turn of the session's oldest open messages and carry it out; false when there is
        none to be made now."""
        await self._close_ended()
        if self._outages.must_wait(session_key):
            return False
        waiting = await self._oldest(session_key)
        if not waiting:
            self._outages.forget(session_key)
            return False
        plan = await self._plan(waiting)
        run = self._begin(waiting, plan)
        if run is None:  # stopped in the meantime
            return True
        turn = Turn(self._services, plan, self._outages, run.token)
        try:
            await self._lanes.carry_out(turn, run)
        finally:
            self._tokens.release(run.run_id)
        if turn.ended_as is None:  # postponed: its messages wait again
            self.expect(w.message for w in waiting)
            return False
        self._ended.append((plan.inbox_ids, turn.ended_as))
        await self._close_ended()
        return True
