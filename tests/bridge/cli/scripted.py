"""`galata` as a process: on a pseudo-terminal that a test types into, or on pipes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from tests.bridge.cli.processes import FORKS, PYTHON_ENVIRON, Process, python_environ, start_anew

_WAIT_S = 30


def environ(home: Path, **more: str) -> dict[str, str]:
    """A bare environment."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        **PYTHON_ENVIRON,
        "TZ": "Europe/Berlin",
        **more,
    }


class ScriptedTerminal:
    """What a person sees (`shown`) and types."""

    def __init__(self, process: Process, master: int) -> None:
        self._process = process
        self._master = master
        self._grew = asyncio.Event()
        self._read = 0
        self.shown = ""
        asyncio.get_running_loop().add_reader(master, self._take)

    def _take(self) -> None:
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux's end of a terminal
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._master)
        self.shown += data.decode(errors="replace")
        self._grew.set()

    async def expect(self, text: str) -> None:
        """Wait until `text` is shown after what was expected before."""
        async with asyncio.timeout(_WAIT_S):
            while (found := self.shown.find(text, self._read)) < 0:
                assert self._process.returncode is None, f"it ended; shown:\n{self.shown}"
                self._grew.clear()
                await self._grew.wait()
        self._read = found + len(text)

    def type(self, line: str) -> None:
        """A line with Enter."""
        os.write(self._master, f"{line}\n".encode())

    def press(self, control: bytes) -> None:
        """Ctrl-C is `b"\\x03"`, Ctrl-D `b"\\x04"`."""
        os.write(self._master, control)

    async def leave(self, control: bytes) -> int:
        """Press a key as often as a person would until it is heeded; the exit code.

        A signal that comes just before Python begins to read is noticed with the next key only. One
        that comes after the first was heeded, when a line has been ended, would kill the process.
        """
        before = len(self.shown)
        async with asyncio.timeout(_WAIT_S):
            while "\n" not in self.shown[before:] and self._process.returncode is None:
                self.press(control)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(2):
                        await self._line_ended(before)
            return await self._process.wait()

    async def _line_ended(self, after: int) -> None:
        while "\n" not in self.shown[after:]:
            self._grew.clear()
            await self._grew.wait()

    async def ended(self) -> int:
        """The exit code."""
        async with asyncio.timeout(_WAIT_S):
            return await self._process.wait()

    async def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        asyncio.get_running_loop().remove_reader(self._master)
        os.close(self._master)


@asynccontextmanager
async def terminal(
    *words: str, cwd: Path, env: Mapping[str, str]
) -> AsyncIterator[ScriptedTerminal]:
    """`galata WORDS` on a terminal of its own."""
    master, slave = pty.openpty()
    try:
        process = await FORKS.start(
            *words, stdin=slave, stdout=slave, stderr=slave, terminal=True, cwd=cwd, env=env
        )
    finally:
        os.close(slave)
    script = ScriptedTerminal(process, master)
    try:
        yield script
    except TimeoutError:
        raise AssertionError(f"not shown; what is:\n{script.shown}") from None
    finally:
        await script.close()


async def piped(
    *words: str,
    cwd: Path,
    env: Mapping[str, str],
    typed: str | bytes = "",
    anew: bool = False,
) -> tuple[int, str, str]:
    """`galata WORDS` with `typed` as its input: exit code, output, errors. In a Python of its own with
    `anew`, and where `env` needs one."""
    sent = typed if isinstance(typed, bytes) else typed.encode()
    start = FORKS.start if python_environ(env) == PYTHON_ENVIRON and not anew else start_anew
    process = await start(*words, cwd=cwd, env=env)
    try:
        async with asyncio.timeout(_WAIT_S):
            out, errors = await process.communicate(sent)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return process.returncode, out.decode(), errors.decode()
