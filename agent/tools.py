"""What a tool is, and the set of tools that a run may use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import tzinfo
from typing import Protocol

from agent.cancel import CancelToken
from agent.messages import ImageBlock, JsonObject, TextBlock


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What the model and the loop know of a tool.

    `parameters` is a JSON schema of type object. `parallel`: may run beside other tools of the
    same step. `side_effects`: changes something outside the conversation, so that an interrupted
    call counts as "outcome unknown". `timeout_s`: seconds until the call is ended as failed.
    """

    name: str
    description: str
    parameters: JsonObject
    parallel: bool = False
    side_effects: bool = False
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool is told of the run that calls it; fixed when the run starts.

    `session` is the session's key, never shown to the model; `timezone` is the chat's.
    """

    run_id: str
    session: str
    timezone: tzinfo
    cancel: CancelToken


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """A tool's answer: text and images for the model."""

    content: tuple[TextBlock | ImageBlock, ...]
    is_error: bool = False

    @classmethod
    def of(cls, text: str, *, is_error: bool = False) -> ToolOutput:
        """An answer of one text."""
        return cls((TextBlock(text),), is_error)


class Tool(Protocol):
    """Something that the model can call."""

    @property
    def spec(self) -> ToolSpec:
        """Name, schema and rules."""
        ...

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        """Do it. `arguments` fit the schema. Raises `ToolError` with a text for the model.

        A stop and the tool's timeout cancel it, wherever it is; a thread that it has started looks at
        `context.cancel`. It starts a program by `agent.children.run_child` only, which kills it then,
        with all that it has started in its turn.
        """
        ...


class Toolbox:
    """The tools of one run, by name."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def find(self, name: str) -> Tool | None:
        """The tool of that name, or None."""
        return self._tools.get(name)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """All specs, in the order of registration (stable, so that prompt caching holds)."""
        return tuple(tool.spec for tool in self._tools.values())
