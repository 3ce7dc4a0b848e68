"""The processes of a benchmark as forks of one that has everything imported: what they measure is not
what a test is about, and Python's own starts would be most of its time."""

from __future__ import annotations

import os
import signal
import socket
from subprocess import TimeoutExpired

from tests.bridge.cli.processes import PYTHON_ENVIRON, ROOT, Forks

MODULES = ("bench.bot", "bench.idle", "bench.sdk_alone", "bench.servers", "bench.sessions")
"""What the benchmark starts, beside galata itself and `bench.turns`, which `bench.sessions` imports."""


class Forked:
    """To be used as a `subprocess.Popen` of `python -m MODULE WORDS` with three pipes."""

    def __init__(self, forks: Forks, args: list[str]) -> None:
        self.args = args
        _python, _m, module, *words = args
        environ = {name: os.environ[name] for name in os.environ if not name.startswith("PYTHON")}
        order = {
            "module": "" if module == "bridge" else module,
            "words": words,
            "cwd": str(ROOT),
            "env": {**environ, **PYTHON_ENVIRON},
            "terminal": False,
        }
        told, tells = socket.socketpair()
        (reads, stdin), (stdout, out), (stderr, errors) = os.pipe(), os.pipe(), os.pipe()
        forks.order(order, [tells.fileno(), reads, out, errors])
        tells.close()
        for theirs in (reads, out, errors):
            os.close(theirs)
        self.stdin = os.fdopen(stdin, "w")
        self.stdout = os.fdopen(stdout)
        self.stderr = os.fdopen(stderr)
        self._socket = told
        self._told = told.makefile()
        self.pid = int(self._told.readline())
        self._code: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises `TimeoutExpired`."""
        if self._code is None:
            self._socket.settimeout(timeout)
            try:
                self._code = int(self._told.readline())
            except TimeoutError:
                raise TimeoutExpired(self.args, timeout or 0) from None
            self._told.close()
            self._socket.close()
        return self._code

    def terminate(self) -> None:
        """With SIGTERM."""
        os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """With SIGKILL."""
        os.kill(self.pid, signal.SIGKILL)
