"""The warm half of `tests.bridge.cli.processes`: `python -m tests.bridge.cli.forks MODULES`.

A process that has everything of galata imported, and the modules, takes orders from the socket that is
its standard input, and forks. The fork is `galata WORDS` or `python -m MODULE WORDS` from there on, and
ends as Python ends; a second one waits for it, and tells its process id and then how it ended.

An order is one line of JSON (`module`, empty for galata, `words`, `cwd`, `env`, `terminal`) and four
descriptors: the socket for what is told, and the standard input, output and errors.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any

PACKAGES = ("agent", "bridge", "channels", "memory")
LATE = ("anthropic", "openai")  # imported when a provider is made
LARGEST = 1 << 16  # bytes of an order


def warm_up(modules: Sequence[str]) -> None:
    """Import what any command of galata does, and the modules."""
    for name in (*LATE, *modules):
        importlib.import_module(name)
    for name in PACKAGES:
        for found in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
            importlib.import_module(found.name)


def serve(control: socket.socket) -> tuple[str, list[str]] | None:
    """Fork for each order. Returns the module and the words in a fork, which is to be that then, and
    None where nobody gives orders any more."""
    while True:
        line, descriptors, _, _ = socket.recv_fds(control, LARGEST, 4)
        if not line:
            control.close()
            return None
        order = json.loads(line)
        if os.fork() == 0:
            control.detach()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            pid = os.fork()
            if pid == 0:
                be_new(order, descriptors[1:])
                return str(order["module"]), list(order["words"])
            watch(pid, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def watch(pid: int, descriptors: list[int]) -> None:
    """Tell the process id and, when it has ended, how. Never returns."""
    told, *rest = descriptors
    for descriptor in (*range(3), *rest):  # nobody is to wait for the end of what this one holds
        os.close(descriptor)
    os.write(told, f"{pid}\n".encode())
    _, status = os.waitpid(pid, 0)
    os.write(told, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def be_new(order: dict[str, Any], streams: list[int]) -> None:
    """What `exec` and Python's own start would have done."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    os.closerange(3, 1 << 20)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    if order["terminal"]:
        os.login_tty(0)
    escape = "surrogateescape"  # as for LANG=C.UTF-8
    sys.stdin = sys.__stdin__ = os.fdopen(0, errors=escape, closefd=False)
    lines = 1 if os.isatty(1) else -1
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", lines, errors=escape, closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)


def main() -> None:
    """Take orders until there are none."""
    control = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    warm_up(sys.argv[1:])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those that watch end by themselves
    gc.collect()
    gc.freeze()
    asked = serve(control)
    if asked is None:
        return
    module, words = asked
    if module:
        sys.argv = [module, *words]
        del sys.modules[module]  # it is `__main__` there, not imported under its name
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        from bridge.__main__ import main as galata

        sys.argv = ["galata", *words]
        sys.exit(galata())


if __name__ == "__main__":
    main()
