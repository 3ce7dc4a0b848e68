"""Child processes of tools: a group of their own, which ends with the call, whatever it is doing.

A tool that starts a program does it here, so that a cancel or a timeout leaves nothing behind: not
the program, and not what the program has started.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_BYTES = 1_000_000  # of each output; the rest is read and dropped


@dataclass(frozen=True, slots=True)
class ChildResult:
    """How a program ended: its exit code (negative: the signal), and its outputs' first bytes."""

    code: int
    stdout: bytes
    stderr: bytes


async def run_child(
    argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None
) -> ChildResult:
    """Run a program to its end, without input.

    When this is cancelled, its whole process group is killed before the cancel goes on. Raises
    `OSError` when it cannot be started. POSIX only.
    """
    process = await _started(
        asyncio.create_subprocess_exec(
            *argv, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=env, cwd=cwd, start_new_session=True
        )
    )
    try:
        stdout, stderr = await asyncio.gather(_head(process.stdout), _head(process.stderr))
        return ChildResult(await process.wait(), stdout, stderr)
    finally:
        await _end(process)


async def _started(start: Coroutine[Any, Any, Process]) -> Process:
    """The process; when this is cancelled, it runs already perhaps, and asyncio would kill it alone."""
    starting = asyncio.ensure_future(start)
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _end(await starting)
        raise


async def _head(stream: asyncio.StreamReader | None) -> bytes:
    kept = bytearray()
    while stream is not None and (chunk := await stream.read(65_536)):
        kept += chunk[: MOST_BYTES - len(kept)]
    return bytes(kept)


async def _end(process: Process) -> None:
    """Kill what is left of the group: also children that outlive the program itself."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
