"""How long it takes to see that a long history is legal, and to mend one with a fault in each turn."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import cycle

from agent.history import repair as mended
from agent.history import violations
from agent.messages import (
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    assistant_text,
    user_text,
)
from bench.report import Measure, Measures

MESSAGES = 10_000  # and the question at the end
REPEATS = 15
_FAULTS = ("lost", "doubled", "late", "disordered", "same id", "blank", "half made", "no answer")


def repair() -> Measures:
    """A legal and a broken history of 10,000 messages; the least CPU time of some repairs, which is
    what one takes on a machine where nothing else runs."""
    legal = history(MESSAGES)
    faulty = broken(MESSAGES)
    assert mended(legal) is legal
    assert violations(faulty)
    assert violations(mended(faulty)) == []
    return {
        "repair_legal_ms": Measure(_least_ms(legal), "ms", 5),
        "repair_broken_ms": Measure(_least_ms(faulty), "ms", 20),
    }


def _least_ms(messages: Sequence[Message]) -> float:
    spent = []
    for _ in range(REPEATS):
        since = time.process_time()
        mended(messages)
        spent.append(1000 * (time.process_time() - since))
    return min(spent)


def history(size: int) -> list[Message]:
    """Turns of four messages with two parallel calls each, and a question."""
    return [message for number in range(size // 4) for message in _turn(number)] + [
        user_text("And what comes next?")
    ]


def broken(size: int) -> list[Message]:
    """The same with one fault in each turn, of each kind in turn."""
    faults = cycle(_FAULTS)
    return [
        message
        for number in range(size // 4)
        for message in _spoilt(_turn(number), next(faults), number)
    ] + [user_text("And what comes next?")]


def _turn(number: int) -> list[Message]:
    ids = (f"toolu_{number}_0", f"toolu_{number}_1")
    calls = [ToolUseBlock(id_, "read", {"path": f"notes/{number}.md"}) for id_ in ids]
    results = [ToolResultBlock(id_, (TextBlock(f"the tide of day {number}"),)) for id_ in ids]
    return [
        user_text(f"How high is the tide on day {number}?"),
        Message("assistant", (TextBlock("Let me look that up."), *calls)),
        Message("user", tuple(results)),
        assistant_text(f"On day {number} it is 3.4 metres at noon."),
    ]


def _spoilt(turn: list[Message], fault: str, number: int) -> list[Message]:
    question, asking, results, answer = turn
    first, second = asking.tool_uses
    one, other = results.blocks
    match fault:
        case "lost":
            return [question, asking, Message("user", (other,)), answer]
        case "doubled":
            return [question, asking, Message("user", (*results.blocks, one)), answer]
        case "late":
            return [question, asking, user_text("Are you there?"), answer, results]
        case "disordered":
            return [question, asking, Message("user", (other, one)), answer]
        case "same id":
            same = ToolUseBlock(first.id, "read", {})
            return [question, Message("assistant", (same, same)), results, answer]
        case "blank":
            return [question, Message("assistant", (TextBlock("\n"), first, second)), *turn[2:]]
        case "half made":
            half = ToolUseBlock(f"half {number}", "read", {}, raw='{"path": "no')
            return [question, Message("assistant", (*asking.blocks, half)), results, answer]
        case _:
            return [question, asking, results]
