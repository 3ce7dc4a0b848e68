"""The tools to begin with: the time in the chat's zone, and this conversation's size and age."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Final

from agent.messages import JsonObject
from agent.tools import Tool, ToolContext, ToolOutput, ToolSpec
from memory.conversations import ConversationSize
from memory.memory_tools import MEMORY_SPECS
from memory.tools import ReadTranscript

_NOTHING: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}


class CurrentTime:
    """`current_time`: date, time and weekday where the chat is."""

    spec = ToolSpec(
        "current_time",
        "The current date, time and weekday in this chat's time zone.",
        _NOTHING,
        parallel=True,
        timeout_s=5,
    )

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        """The time now, to the minute."""
        now = datetime.now(context.timezone)
        return ToolOutput.of(f"{now:%A, %Y-%m-%d %H:%M} ({context.timezone})")


class ConversationInfo:
    """`conversation_info`: how many messages this conversation has and since when."""

    spec = ToolSpec(
        "conversation_info",
        "How many messages this conversation has, how many characters, and when it began.",
        _NOTHING,
        parallel=True,
        timeout_s=5,
    )

    def __init__(self, size: Callable[[], Awaitable[ConversationSize]]) -> None:
        self._size = size

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        """Size and age of the run's own session; which one is not the model's to choose."""
        size = await self._size()
        if size.started_at is None:
            return ToolOutput.of("This conversation is empty.")
        began = datetime.fromisoformat(size.started_at).astimezone(context.timezone)
        return ToolOutput.of(
            f"{size.messages} messages, {size.characters} characters, "
            f"since {began:%Y-%m-%d %H:%M} ({context.timezone})"
        )


# What a turn offers by itself (`bridge.runs.turn`).
OWN_SPECS: Final = (CurrentTime.spec, ConversationInfo.spec, ReadTranscript.spec, *MEMORY_SPECS)


def tool_names(more: Iterable[Tool]) -> frozenset[str]:
    """The names of the tools that a turn may offer."""
    return frozenset(spec.name for spec in (*OWN_SPECS, *(tool.spec for tool in more)))
