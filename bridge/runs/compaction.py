"""What leaves a context: to the day's file first, then as a note in the context, then a boundary.

The note is a summary by a call of the memory's (`bridge.remembering.calls`), made while the day's
file is written (`bridge.remembering.flushing`): it may say what a page said, which the file's notes
may not. A digest stands in when the call fails, is too slow, would cost more than the memory may
use, or says more than it replaces or than there is room for. Either has the room that the caller
gives.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import PurePath

from agent.calls import Health
from agent.context import Working, note_tokens
from agent.errors import ProviderDown
from agent.estimate import Estimator
from agent.messages import Message
from agent.overflow import EMERGENCY_PAUSE_S, MOST_EMERGENCIES, Rung
from agent.summary import SUMMARY_TOKENS, as_note, digest, instructions, prompt, text_of_note
from bridge.remembering.calls import Ask, CallFailed, MemoryCalls, PutOff
from bridge.remembering.flushing import Flushing
from memory.conversations import Boundary, Conversations
from memory.forgotten.resting import Noted
from memory.transcripts import Transcripts

log = logging.getLogger(__name__)

SUMMARY_WAIT_S = 20.0  # that a run waits for a summary
SMALLEST_TOKENS = 300  # of messages that are worth a model call
SMALLEST_ROOM = 100  # tokens; a summary that has less says no more than a digest


@dataclass(frozen=True, slots=True)
class CompactionServices:
    """The stores that a compaction writes to; `calls` make its summary (None: there is no model)."""

    conversations: Conversations
    flushing: Flushing
    transcripts: Transcripts
    calls: MemoryCalls | None


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose context it is, and which run's. `read_at`: when the context was (ISO, UTC)."""

    session: int
    session_key: str
    run_id: str
    memory_scope: str
    timezone: tzinfo
    read_at: str


class Compaction:
    """The keeper (`agent.working.Keeper`) of one run, or of one /compact.

    `sizes` estimates the context's tokens. `starts`: the row id of each loaded turn's first message,
    so that a boundary can name them.
    """

    def __init__(
        self,
        services: CompactionServices,
        subject: Subject,
        sizes: Estimator,
        starts: Sequence[int],
        health: Health,
        *,
        focus: str = "",
        wait_s: float = SUMMARY_WAIT_S,
    ) -> None:
        self._services = services
        self._subject = subject
        self._sizes = sizes
        self._starts = starts
        self._health = health
        self._focus = focus
        self._wait_s = wait_s

    async def flush(
        self, dropped: Sequence[Message], note: str | None, *, room: int, summarise: bool
    ) -> str:
        """See `Keeper.flush`. Raises `OSError` when the day's file cannot be written."""
        earlier, subject = text_of_note(note), self._subject
        summary: asyncio.Future[str | None] | None = None
        if summarise and room >= SMALLEST_ROOM:
            summary = asyncio.ensure_future(self._summary(dropped, earlier, room))
        try:
            await self._services.flushing.leave(
                subject.session, subject.memory_scope, subject.timezone
            )
            text = await summary if summary is not None else None
        finally:
            if summary is not None:
                summary.cancel()
                await asyncio.gather(summary, return_exceptions=True)
        return as_note(text or digest(dropped, earlier, self._sizes, room))

    async def _summary(
        self, dropped: Sequence[Message], earlier: str | None, room: int
    ) -> str | None:
        sizes, calls = self._sizes, self._services.calls
        replaced = sum(map(sizes.message, dropped)) + sizes.text(earlier or "")
        if calls is None or replaced < SMALLEST_TOKENS:
            return None
        asked = Ask(
            self._subject.session,
            "summary",
            instructions(room),
            prompt(calls.model, dropped, earlier, self._focus),
            SUMMARY_TOKENS,
            self._subject.timezone,
        )
        try:
            text = await self._asked(calls, asked)
        except (CallFailed, ProviderDown, PutOff) as error:
            log.info("run %s: a digest instead of a summary: %s", self._subject.run_id, error)
            return None
        most = min(room, replaced - 1)
        return text if text and note_tokens(as_note(text), sizes) <= most else None

    async def _asked(self, calls: MemoryCalls, ask: Ask) -> str:
        """Raises `CallFailed`, `ProviderDown`, `PutOff`."""
        provider = calls.model.provider.name
        self._health.admit(provider)
        try:
            text = await calls.ask(ask, self._wait_s)
        except CallFailed as error:
            if error.refusal is not None:
                self._health.note(provider, error.refusal)
            raise
        self._health.note(provider, None)
        return text

    async def snapshot(self) -> str | None:
        """See `Keeper.snapshot`: at most 5 a conversation, 60 s between them."""
        session = self._subject.session
        count, last = await self._services.conversations.emergencies(session)
        now = datetime.now(UTC)
        pause = timedelta(seconds=EMERGENCY_PAUSE_S)
        if count >= MOST_EMERGENCIES or (last and now - datetime.fromisoformat(last) < pause):
            return None
        context = await self._services.conversations.context(session)
        messages = [stored.message for stored in context.messages]
        try:
            path = await self._services.transcripts.snapshot(
                session, self._subject.session_key, messages, now
            )
        except OSError:
            log.exception("run %s: no transcript could be written", self._subject.run_id)
            return None
        log.warning("run %s: the conversation was written to %s", self._subject.run_id, path)
        return PurePath(path).name  # the folder's name holds the session's key: not for the model

    async def bound(self, rung: Rung | None, working: Working) -> None:
        """See `Keeper.bound`."""
        await self._bound(rung, working, None)

    async def bound_since(self, boundary_id: int, working: Working) -> bool:
        """The same for a /compact, unless in the meantime the context got another boundary, or a turn
        left it that the note stands for."""
        return await self._bound(Rung.COMPACT, working, boundary_id)

    async def _bound(self, rung: Rung | None, working: Working, since: int | None) -> bool:
        starts = self._starts
        first = min(working.left, len(starts) - 1)
        behind = working.left + working.brief
        return await self._services.conversations.bound(
            self._subject.session,
            Boundary(
                "trim" if rung is None else rung.value,
                starts[first],
                starts[min(behind, len(starts) - 1)] if working.brief else None,
                working.note,
            ),
            since=since,
            replaced=starts[:first],
            noted=Noted(self._subject.memory_scope, self._subject.read_at),
        )
