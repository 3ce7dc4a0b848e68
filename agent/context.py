"""Line 1: what of a history goes into a run. Whole turns only, and the newest turn always.

`prepare` is asked once, before the loop. `shrink` and `reset` answer a provider's overflow: each
makes the working copy smaller or says that it cannot. What leaves the context is given back, so
that the caller flushes it to memory; the stored history is never touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from agent.messages import Block, Message, TextBlock, ThinkingBlock, ToolResultBlock, begins_turn

MARKER = "[Earlier conversation: older messages were left out here.]"
SHORTENED = (
    "\n[… {count} characters were left out here; call the tool again for a part of them …]\n"
)
RESET_RESULT_CHARACTERS = 2_000  # a result's size after a reset: its head and tail stay readable


@dataclass(frozen=True, slots=True)
class Window:
    """The messages that go on, and those that left, in order."""

    messages: tuple[Message, ...]
    dropped: tuple[Message, ...] = ()


def turns(messages: Sequence[Message]) -> list[tuple[Message, ...]]:
    """The messages cut at turn boundaries; what precedes the first question joins its turn."""
    starts = [index for index, message in enumerate(messages) if begins_turn(message)]
    if not starts:
        return [tuple(messages)] if messages else []
    bounds = [0, *starts[1:], len(messages)]
    return [tuple(messages[start:end]) for start, end in pairwise(bounds)]


class TurnWindow:
    """Keeps at most `max_turns` turns; above that the older half goes at once, so that the kept
    prefix stays the same for many turns and prompt caching holds."""

    def __init__(self, max_turns: int) -> None:
        self._max_turns = max_turns

    def prepare(self, history: Sequence[Message], *, earlier: bool = False) -> Window:
        """The working copy for a run. The newest turn always stays. `earlier`: messages before
        these have left the context in an earlier run, which the marker says."""
        cut = turns(history)
        if len(cut) <= self._max_turns:
            return Window(_marked(tuple(history)) if earlier else tuple(history))
        return _keep(cut, max(1, self._max_turns // 2))

    def shrink(self, working: Sequence[Message]) -> Window | None:
        """The newer half of the turns, or None when one turn is left."""
        cut = turns(working)
        return _keep(cut, len(cut) // 2) if len(cut) > 1 else None

    def reset(self, working: Sequence[Message]) -> Window | None:
        """The newest turn with short tool results; None when that would not be smaller.

        Calls that were executed stay in it, so that none is executed twice.
        """
        cut = turns(working)
        newest = tuple(_shorten(message) for message in cut[-1]) if cut else ()
        if len(cut) <= 1 and newest == tuple(working):
            return None
        dropped = _unmarked(message for turn in cut[:-1] for message in turn)
        return Window(newest, dropped)


def without_thinking(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages without any model's reasoning, as many as before (`repair` drops empty ones).

    A thinking block is bound to everything before it: system prompt, tools and messages. It is of use
    only within the run that made it, while nothing before it changes.
    """
    return tuple(
        replace(message, blocks=kept) if kept != message.blocks else message
        for message in messages
        for kept in [tuple(b for b in message.blocks if not isinstance(b, ThinkingBlock))]
    )


def _keep(cut: list[tuple[Message, ...]], count: int) -> Window:
    dropped = _unmarked(message for turn in cut[:-count] for message in turn)
    return Window(_marked(tuple(m for turn in cut[-count:] for m in turn)), dropped)


def _marked(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """With the marker before the first words, where it is not there yet."""
    first, *rest = messages
    note = TextBlock(MARKER)
    if note in first.blocks or not begins_turn(first):
        return messages
    results = [block for block in first.blocks if isinstance(block, ToolResultBlock)]
    others = [block for block in first.blocks if not isinstance(block, ToolResultBlock)]
    return (Message(first.role, (*results, note, *others)), *rest)


def _unmarked(messages: Iterable[Message]) -> tuple[Message, ...]:
    """What was said, without our marker: this goes to memory."""
    note = TextBlock(MARKER)
    return tuple(
        replace(message, blocks=tuple(block for block in message.blocks if block != note))
        if note in message.blocks
        else message
        for message in messages
    )


def _shorten(message: Message) -> Message:
    blocks: tuple[Block, ...] = tuple(
        _shorten_result(block) if isinstance(block, ToolResultBlock) else block
        for block in message.blocks
    )
    return message if blocks == message.blocks else replace(message, blocks=blocks)


def _shorten_result(result: ToolResultBlock) -> ToolResultBlock:
    content = tuple(
        TextBlock(cut_middle(part.text, RESET_RESULT_CHARACTERS))
        if isinstance(part, TextBlock)
        else part
        for part in result.content
    )
    return result if content == result.content else replace(result, content=content)


def cut_middle(text: str, limit: int) -> str:
    """`text` within about `limit` characters: head, tail, and a marker that says what is gone."""
    if len(text) <= limit + len(SHORTENED):
        return text
    half = limit // 2
    return text[:half] + SHORTENED.format(count=len(text) - 2 * half) + text[-half:]
