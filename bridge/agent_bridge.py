"""The bridge between channels and the agent core: the life of its parts (`bridge.parts`).

`receive` is what channels call for each inbound message; it returns once the message is stored, so
that the channel may acknowledge it. Its way from there is that of `bridge.intake.router`;
`bridge.runs.turns` makes turns of the questions that wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from bridge.access import Access
from bridge.inbound import readable
from bridge.models.chat_models import ModelChoice
from bridge.parts import BridgeSettings, Ground, answering, keeping, taking
from bridge.runs.outage import Changed
from bridge.runs.turn_plan import TurnServices
from channels.base import Address, Channel, InboundMessage
from channels.errors import Unreachable
from memory.inbox import InboxRow

NOTICES_GRACE_S = 3.0  # for commands and notices under way when the process is stopping


class AgentBridge:
    """Takes messages in, and gives each session's questions to the agent one turn at a time."""

    def __init__(
        self,
        settings: BridgeSettings,
        services: TurnServices,
        access: Access,
        models: ModelChoice,
        channels: Mapping[str, Channel],
        group: asyncio.TaskGroup,
    ) -> None:
        ground = Ground.of(settings, services, access, models, channels, group)
        answers = answering(ground, self._gone)
        kept = keeping(ground, answers, self._take_up)
        taken = taking(ground, answers, kept)
        self._services = services
        self._channels = channels
        self._beside = ground.beside
        self._deliveries, self._turns = answers.deliveries, answers.turns
        self._lost_runs = answers.lost_runs
        self._lanes, self._outages = answers.lanes, answers.outages
        self._backlog, self._acts = kept.backlog, taken.acts
        self._lost_questions = kept.lost_questions
        self.chats, self.talks, self.eraser = kept.chats, kept.talks, kept.eraser
        self.policy_changes, self.door = taken.policy_changes, taken.door
        self._router = taken.router
        services.policies.files.bind(self._beside.start)
        for channel in channels.values():
            channel.overhear(self._router.is_wanted)

    async def receive(self, message: InboundMessage) -> None:
        """Take a message in (`Router.receive`); returns once it is stored."""
        await self._router.receive(message)

    async def resume(self) -> None:
        """After a start: deliver what is in the outbox, carry out stored commands, then take up every
        open message. Raises `StoreError` before anything of that has begun, so that it may be
        repeated: nothing must be delivered or carried out twice."""
        services, here = self._services, tuple(self._channels)
        await self.talks.load()
        await self.chats.settle()
        replies = await services.outbox.open_replies(here)
        lost = await services.runs.lost(here)
        acts = await self._stored_acts()
        marked = list(filter(None, map(readable, await services.inbox.marked(here))))
        keys = await services.inbox.open_sessions(here)
        waiting = {key: await services.inbox.open_turns(key) for key in keys}
        for reply in replies:
            self._beside.start(self._deliveries.resume(reply), "resumed delivery")
        for run in lost:
            self._beside.start(self._lost_runs.end(run), "lost run")
        for message, id_ in acts:
            self._acts.resume(message, id_)
        for message in marked:
            self._turns.mark(message)
        for session_key, rows in waiting.items():
            self._expect(session_key, rows)
        self._turns.unmark_dealt_with(marked)
        self._beside.start(self.door.resume(), "access")

    def tell_of_lost_questions(self, database: Path) -> None:
        """After a start: what waited in a damaged database that was set aside."""
        self._beside.start(self._lost_questions.tell(database), "lost questions")

    async def _stored_acts(self) -> list[tuple[InboundMessage, int]]:
        """The commands and presses that an earlier process has not answered, and their rows."""
        rows = await self._services.inbox.open_acts()
        read = [(readable(row.body), row.id) for row in rows]
        found = [(m, id_) for m, id_ in read if m is not None and self._hears(m)]
        for message, _ in found:
            await self._services.policies.read(message.address)
        return found

    def _hears(self, message: InboundMessage) -> bool:
        return message.address.channel in self._channels

    async def _take_up(self, former_key: str, session_key: str) -> None:
        """Take up every open message of a session, which had another key before."""
        self._turns.forget_session(former_key)
        self._expect(session_key, await self._services.inbox.open_turns(session_key))

    def _expect(self, session_key: str, rows: Iterable[InboxRow]) -> None:
        for row in rows:
            message = readable(row.body)
            if message is not None:
                self._turns.expect(message, session_key)
                self._backlog.note(message)
        self._lanes.wake(session_key)

    async def close(self, patience_s: float) -> None:
        """Start nothing more; running answers and commands get `patience_s` seconds, then they are
        interrupted and taken up at the next start."""
        self._outages.close()
        await self._lanes.close(patience_s)
        await self._beside.close(min(patience_s, NOTICES_GRACE_S))

    async def idle(self) -> None:
        """Return when no lane has work and every command is carried out."""
        while len(self._beside) or len(self._lanes):
            await self._beside.idle()
            await self._lanes.idle()

    def watch_providers(self, changed: Changed) -> None:
        """`changed` hears when a provider fails for everybody, and when it is back."""
        self._outages.watch(changed)

    async def _gone(self, address: Address, error: Unreachable) -> None:
        await self.chats.gone(address, removed=error.removed)
