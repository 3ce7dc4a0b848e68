"""`/why`: what of the memory stood before the model for the last answer. The prompt's own text, and
what its searches found; nothing of it is the model's word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.messages import Message, TextBlock, ToolResultBlock, ToolUseBlock
from bridge.answers import Handlers
from bridge.runs.turn_plan import TurnServices
from bridge.texts import Say
from channels.base import InboundMessage
from memory.conversations import SessionPlace
from memory.forgotten.copies import READ_TOOL, SEARCH_TOOL

MOST_SNAPSHOT = 6_000  # characters that are shown of the prompt's part
MOST_HITS = 2_000  # of what one search or file gave


class WhyCommand:
    """Of the conversation in which it is sent."""

    def __init__(self, services: TurnServices) -> None:
        self._services = services

    @property
    def commands(self) -> Handlers:
        """`/why`."""
        return {"why": self.show}

    async def show(self, message: InboundMessage, place: SessionPlace, say: Say) -> str:
        """Entries and days in the prompt, then searches with what they found."""
        conversations = self._services.conversations
        session = await conversations.open(place)
        context = await conversations.context(session)
        if not context.messages:
            return say("why_no_answer")
        run = context.messages[-1].run_id
        said = [stored.message for stored in context.messages if stored.run_id == run]
        shown = await self._services.notebook.snapshots.shown(
            self._services.memory.sharing.chat(message.address), session
        )
        seen = "" if shown is None else shown.text
        parts = [say("why_prompt"), _short(seen or say("why_nothing"), MOST_SNAPSHOT)]
        found = list(_found(said))
        for what, text in found:
            parts += [say("why_found", what=what), _quoted(_short(text, MOST_HITS))]
        if not found:
            parts.append(say("why_no_search"))
        parts.append(say("why_more"))
        return "\n\n".join(parts)


def _found(said: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """What was searched for or read, and what the model got."""
    asked: dict[str, ToolUseBlock] = {}
    for message in said:
        asked |= {use.id: use for use in message.tool_uses if use.name in (SEARCH_TOOL, READ_TOOL)}
        for result in message.tool_results:
            use = asked.get(result.tool_use_id)
            if use is not None:
                words = use.arguments.get("query" if use.name == SEARCH_TOOL else "name")
                yield str(words or ""), _text(result)


def _text(result: ToolResultBlock) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, TextBlock))


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most].rstrip() + " …"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())
