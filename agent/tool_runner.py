"""Runs the calls of one step: in order, and side by side where the tools say that they may."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from agent.context import cut_middle
from agent.errors import ToolError
from agent.messages import ImageBlock, TextBlock, ToolResultBlock, ToolUseBlock
from agent.tool_args import CheckedCall
from agent.tools import Tool, Toolbox, ToolContext, ToolOutput

log = logging.getLogger(__name__)

# A result's cap when it comes in, in characters; head and tail stay (issue 3, line 1).
MAX_RESULT_CHARACTERS = 50_000


async def run_tools(
    calls: Iterable[CheckedCall],
    toolbox: Toolbox,
    context: ToolContext,
    *,
    started: Callable[[ToolUseBlock], None],
    finished: Callable[[ToolUseBlock, ToolResultBlock], None],
) -> None:
    """Every call gets exactly one `finished`, in any order; `started` comes before it runs.

    A failing, slow or unknown tool gives an error result and never raises. Cancelling ends what is
    running and starts nothing more.
    """

    async def one(checked: CheckedCall) -> None:
        finished(checked.call, await _result(checked, toolbox, context, started))

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


async def _result(
    checked: CheckedCall,
    toolbox: Toolbox,
    context: ToolContext,
    started: Callable[[ToolUseBlock], None],
) -> ToolResultBlock:
    call = checked.call
    tool = toolbox.find(call.name)
    if tool is None or checked.problem is not None:
        output = ToolOutput.of(checked.problem or f"There is no tool {call.name!r}.", is_error=True)
    else:
        started(call)
        output = await _run(tool, call, context)
    return ToolResultBlock(call.id, _content(output), output.is_error)


async def _run(tool: Tool, call: ToolUseBlock, context: ToolContext) -> ToolOutput:
    timeout_s = tool.spec.timeout_s
    try:
        async with asyncio.timeout(timeout_s):
            return await tool.run(call.arguments, context)
    except ToolError as error:
        return ToolOutput.of(str(error), is_error=True)
    except TimeoutError:
        text = f"The tool did not finish within {timeout_s:g} seconds and was ended."
        return ToolOutput.of(text, is_error=True)
    except Exception:
        log.exception("tool %s failed in run %s", call.name, context.run_id)
        return ToolOutput.of("The tool failed for a reason of its own.", is_error=True)


def _content(output: ToolOutput) -> tuple[TextBlock | ImageBlock, ...]:
    content = tuple(
        TextBlock(cut_middle(part.text, MAX_RESULT_CHARACTERS))
        if isinstance(part, TextBlock)
        else part
        for part in output.content
        if isinstance(part, ImageBlock) or part.text.strip()
    )
    return content or (TextBlock("(empty)"),)
