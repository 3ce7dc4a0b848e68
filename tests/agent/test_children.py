"""A tool's program and all that it has started end with the call."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.children import MOST_BYTES, run_child


def is_alive(pid: int) -> bool:
    """A zombie is not alive: whoever adopted it reaps it when it likes."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def wait_until(condition: Callable[[], bool]) -> None:
    """In a thread: there is nothing that would tell."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "not seen within 20 s"
        time.sleep(0.005)


async def until_gone(pid: int) -> None:
    await asyncio.to_thread(wait_until, lambda: not is_alive(pid))


async def written(path: Path) -> int:
    await asyncio.to_thread(wait_until, lambda: path.exists() and bool(path.read_text().strip()))
    return int(await asyncio.to_thread(path.read_text))


async def test_a_program_gives_its_outputs_and_its_code() -> None:
    script = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    result = await run_child([sys.executable, "-c", script])
    assert (result.code, result.stdout, result.stderr) == (3, b"out\n", b"err\n")


async def test_a_cancel_kills_the_program_and_its_children(tmp_path: Path) -> None:
    pid_file = tmp_path / "grandchild"
    script = f"sleep 600 & echo $! > {pid_file}; trap '' TERM; sleep 600"
    task = asyncio.ensure_future(run_child(["/bin/sh", "-c", script]))
    grandchild = await written(pid_file)
    assert is_alive(grandchild)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until_gone(grandchild)


async def test_a_child_that_outlives_its_program_is_killed_too(tmp_path: Path) -> None:
    pid_file = tmp_path / "child"
    script = f"sleep 600 >/dev/null 2>&1 & echo $! > {pid_file}"
    await run_child(["/bin/sh", "-c", script])
    await until_gone(await written(pid_file))


async def test_a_flood_of_output_is_bounded() -> None:
    script = f"import sys; sys.stdout.write('x' * {3 * MOST_BYTES})"
    result = await run_child([sys.executable, "-c", script])
    assert result.code == 0
    assert len(result.stdout) == MOST_BYTES


async def test_what_cannot_be_started_is_an_error_of_the_system() -> None:
    with pytest.raises(FileNotFoundError):
        await run_child(["/no/such/program"])
