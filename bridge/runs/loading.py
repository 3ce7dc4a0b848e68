"""A stored conversation as the working copy that a run begins with. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from agent.context import Turn, Working, brief
from agent.history import lost_result
from agent.loop import STOPPED_MARK
from agent.messages import Block, Message, TextBlock, ToolUseBlock
from agent.overflow import executed
from memory.conversations import Context, StoredMessage

INTERRUPTED_MARK = "[This answer was interrupted.]"


@dataclass(frozen=True, slots=True)
class Loaded:
    """`starts`: the row id of each turn's first message. `resumed`: what an earlier process has
    stored of this run after its question."""

    working: Working
    starts: tuple[int, ...]
    resumed: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A run with its question. `start`: the row id where its turn starts (`start_of`). `before` stands
    before the question in the working copy alone."""

    run_id: str
    question: Message
    start: int
    before: str = ""


def load(context: Context, asked: Asked | None) -> Loaded:
    """The conversation as turns, each of one run; the run's own is the last and ends with its
    question, which stands even where the context does not hold it (yet, or any more). `asked` None:
    there is no run, all turns are old."""
    turns: list[Turn] = []
    starts: list[int] = []
    resumed: tuple[Message, ...] = ()
    for run, rows in _runs(context):
        if asked is not None and run == asked.run_id:
            resumed = tuple(stored.message for stored in rows if stored.ordinal)
        else:
            mark = STOPPED_MARK if run in context.stopped else INTERRUPTED_MARK
            turns.append(closed(tuple(stored.message for stored in rows), mark))
            starts.append(rows[0].id)
    if asked is not None:
        question = asked.question
        turns.append((_with(asked.before, question) if asked.before else question,))
        starts.append(asked.start)
    boundary = context.boundary
    behind = 0
    if boundary is not None and boundary.brief_id is not None:
        behind = sum(start < boundary.brief_id for start in starts)
    working = Working(
        (*map(brief, turns[:behind]), *turns[behind:]),
        note=boundary.note if boundary is not None else None,
        brief=behind,
    )
    return Loaded(working, tuple(starts), resumed)


def start_of(context: Context, question: int, retry_of: str | None) -> int:
    """Where the turn of a question starts, stored under this row id. One that is asked again starts
    with the run that it is to replace: if it comes to nothing, that one stays in the context."""
    replaced = (stored.id for stored in context.messages if stored.run_id == retry_of)
    return min(replaced, default=question)


def without_run(context: Context, run_id: str | None) -> Context:
    """The context without one run."""
    return replace(context, messages=tuple(m for m in context.messages if m.run_id != run_id))


def attempts(context: Context, run_id: str | None) -> set[str]:
    """A run, and those right before it that were to answer the same question."""
    found: set[str] = set()
    question: Message | None = None
    for run, rows in reversed(_runs(context)):
        if (found and rows[0].message == question) or run == run_id:
            found.add(run)
            question = rows[0].message
        elif found:
            break
    return found


def effects_of(context: Context, runs: Collection[str], tools: Collection[str]) -> str:
    """One sentence that names the calls of these tools which the runs have made; empty without any. A
    question that is answered anew must not have them made twice."""
    turn = (m.message for m in context.messages if m.run_id in runs)
    return executed(tuple(replace(one, blocks=tuple(_of(tools, one))) for one in turn))


def _of(tools: Collection[str], message: Message) -> Iterator[Block]:
    for block in message.blocks:
        if not isinstance(block, ToolUseBlock) or block.name in tools:
            yield block


def closed(turn: Turn, mark: str) -> Turn:
    """The turn with an end: one whose end was lost in a crash, or that a stop has dropped, gets results
    for its open calls and the mark, in memory only."""
    last = turn[-1]
    if last.role == "assistant" and not last.tool_uses:
        return turn
    results = tuple(lost_result(call.id) for call in last.tool_uses)
    ended = (*turn, Message("user", results)) if results else turn
    return (*ended, Message("assistant", (TextBlock(mark),)))


def _with(before: str, question: Message) -> Message:
    return replace(question, blocks=(TextBlock(before), *question.blocks))


def _runs(context: Context) -> list[tuple[str, list[StoredMessage]]]:
    """Each run with its messages in its own order, where its first row is: a late one may have a later
    row, also one behind another run's."""
    runs: dict[str, list[StoredMessage]] = {}
    for stored in context.messages:
        runs.setdefault(stored.run_id, []).append(stored)
    return [(run, sorted(rows, key=lambda stored: stored.ordinal)) for run, rows in runs.items()]
