"""The bot as the crash harness runs it: `python -m tests.crash.bot`.

A process that has everything imported waits here for orders, one line of JSON each, and forks: so a
start takes as long as the bot's own start, not as long as Python's. The fork is the bot: the app as
`galata run` composes it, with a tool more, the named points of `tests.crash.points`, and waits of
minutes made short.

An order is `config`, `data`, `log` (paths), `outage_s` (seconds without the bot that are a long
outage; null: half an hour), and where it kills itself: at `point` (null: nowhere) when
it is there the `nth` time after `arm_s` seconds.
The answers are `{"pid": …}` and, when one has ended, `{"ended": pid, "status": waitstatus}`.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import random
import selectors
import signal
import socket
import sys
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from aiolimiter import AsyncLimiter

from agent import retry
from agent.errors import RefusalKind
from agent.messages import JsonObject
from agent.tools import ToolContext, ToolOutput, ToolSpec
from bridge import app
from bridge.app import serve
from bridge.config import load
from bridge.intake import backlog
from bridge.intake.backlog import BacklogTiming
from bridge.log import Redactor, setup
from bridge.operation.signals import Signals
from bridge.parts import BridgeSettings
from bridge.runs import delivery, outage
from channels import supervise
from channels.slack import catch_up
from channels.slack.channel import SlackChannel
from channels.slack.reply import ReplyTiming
from channels.telegram import deliver, limiter, poll
from channels.telegram import reply as telegram_reply
from tests.crash.points import Points, fill_disk, install

LEDGER = "ledger.txt"  # in the data folder: one line for each effect of the tool


class Pay:
    """A tool whose effects can be counted: each call adds its key to the ledger, which is kept
    whatever happens to the process."""

    spec = ToolSpec(
        "pay",
        "Pays a bill.",
        {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
        parallel=True,
        side_effects=True,
    )

    def __init__(self, ledger: Path, points: Points) -> None:
        self._ledger = ledger
        self._points = points

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        """Pay, in the middle of which there is a point."""
        self._points.reach("before the tool")
        file = os.open(self._ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(file, f"{arguments['key']}\n".encode())
        os.close(file)
        await asyncio.sleep(0.01)
        self._points.reach("in the tool")
        return ToolOutput.of(f"paid {arguments['key']}")


def _brisk(*_: object) -> AsyncLimiter:
    return AsyncLimiter(100, 1)


def _brisk_chat(group: bool) -> list[AsyncLimiter]:
    return [_brisk()]


HURRIED: tuple[tuple[Any, str, Any], ...] = (
    (limiter, "_chat_buckets", _brisk_chat),
    (catch_up, "AsyncLimiter", _brisk),
    (deliver, "_AGAIN_S", (0.05, 0.1, 0.2, 0.4)),
    (telegram_reply, "_PRIVATE_INTERVAL_S", 0.1),
    (telegram_reply, "_GROUP_INTERVAL_S", 0.1),
    (telegram_reply, "_STOP_AFTER_S", 0.1),
    (telegram_reply, "_TYPING_AFTER_S", 0.1),
    (poll, "_POLL_S", 5),
    (delivery, "WAITS_S", (0.1, 0.2, 0.4)),
    (retry, "WAITS_S", dict.fromkeys(RefusalKind, (0.1, 0.2, 0.3))),
    (outage, "PAUSES_S", (0.5,)),
    (outage, "PROBE_S", 1.0),
    (supervise, "FIRST_WAIT_S", 0.1),
    (app, "PATIENCE_S", 0.3),
    (app, "BridgeSettings", partial(BridgeSettings, backlog=BacklogTiming(0.2, 1.0))),
    (
        SlackChannel.__init__,
        "__kwdefaults__",
        {
            **(SlackChannel.__init__.__kwdefaults__ or {}),
            "replying": ReplyTiming(interval_s=0.1, stop_after_s=0.1, repeats_s=(0.05, 0.1, 0.2)),
        },
    ),
)
"""What waits for seconds or minutes, waits a fraction of it: how long is not what is proved."""


async def _run(order: Mapping[str, Any], points: Points) -> int:
    config = load(Path(order["config"]), {})
    data = Path(order["data"])
    redactor = Redactor(config.secrets())
    setup(config.log.level, as_json=False, redactor=redactor)
    tools = (Pay(data / LEDGER, points),)
    signals = Signals()
    with signals.on_signals():
        return await serve(config, data, redactor, signals, console=False, more_tools=tools)


def _be_the_bot(order: Mapping[str, Any]) -> None:
    """Never returns."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for old, new in ((0, nothing), (1, output), (2, output)):
        os.dup2(new, old)
    random.seed()
    points = Points(order["point"], order["nth"], order["arm_s"])
    install(points)
    fill_disk(Path(order["data"]))
    for owner, name, value in HURRIED:
        patch.object(owner, name, value).start()
    if order["outage_s"] is not None:
        patch.object(backlog, "LONG", timedelta(seconds=order["outage_s"])).start()
    code = 70
    try:
        code = asyncio.run(_run(order, points))
        points.reach("at the end")
    finally:
        points.tell()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _nothing(_signal: int, _frame: object) -> None:
    """What is to be done is done where the signal has woken the loop."""


def main() -> None:
    """Take orders until standard input ends; then nothing that was forked is left."""
    wake, woken = socket.socketpair()
    wake.setblocking(False)
    woken.setblocking(False)
    signal.set_wakeup_fd(woken.fileno())
    signal.signal(signal.SIGCHLD, _nothing)
    for module in ("anthropic", "agent.providers.anthropic"):  # imported late by the app
        importlib.import_module(module)
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ)
    selector.register(wake, selectors.EVENT_READ)
    running: set[int] = set()
    gc.freeze()
    while True:
        ready = {key.fileobj for key, _ in selector.select()}
        if wake in ready:
            wake.recv(100)
            for pid in sorted(running):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    running.discard(pid)
                    print(json.dumps({"ended": pid, "status": status}), flush=True)
        if sys.stdin in ready:
            line = sys.stdin.readline()
            if not line:
                break
            pid = os.fork()
            if pid == 0:
                _be_the_bot(json.loads(line))
            running.add(pid)
            print(json.dumps({"pid": pid}), flush=True)
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
