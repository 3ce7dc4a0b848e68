"""`galata` as a process that need not import everything anew: see `tests.bridge.cli.forks`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE

ROOT = Path(__file__).parents[3]
PYTHON_ENVIRON = {"LANG": "C.UTF-8", "PYTHONWARNINGS": "error::ResourceWarning"}
"""What the warm process was started with, for every fork."""
_MOST = 1 << 20  # bytes of output that are taken in while nobody reads them


def python_environ(env: Mapping[str, str]) -> dict[str, str]:
    """What Python would read of it at its start."""
    return {name: env[name] for name in env if name == "LANG" or name.startswith("PYTHON")}


class _Output(asyncio.StreamReaderProtocol):
    """Knows when the other side has closed."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__(reader)
        self.closed = asyncio.get_running_loop().create_future()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.closed.set_result(None)


class Process:
    """To be used as an `asyncio.subprocess.Process`."""

    def __init__(self) -> None:
        self.pid = 0
        self.returncode: int | None = None
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None
        self._outputs: list[_Output] = []

    async def begin(self, told: socket.socket) -> None:
        """As soon as it runs."""
        reader, writer = await asyncio.open_connection(sock=told)
        self.pid = int(await reader.readline())
        self._ended = asyncio.ensure_future(self._end(reader, writer))

    async def write_to(self, descriptor: int) -> None:
        """`descriptor`: our end of the pipe that is its standard input."""
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()),
            os.fdopen(descriptor, "wb", 0),
        )
        self.stdin = asyncio.StreamWriter(transport, protocol, None, loop)

    async def read_from(self, descriptor: int) -> asyncio.StreamReader:
        """`descriptor`: our end of a pipe that it writes to."""
        reader = asyncio.StreamReader(_MOST)
        output = _Output(reader)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: output, os.fdopen(descriptor, "rb", 0))
        self._outputs.append(output)
        return reader

    async def _end(self, told: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.returncode = int(await told.readline())
        writer.close()
        await writer.wait_closed()

    def send_signal(self, number: int) -> None:
        """Raises `ProcessLookupError` once it has ended."""
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, number)

    def kill(self) -> None:
        """With SIGKILL."""
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """The exit code, or minus the signal's number where one has ended it."""
        await asyncio.shield(self._ended)
        if self.stdin is not None:
            self.stdin.close()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                await self.stdin.wait_closed()
        for output in self._outputs:
            await asyncio.shield(output.closed)
        assert self.returncode is not None
        return self.returncode

    async def communicate(self, typed: bytes = b"") -> tuple[bytes, bytes]:
        """Write, close, and read until it ends."""
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.stdin.write(typed)
                await self.stdin.drain()
            self.stdin.close()
        out, errors = await asyncio.gather(_all(self.stdout), _all(self.stderr))
        await self.wait()
        return out, errors


async def _all(stream: asyncio.StreamReader | None) -> bytes:
    return b"" if stream is None else await stream.read()


class Forks:
    """The warm process, from its first order on. `modules`: what it imports beside galata."""

    def __init__(self, modules: Sequence[str] = ()) -> None:
        self._modules = modules
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    async def start(
        self,
        *words: str,
        cwd: Path,
        env: Mapping[str, str],
        stdin: int = PIPE,
        stdout: int = PIPE,
        stderr: int = PIPE,
        terminal: bool = False,
    ) -> Process:
        """`galata WORDS`. A stream is `PIPE`, `DEVNULL`, or a descriptor to be used; with `terminal`
        they are all one, which becomes the controlling one as a login does it."""
        assert python_environ(env) == PYTHON_ENVIRON, "this needs a Python of its own"
        order = {"module": "", "words": words, "cwd": str(cwd), "env": dict(env)}
        process = Process()
        told, tells = socket.socketpair()
        with contextlib.ExitStack() as given:
            given.enter_context(tells)
            descriptors = [tells.fileno()]
            for name, stream in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr)):
                descriptors.append(await _stream(process, name, stream, given))
            self.order({**order, "terminal": terminal}, descriptors)
        await process.begin(told)
        return process

    def order(self, order: Mapping[str, object], descriptors: list[int]) -> None:
        """Pass on what `tests.bridge.cli.forks` asks for."""
        socket.send_fds(self._warm(), [json.dumps(order).encode()], descriptors)

    def _warm(self) -> socket.socket:
        if self._control is None:
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tests.bridge.cli.forks", *self._modules],
                    stdin=theirs.fileno(),
                    cwd=ROOT,
                    env={"PATH": os.environ["PATH"], **PYTHON_ENVIRON},
                    start_new_session=True,  # Ctrl-C in the terminal of the tests is theirs
                )
        return self._control

    def close(self) -> None:
        """End it, if it was ever needed."""
        if self._control is not None and self._process is not None:
            self._control.close()
            self._process.wait()
            self._control = None


async def _stream(process: Process, name: str, stream: int, given: contextlib.ExitStack) -> int:
    """The descriptor to give away, closed with `given` if it was opened for that."""
    if stream == DEVNULL:
        stream = os.open(os.devnull, os.O_RDWR)
    elif stream == PIPE:
        reads, writes = os.pipe()
        if name == "stdin":
            stream = reads
            await process.write_to(writes)
        else:
            stream = writes
            setattr(process, name, await process.read_from(reads))
    else:
        return stream
    given.callback(os.close, stream)
    return stream


FORKS = Forks()
"""Those of this run of the tests; `conftest.py` ends them."""


async def start_anew(*words: str, cwd: Path, env: Mapping[str, str]) -> asyncio.subprocess.Process:
    """`galata WORDS` on pipes, in a Python that starts for it."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bridge", *words),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        cwd=cwd,
        env=env,
    )
