"""Commands about what the model sees of a conversation. None of them deletes stored history."""

from __future__ import annotations

import secrets
from dataclasses import replace

from agent.context import NOTE_TOKENS, Trimmed, drop_turns, size
from agent.model import ChatModel
from agent.prompt import build
from agent.summary import is_digest
from agent.tools import ToolSpec
from bridge.limits.keys import MODEL, TOOLS_OFF
from bridge.limits.policies import zone_of
from bridge.limits.policy import Policy
from bridge.limits.prompt import instructions_of
from bridge.models.chat_models import ModelChoice
from bridge.runs.compaction import Compaction, Subject
from bridge.runs.loading import load
from bridge.runs.outage import Outages
from bridge.runs.run_memory import snapshot_room
from bridge.runs.turn_plan import TurnServices
from bridge.texts import Say
from bridge.tools import OWN_SPECS
from channels.base import InboundMessage
from memory.conversations import SessionPlace

KEPT_TURNS = 2  # the newest ones, which /compact leaves as they are
COMPACT_WAIT_S = 60.0  # somebody asked for the summary: it may take longer than within a run


class ContextCommands:
    """/compact, /context and /undo."""

    def __init__(self, services: TurnServices, models: ModelChoice, outages: Outages) -> None:
        self._services = services
        self._models = models
        self._outages = outages

    async def compact(
        self, message: InboundMessage, place: SessionPlace, focus: str, say: Say
    ) -> str:
        """Older turns become a summary now; `focus` is what to keep above all. What would be no shorter
        than they are does not take their place."""
        conversations = self._services.conversations
        session = await conversations.open(place)
        context = await conversations.context(session)
        loaded = load(context, None)
        before = loaded.working
        trimmed = drop_turns(Trimmed(before), len(before.turns) - KEPT_TURNS)
        if not trimmed.dropped:
            return say("nothing_to_compact")
        policy = self._policy(message)
        model = self._model(policy)
        subject = Subject(
            session,
            place.key,
            f"c{secrets.token_hex(8)}",
            self._services.memory.sharing.scope(message.address),
            zone_of(policy),
            context.read_at,
        )
        keeper = Compaction(
            self._services.compaction(model),
            subject,
            model.sizes,
            loaded.starts,
            self._outages.health_for(place.key),
            focus=focus,
            wait_s=COMPACT_WAIT_S,
        )
        note = await keeper.flush(trimmed.dropped, before.note, room=NOTE_TOKENS, summarise=True)
        after = replace(trimmed.working, note=note)
        if size(after, model.sizes) >= size(before, model.sizes):
            return say("compacting_saves_nothing")
        if not await keeper.bound_since(context.boundary_id, after):
            return say("context_changed")
        return say(
            "compacted_plainly" if is_digest(note) else "compacted",
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
        policy = self._policy(message)
        model = self._model(policy)
        room = snapshot_room(self._models.named(policy[MODEL]))
        system = build(
            instructions_of(services.settings.instructions, policy),
            group=not message.address.private,
            memory=await services.notebook.snapshots.of(
                services.memory.sharing.chat(message.address), session, context.boundary_id, room
            ),
        )
        offered = _tool_specs(services, policy) if model.traits.tools else ()
        fixed = model.sizes.fixed(system, offered)
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

    def _policy(self, message: InboundMessage) -> Policy:
        return self._services.policies.of(message.address, message.sender.id)

    def _model(self, policy: Policy) -> ChatModel:
        return self._services.ratios.corrected(self._models.named(policy[MODEL])[0])

    async def undo(self, place: SessionPlace, say: Say) -> str:
        """The last exchange leaves the context, with all that was tried for its question."""
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


def _tool_specs(services: TurnServices, policy: Policy) -> tuple[ToolSpec, ...]:
    """The tools that a turn offers (`bridge.runs.turn`)."""
    specs = (*OWN_SPECS, *(tool.spec for tool in services.more_tools))
    return tuple(spec for spec in specs if spec.name not in policy[TOOLS_OFF])
