"""The bot as a benchmark runs it: `python -m bench.bot CONFIG DATA`.

Like `galata run`, but each line on standard input is answered with what the process has used so
far and its longest pause since the last line, its end stops the bot, and there is a tool that hangs.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from agent.messages import JsonObject
from agent.tools import ToolContext, ToolOutput, ToolSpec
from bridge.app import serve
from bridge.config import Config, load
from bridge.log import Redactor, setup
from bridge.operation.signals import Signals


class AskPort:
    """Connects to a port of this machine, says which chat it is called for, and waits for an answer
    that never comes."""

    spec = ToolSpec(
        "ask_port",
        "Ask the program behind a port of this machine.",
        {
            "type": "object",
            "properties": {"port": {"type": "integer"}, "chat": {"type": "string"}},
            "required": ["port", "chat"],
        },
        side_effects=True,
    )

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        """The answer, if there ever is one."""
        reader, writer = await asyncio.open_connection("127.0.0.1", int(str(arguments["port"])))
        try:
            writer.write(f"{arguments['chat']}\n".encode())
            return ToolOutput.of((await reader.read()).decode())
        finally:
            writer.close()


async def _run(config: Config, data: Path) -> int:
    redactor = Redactor(config.secrets())
    setup(config.log.level, as_json=config.log.json_lines, redactor=redactor)
    stopping = Signals()
    with stopping.on_signals():
        return await serve(config, data, redactor, stopping, console=False, more_tools=(AskPort(),))


class Pauses:
    """The longest pause for collecting garbage, in which nothing else runs."""

    def __init__(self) -> None:
        self._began = 0.0
        self._longest_s = 0.0
        gc.callbacks.append(self._note)

    def take(self) -> float:
        """Seconds since the last call."""
        longest, self._longest_s = self._longest_s, 0.0
        return longest

    def _note(self, phase: str, info: dict[str, int]) -> None:
        now = time.monotonic()
        if phase == "start":
            self._began = now
        else:
            self._longest_s = max(self._longest_s, now - self._began)


def _answer_questions(pauses: Pauses) -> None:
    for _ in sys.stdin:
        told = {"cpu_s": time.process_time(), "gc_longest_s": pauses.take()}
        print(json.dumps(told), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    config = load(Path(sys.argv[1]), os.environ)
    threading.Thread(target=_answer_questions, args=(Pauses(),), daemon=True).start()
    sys.exit(asyncio.run(_run(config, Path(sys.argv[2]))))
