"""Runs the calls of one step: in order, and side by side where the tools say that they may."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Iterator
from itertools import groupby
from typing import Any, Protocol

from agent.context import cut_middle, share_of_text
from agent.errors import ToolError
from agent.messages import ImageBlock, Outcome, TextBlock, ToolResultBlock, ToolUseBlock
from agent.providers.wire import clean
from agent.tool_args import CheckedCall
from agent.tools import Tool, Toolbox, ToolContext, ToolOutput

log = logging.getLogger(__name__)

# A result's cap when it comes in, in characters; head and tail stay (issue 3, line 1).
MAX_RESULT_CHARACTERS = 50_000
# For a tool to end once it is told to, in seconds; then the run goes on without it. Less than the
# lanes' own grace, so that a stopped run still gets to its end.
GRACE_S = 0.5
MAYBE = " It may or may not have taken effect."


class Finished(Protocol):
    """Is told of each call's result."""

    def __call__(self, call: ToolUseBlock, result: ToolResultBlock) -> None: ...


class Started(Protocol):
    """Is told of each call that begins to run."""

    def __call__(self, call: ToolUseBlock) -> None: ...


async def run_tools(
    calls: Iterable[CheckedCall],
    toolbox: Toolbox,
    context: ToolContext,
    *,
    started: Started,
    finished: Finished,
) -> None:
    """Every call gets exactly one `finished`, in any order; `started` comes before it runs.

    A failing, slow or unknown tool gives an error result and never raises. Cancelling ends what is
    running and starts nothing more.
    """

    async def one(checked: CheckedCall) -> None:
        call, tool = checked.call, toolbox.find(checked.call.name)
        outcome: Outcome
        if tool is None or checked.problem is not None:
            problem = checked.problem or f"There is no tool {call.name!r}."
            output, outcome = ToolOutput.of(problem, is_error=True), "not_run"
        else:
            started(call)
            output, known = await _run(tool, call, context)
            outcome = "known" if known or not tool.spec.side_effects else "unknown"
        finished(call, ToolResultBlock(call.id, _content(output), output.is_error, outcome))

    for batch in _batches(calls, toolbox):
        if context.cancel.cancelled:
            raise asyncio.CancelledError
        async with asyncio.TaskGroup() as group:
            for checked in batch:
                group.create_task(one(checked), name=f"tool {checked.call.name}")


def _batches(calls: Iterable[CheckedCall], toolbox: Toolbox) -> Iterator[list[CheckedCall]]:
    """Neighbouring parallel calls together, every other call alone."""

    def parallel(checked: CheckedCall) -> bool:
        tool = toolbox.find(checked.call.name)
        return tool is not None and tool.spec.parallel

    for together, batch in groupby(calls, parallel):
        if together:
            yield list(batch)
        else:
            for checked in batch:
                yield [checked]


async def _run(tool: Tool, call: ToolUseBlock, context: ToolContext) -> tuple[ToolOutput, bool]:
    """The tool's answer, and whether it is known what it did."""
    timeout_s = tool.spec.timeout_s
    try:
        return await _within(timeout_s, tool.run(call.arguments, context)), True
    except ToolError as error:
        return ToolOutput.of(str(error), is_error=True), True
    except TimeoutError:
        text = f"The tool did not finish within {timeout_s:g} seconds and was ended."
    except Exception:
        log.exception("tool %s failed in run %s", call.name, context.run_id)
        text = "The tool failed for a reason of its own."
    maybe = MAYBE if tool.spec.side_effects else ""
    return ToolOutput.of(text + maybe, is_error=True), False


async def _within(seconds: float, work: Coroutine[Any, Any, ToolOutput]) -> ToolOutput:
    """What the work gives, or raises. Raises `TimeoutError` when it takes longer, and leaves it behind
    when it does not end by being cancelled."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE_S)
        if not task.done():
            log.warning("a tool does not end although it was cancelled: %s", task)
            task.add_done_callback(_nobody_waits)
    if not task.done() or task.cancelled():
        raise TimeoutError
    return task.result()


def _nobody_waits(task: asyncio.Task[ToolOutput]) -> None:
    if not task.cancelled():
        task.exception()  # fetched, or asyncio complains that nobody did


def _content(output: ToolOutput) -> tuple[TextBlock | ImageBlock, ...]:
    """What can be stored and sent: file names, for one, need not be valid Unicode."""
    most = share_of_text(output.content, MAX_RESULT_CHARACTERS)
    content = tuple(
        TextBlock(cut_middle(clean(part.text), most)) if isinstance(part, TextBlock) else part
        for part in output.content
        if isinstance(part, ImageBlock) or part.text.strip()
    )
    return content or (TextBlock("(empty)"),)
