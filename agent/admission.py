"""Which of a model's tool calls may run: arguments, ids that are unique in the conversation, and the
breaker's word."""

from __future__ import annotations

from collections.abc import Iterable

from agent import tool_args
from agent.breaker import Breaker
from agent.messages import Block, Message, ToolUseBlock
from agent.tools import Toolbox


class Admission:
    """For one run."""

    def __init__(self, toolbox: Toolbox, breaker: Breaker) -> None:
        self._toolbox = toolbox
        self._breaker = breaker
        self._judged: set[str] = set()  # calls that the breaker let pass

    def passed(self, call: ToolUseBlock) -> bool:
        """Whether the breaker let it pass, and wants to hear of its end."""
        return call.id in self._judged

    def admit(
        self, message: Message, before: Iterable[Message], *, truncated: bool
    ) -> tuple[Message, list[tool_args.CheckedCall]]:
        """The message as it is stored, its ids unique among those `before`, and its calls. Of a
        `truncated` one none may run."""
        used = {call.id for known in before for call in known.tool_uses}
        blocks: list[Block] = []
        checked: list[tool_args.CheckedCall] = []
        for block in message.blocks:
            if isinstance(block, ToolUseBlock):
                tool = self._toolbox.find(block.name)
                renamed = _with_unique_id(block, used)
                verdict = tool_args.check(renamed, tool.spec if tool else None, truncated=truncated)
                verdict = verdict if truncated else self._judge(renamed, verdict)
                if tool is None and not truncated:
                    self._breaker.invented(renamed)
                checked.append(verdict)
                blocks.append(verdict.call)
            else:
                blocks.append(block)
        return Message("assistant", tuple(blocks)), checked

    def _judge(self, made: ToolUseBlock, verdict: tool_args.CheckedCall) -> tool_args.CheckedCall:
        """A call that goes in circles is refused; one that cannot run is judged as it was made."""
        refusal = self._breaker.judge(verdict.call if verdict.problem is None else made)
        if refusal is None:
            self._judged.add(made.id)
            return verdict
        return tool_args.CheckedCall(verdict.call, refusal)


def _with_unique_id(call: ToolUseBlock, used: set[str]) -> ToolUseBlock:
    """Some providers use `call_0` in each answer: later ones get a suffix, on both halves."""
    fresh, number = call.id or "call", 1
    while fresh in used:
        number += 1
        fresh = f"{call.id or 'call'}_{number}"
    used.add(fresh)
    return call if fresh == call.id else ToolUseBlock(fresh, call.name, call.arguments, call.raw)
