"""Runs that a stop has ended while nobody carried them out: they waited for their provider, or the
process died right after."""

from __future__ import annotations

from agent.loop import STOPPED_MARK
from agent.tool_log import effects_in
from bridge.inbound import readable
from bridge.runs.delivery import Deliveries
from bridge.runs.last_word import effects_told
from bridge.runs.loading import closed
from bridge.runs.notices import Notices
from bridge.runs.turn_plan import TurnServices
from memory.runs import Lost


class LostRuns:
    """Ends them like any other stopped run: with the marker, and a word on what has taken effect."""

    def __init__(self, services: TurnServices, deliveries: Deliveries, notices: Notices) -> None:
        self._services = services
        self._deliveries = deliveries
        self._notices = notices

    async def end(self, lost: Lost) -> None:
        """Settle it, and tell its chat."""
        asked = readable(lost.body)
        if asked is None:
            return
        stored = await self._services.conversations.of_run(lost.run.run_id)
        turn = closed(tuple(message for _, message in stored), STOPPED_MARK) if stored else ()
        say = self._notices.say(asked)
        effects = effects_told(effects_in(turn, self._services.acting), say)
        text = "\n\n".join(filter(None, (say("stopped"), effects)))
        end = list(enumerate(turn))[len(stored) :]
        await self._deliveries.end_lost(lost, asked, text, end)
