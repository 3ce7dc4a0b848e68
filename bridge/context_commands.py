"""Commands about what the model sees of a conversation. None of them deletes stored history."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import tzinfo

from agent.context import Trimmed, drop_turns, size
from agent.model import ChatModel
from agent.prompt import build
from agent.tools import ToolSpec
from bridge.compaction import Compaction, Subject
from bridge.loading import load
from bridge.outage import Outages
from bridge.session import memory_scope
from bridge.texts import Say
from bridge.tools import ConversationInfo, CurrentTime
from bridge.turn_plan import TurnServices
from channels.base import InboundMessage
from memory.conversations import SessionPlace
from memory.tools import ReadTranscript

KEPT_TURNS = 2  # the newest ones, which /compact leaves as they are
COMPACT_WAIT_S = 60.0  # somebody asked for the summary: it may take longer than within a run


class ContextCommands:
    """/compact, /context and /undo."""

    def __init__(
        self, services: TurnServices, model: ChatModel, timezone: tzinfo, outages: Outages
    ) -> None:
        self._services = services
        self._model = model
        self._timezone = timezone
        self._outages = outages

    async def compact(
        self, message: InboundMessage, place: SessionPlace, focus: str, say: Say
    ) -> str:
        """Older turns become a summary now; `focus` is what to keep above all."""
        conversations = self._services.conversations
        session = await conversations.open(place)
        context = await conversations.context(session)
        loaded = load(context, None)
        before = loaded.working
        trimmed = drop_turns(Trimmed(before), len(before.turns) - KEPT_TURNS)
        if not trimmed.dropped:
            return say("nothing_to_compact")
        model = self._services.ratios.corrected(self._model)
        subject = Subject(
            session,
            place.key,
            f"c{secrets.token_hex(8)}",
            message.sender.id,
            memory_scope(message.address),
            self._timezone,
        )
        keeper = Compaction(
            self._services.compaction(self._services.gate),
            subject,
            model,
            loaded.starts,
            self._outages.health_for(place.key),
            focus=focus,
            wait_s=COMPACT_WAIT_S,
        )
        note = await keeper.flush(trimmed.dropped, before.note, summarise=True)
        after = replace(trimmed.working, note=note)
        if not await keeper.bound_since(context.boundary_id, after):
            return say("context_changed")
        return say(
            "compacted",
            turns=after.left,
            before=size(before, model.sizes),
            after=size(after, model.sizes),
        )

    async def show(self, message: InboundMessage, place: SessionPlace, say: Say) -> str:
        """Turns, estimated tokens, budget, and what was left out."""
        services = self._services
        session = await services.conversations.open(place)
        context = await services.conversations.context(session)
        working = load(context, None).working
        everything = await services.conversations.size(session)
        model = services.ratios.corrected(self._model)
        system = build(services.settings.instructions, group=not message.address.private)
        fixed = model.sizes.fixed(system, _tool_specs(services) if model.traits.tools else ())
        window = min(services.settings.budget_tokens or model.context_tokens, model.context_tokens)
        return say(
            "context",
            turns=len(working.turns),
            most=services.settings.max_turns,
            tokens=size(working, model.sizes) + fixed,
            budget=window - model.max_output_tokens,
            left=everything.messages - len(context.messages),
            note=say("yes" if working.note else "no"),
        )

    async def undo(self, place: SessionPlace, say: Say) -> str:
        """The last exchange leaves the context."""
        conversations = self._services.conversations
        session = await conversations.open(place)
        last = await conversations.last_run(session)
        if last is None:
            return say("nothing_to_undo")
        question = await conversations.question_of(last)
        await conversations.leave_out(session, last)
        words = " ".join((question.text if question else "").split())
        short = words if len(words) <= 80 else words[:80] + " …"
        return say("undone", question=short)


def _tool_specs(services: TurnServices) -> tuple[ToolSpec, ...]:
    """The tools that a turn offers (`bridge.turn`)."""
    own = (CurrentTime.spec, ConversationInfo.spec, ReadTranscript.spec)
    return (*own, *(tool.spec for tool in services.more_tools))
