"""What a run's tool calls have come to: started, finished, or of unknown outcome."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from agent.history import lost_result
from agent.messages import Message, ToolResultBlock, ToolUseBlock
from agent.tools import Toolbox


@dataclass(frozen=True, slots=True)
class Effects:
    """Tools with side effects that a run had started: those that took effect, by name, and those of
    which it is unknown."""

    done: tuple[str, ...]
    unknown: tuple[str, ...]


def effects_in(turn: Iterable[Message], acting: Collection[str]) -> Effects:
    """What these tools have changed in a turn that is stored; each of its calls has a result."""
    messages = tuple(turn)
    names = {call.id: call.name for m in messages for call in m.tool_uses if call.name in acting}
    results = [r for m in messages for r in m.tool_results if r.tool_use_id in names]
    done = (r for r in results if r.outcome == "known" and not r.is_error)
    unknown = (r for r in results if r.outcome == "unknown")
    return Effects(_names(done, names), _names(unknown, names))


def _names(results: Iterable[ToolResultBlock], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names[result.tool_use_id] for result in results))


class ToolLog:
    """The calls of one run."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._started: dict[str, ToolUseBlock] = {}
        self._finished: dict[str, ToolResultBlock] = {}

    @property
    def empty(self) -> bool:
        """Whether no tool has started."""
        return not self._started

    def start(self, call: ToolUseBlock) -> None:
        """It may take effect from now on."""
        self._started[call.id] = call

    def finish(self, call: ToolUseBlock, result: ToolResultBlock) -> None:
        """It has a result."""
        self._finished[call.id] = result

    def resume(self, call: ToolUseBlock, result: ToolResultBlock | None) -> None:
        """A call of an earlier process."""
        if result is not None and result.outcome == "not_run":
            return
        self.start(call)
        if result is not None:
            self.finish(call, result)

    def effects(self) -> Effects:
        """What the tools have changed, as far as that is known."""
        risky = {call.id: call.name for call in self._started.values() if self._changes(call)}
        results = {id_: self._finished[id_] for id_ in risky if id_ in self._finished}
        sure = [id_ for id_, result in results.items() if result.outcome == "known"]
        done = [risky[id_] for id_ in sure if not results[id_].is_error]
        unknown = [name for id_, name in risky.items() if id_ not in sure]
        return Effects(tuple(dict.fromkeys(done)), tuple(dict.fromkeys(unknown)))

    def result_of(self, call: ToolUseBlock, unknown: str, not_started: str) -> ToolResultBlock:
        """The call's result; where it has none, what is known of it in words."""
        known = self._finished.get(call.id)
        if known is not None:
            return known
        risky = call.id in self._started and self._changes(call)
        if risky:
            return lost_result(call.id, unknown)
        return lost_result(call.id, not_started, "not_run")

    def _changes(self, call: ToolUseBlock) -> bool:
        tool = self._toolbox.find(call.name)
        return tool is not None and tool.spec.side_effects
