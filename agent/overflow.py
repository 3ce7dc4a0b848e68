"""Line 4: the ladder of an overflow. Each rung makes the working copy smaller.

    compact      whole turns leave, to the limit that the provider stated; then the current turn's
                 results are shortened, the oldest first, but for the newest
    aggressive   5 turns, 10,000 characters for each tool result, long tool inputs cut too, and no
                 reasoning
    emergency    the current turn's question and the newest messages behind a boundary message
    reset        the current turn's question, and the list of calls that were executed

The rungs are pure; `agent.mending` says when one is due, `agent.working` climbs it and keeps what
leaves, and the provider is asked again after each one that shrinks the request. A call that was
executed is named by every rung that removes it, so that the model does not make it again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import chain
from typing import Final

from agent.context import (
    READ_AGAIN,
    Sizes,
    Trimmed,
    Turn,
    Working,
    brief,
    cut_middle,
    drop_turns,
    map_blocks,
    shorten_results,
    size,
    turns_room,
    with_newest_shortened,
    without_thinking,
)
from agent.errors import Refusal
from agent.messages import Block, JsonValue, Message, ToolResultBlock, ToolUseBlock

MOST_ROUNDS = 32  # of the compaction
AGGRESSIVE_TURNS = 5
AGGRESSIVE_CHARACTERS = 10_000  # of a tool result, and of a text within a tool input
NEWEST_MESSAGES = 5  # that stay behind the boundary of an emergency, beside the question
MOST_EMERGENCIES = 5  # a conversation; see memory.conversations
EMERGENCY_PAUSE_S = 60.0
ROOM = 0.9  # a target is this part of the stated limit: estimates err

BOUNDARY = "[COMPACT_BOUNDARY]"
_CALL_CHARACTERS = 200  # of a call in the list of executed ones
_MOST_CALLS = 50  # in that list; the newest


class Rung(StrEnum):
    """The rungs in the order in which they are tried."""

    COMPACT = "compact"
    AGGRESSIVE = "aggressive"
    EMERGENCY = "emergency"
    RESET = "reset"


LADDER: Final = tuple(Rung)


def target_tokens(refusal: Refusal, estimated: int, fixed: int, reserved: int, budget: int) -> int:
    """What the messages may take by our estimate, after a refusal of `estimated` tokens in all.

    `fixed`: system prompt and tools, `reserved`: the reply. Where the provider stated its limit, and
    what was requested, our estimate is scaled by that; without a limit, half of what was sent.
    """
    limit = refusal.limit_tokens
    if not limit:
        return min(budget, estimated // 2 - fixed)
    # What the provider counted may hold the reserved reply; then there is more room than needed.
    return min(budget, round((limit - reserved) * ROOM / _scale(refusal, estimated)) - fixed)


def estimated_limit(refusal: Refusal, estimated: int) -> int | None:
    """The limit that a refusal of `estimated` tokens in all states, in tokens as we estimate them;
    None where it states none."""
    limit = refusal.limit_tokens
    return round(limit / _scale(refusal, estimated)) if limit else None


def _scale(refusal: Refusal, estimated: int) -> float:
    """Tokens that the provider counts for each that we estimate."""
    requested = refusal.requested_tokens
    return max(requested / estimated, 0.1) if requested and estimated else 1.0


def compact(working: Working, target: int, sizes: Sizes) -> Trimmed:
    """Whole turns leave, the oldest first, until the rest fits beside a note; the newest turn stays.
    Where it is too large by itself its results are shortened, the oldest first, but for the newest."""
    trimmed = Trimmed(working)
    for _ in range(MOST_ROUNDS):
        over = size(replace(trimmed.working, note=None), sizes)
        over -= turns_room(trimmed, target, sizes)
        if over <= 0 or len(trimmed.working.turns) <= 1:
            break
        trimmed = drop_turns(trimmed, _enough(trimmed.working.turns, over, sizes))
    return with_newest_shortened(trimmed, target, sizes, spared=1)


def _enough(turns: Sequence[Turn], over: int, sizes: Sizes) -> int:
    """How many of the oldest turns weigh `over` tokens; one at least."""
    count = 0
    for turn in turns:
        if over <= 0:
            break
        over -= sum(map(sizes.message, turn))
        count += 1
    return max(1, count)


def aggressive(working: Working) -> Trimmed:
    """At most 5 turns, and short results and inputs and no reasoning in all of them."""
    trimmed = drop_turns(Trimmed(working), len(working.turns) - AGGRESSIVE_TURNS)
    shorter = shorten_results(trimmed.working, AGGRESSIVE_CHARACTERS, newest=True)
    turns = tuple(tuple(map(_short_inputs, without_thinking(turn))) for turn in shorter.turns)
    return replace(trimmed, working=replace(shorter, turns=turns))


def emergency(working: Working, snapshot: str, whole: Turn, earlier: int = 0) -> Trimmed:
    """The current turn's question behind a boundary message that names the snapshot, and the newest
    messages: the turn's own, then whole turns before it, of at most `earlier` messages together. The
    note of earlier turns goes: the snapshot has them. `whole`: the current turn with what has left
    it before."""
    newest = working.newest
    own = _tail(newest[1:])
    room = min(earlier, NEWEST_MESSAGES - len(newest[1:]))  # the turn's own come first
    kept, brief_ones = _newest_turns(working, room)
    left = len(working.turns) - 1 - len(kept)
    note = (
        f"{BOUNDARY} The conversation had become too long for the model. What was said before is in "
        f"the transcript {snapshot}; read_transcript shows it. {executed(whole)}"
    )
    smaller = Working(
        (*kept, (*newest[:1], *own)), note.strip(), working.left + left, brief=brief_ones
    )
    stays = {id(message) for turn in smaller.turns for message in turn}
    return Trimmed(smaller, tuple(m for t in working.turns for m in t if id(m) not in stays))


def _newest_turns(working: Working, room: int) -> tuple[tuple[Turn, ...], int]:
    """The newest turns before the current one that have room, in messages, and how many of them are
    question and final answer only: a turn that is too long stays like that, as the last one."""
    kept: list[Turn] = []
    for index in reversed(range(len(working.turns) - 1)):
        turn = working.turns[index]
        short = turn if len(turn) <= room else brief(turn)
        if len(short) > room:
            break
        kept.insert(0, short)
        room -= len(short)
        if short is not turn:
            return tuple(kept), 1
    return tuple(kept), max(0, working.brief - (len(working.turns) - 1 - len(kept)))


def reset(working: Working, whole: Turn) -> Trimmed:
    """The current turn's question alone, with the calls that were executed for it. `whole`: the
    current turn with what has left it before."""
    newest = working.newest
    dropped = tuple(chain.from_iterable((*working.turns[:-1], newest[1:])))
    note = (
        f"{BOUNDARY} What was said before could not be sent to the model and was left out here; "
        f"read_transcript shows it. "
        f"{executed(whole)}"
    )
    left = working.left + len(working.turns) - 1
    return Trimmed(Working((newest[:1],), note.strip(), left), dropped)


def executed(turn: Turn) -> str:
    """One sentence that names every call of the turn that ran and how it ended; empty when there is
    none."""
    results = {result.tool_use_id: result for message in turn for result in message.tool_results}
    calls = [(call, results.get(call.id)) for message in turn for call in message.tool_uses]
    lines = [_line(*one) for one in calls if one[1] is None or one[1].outcome != "not_run"]
    if not lines:
        return ""
    hidden = len(lines) - _MOST_CALLS
    more = f" ({hidden} earlier ones are not listed)" if hidden > 0 else ""
    listed = "\n".join(lines[-_MOST_CALLS:])
    return (
        f"These calls were executed for this question already, do not repeat them{more}:\n{listed}"
    )


def _line(call: ToolUseBlock, result: ToolResultBlock | None) -> str:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    if len(arguments) > _CALL_CHARACTERS:
        arguments = arguments[:_CALL_CHARACTERS] + "…"
    if result is None or result.outcome == "unknown":
        return f"- {call.name}({arguments}): outcome unknown"
    return f"- {call.name}({arguments}): {'failed' if result.is_error else 'done'}"


def _tail(messages: Turn) -> Turn:
    """The newest messages, from an assistant's on: no result stands without its call."""
    tail = messages[-NEWEST_MESSAGES:]
    while tail and tail[0].role != "assistant":
        tail = tail[1:]
    return tail


def _short_inputs(message: Message) -> Message:
    def change(block: Block) -> Block:
        if not isinstance(block, ToolUseBlock):
            return block
        arguments = {key: _short(value) for key, value in block.arguments.items()}
        return block if arguments == block.arguments else replace(block, arguments=arguments)

    return map_blocks(message, change)


def _short(value: JsonValue) -> JsonValue:
    """Texts anywhere within a tool's input, cut; keys and structure stay."""
    match value:
        case str():
            return cut_middle(value, AGGRESSIVE_CHARACTERS, READ_AGAIN)
        case list():
            return [_short(item) for item in value]
        case dict():
            return {key: _short(item) for key, item in value.items()}
        case _:
            return value
