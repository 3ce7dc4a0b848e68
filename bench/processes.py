"""Child processes that are asked by lines of JSON and say on standard error that they are ready."""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from typing import IO, Any, Self

import psutil

Json = dict[str, Any]
ROOT = Path(__file__).parent.parent
MB = 1024 * 1024


class ChildFailed(Exception):
    """A child ended or kept silent; the text holds the last lines of its standard error."""


class Child:
    """`python -m …`. Ends when its standard input closes."""

    def __init__(self, module: str, arguments: Sequence[str] = ()) -> None:
        self.started_at = time.monotonic()
        self.ready_at = 0.0
        self.rss_at_ready_mb = 0.0
        self._ready = threading.Event()
        self._answers: queue.SimpleQueue[Json] = queue.SimpleQueue()
        self._errors: deque[str] = deque(maxlen=30)
        self._process = Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            text=True,
            cwd=ROOT,
        )
        self._status = psutil.Process(self._process.pid)
        self._readers = [
            threading.Thread(target=read, args=(pipe,), daemon=True)
            for read, pipe in (
                (self._read_answers, self._process.stdout),
                (self._read_errors, self._process.stderr),
            )
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join()
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()

    @property
    def rss_mb(self) -> float:
        """Resident memory now, in units of 1024² bytes."""
        return float(self._status.memory_info().rss) / MB

    @property
    def cpu_s(self) -> float:
        """CPU seconds so far, in the kernel's steps of 10 ms."""
        used = self._status.cpu_times()
        return float(used.user + used.system)

    @property
    def waited_s(self) -> float:
        """Seconds so far in which its threads were ready to run and had no core; 0 where the kernel
        does not tell (proc_pid_schedstat: the second figure, in ns)."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[1]) for task in tasks) / 1e9

    def terminate(self) -> None:
        """SIGTERM, for a child that does not read its standard input."""
        self._process.terminate()

    def wait_ready(self, timeout_s: float = 30) -> float:
        """Seconds from the start of the process to the log line. Raises `ChildFailed`."""
        if not self._ready.wait(timeout_s):
            raise self._failed("it did not get ready")
        return self.ready_at - self.started_at

    def ask(self, timeout_s: float = 60, **command: Any) -> Json:
        """One command and its answer. Raises `ChildFailed`."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
        except OSError:
            raise self._failed("it is gone") from None
        return self.told(timeout_s)

    def told(self, timeout_s: float = 60) -> Json:
        """The next line of JSON that it prints. Raises `ChildFailed`."""
        try:
            return self._answers.get(timeout=timeout_s)
        except queue.Empty:
            raise self._failed("it did not answer") from None

    def _failed(self, what: str) -> ChildFailed:
        return ChildFailed("\n".join([f"{self._process.args!r}: {what}", *self._errors]))

    def _read_answers(self, pipe: IO[str]) -> None:
        for line in pipe:
            if line.startswith("{"):
                self._answers.put(json.loads(line))

    def _read_errors(self, pipe: IO[str]) -> None:
        for line in pipe:
            self._errors.append(line.rstrip())
            if not self._ready.is_set() and ": ready: " in line:
                self.ready_at = time.monotonic()
                self.rss_at_ready_mb = self.rss_mb
                self._ready.set()
